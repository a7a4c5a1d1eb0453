//! Named numbers in lines of text, as logs and summaries have them: `batch_size=8 step_time=5.2ms`, `Batch size 8: 5.2 ms`, or a block of
//! `name: value` for each size.

use std::collections::HashMap;

use super::cell::{duration, has_digit, is_number, unit_of};
use super::comma::is_digits;
use super::grid::{Grid, NamedValues};

/// Fewer blocks are no table.
const FEWEST: usize = 3;
/// More names are no table.
const MOST_NAMES: usize = 1000;
/// Longer lines are prose.
const LONGEST: usize = 400;

/// Words between a value and the name of the next one.
const PREPOSITIONS: &[&str] = &["for ", "at ", "with ", "in ", "of ", "by "];

/// The table of the blocks that repeat in a text; `None` if no block repeats.
pub(super) fn grid(text: &str) -> Option<Grid> {
    let facts: NamedValues = of_lines(text);
    // For each name, its place among the names and how often it occurs.
    let mut names: HashMap<&str, (usize, usize)> = HashMap::new();
    for (name, _) in &facts {
        let place = names.len();
        names.entry(name).or_insert((place, 0)).1 += 1;
    }
    let most = names.values().map(|(_, count)| *count).max().filter(|most| *most >= FEWEST)?;
    if names.len() > MOST_NAMES {
        return None;
    }
    // A block begins with the first name that comes about as often as any other.
    let (anchor, (first, blocks)) =
        names.iter().filter(|(_, (_, count))| 10 * count >= 8 * most).min_by_key(|(_, (place, _))| *place)?;
    // What stands before the first block and comes less often is a heading of several blocks.
    let is_heading = |name: &str| names.get(name).is_some_and(|(place, count)| place < first && *count > 1);
    let is_kept = |name: &str| names.get(name).is_some_and(|(_, count)| 2 * count >= *blocks);
    let (mut rows, mut headings): (Vec<NamedValues>, NamedValues) = (Vec::new(), NamedValues::new());
    for (name, value) in &facts {
        let is_heading = is_heading(name);
        if name == anchor {
            rows.push(headings.clone());
        }
        let row = if is_heading { Some(&mut headings) } else { rows.last_mut().filter(|_| is_kept(name)) };
        let Some(row) = row else { continue };
        match row.iter_mut().find(|(own, _)| own == name) {
            Some((_, own)) if is_heading => own.clone_from(value),
            Some(_) => {}
            None => row.push((name.clone(), value.clone())),
        }
    }
    let grid = Grid::of_rows(rows);
    let is_numeric = |at: &usize| grid.cells(*at).any(is_number);
    (grid.names.len() > 1 && (0..grid.names.len()).any(|at| is_numeric(&at))).then_some(grid)
}

/// The facts of every line; a line that ends in a colon is the heading of those below it that are further in.
fn of_lines(text: &str) -> NamedValues {
    let mut heading = (0, String::new());
    let mut all = NamedValues::new();
    for line in text.lines().filter(|line| line.len() <= LONGEST) {
        let inward = line.len() - line.trim_start().len();
        let mut facts: NamedValues = line.split('|').flat_map(of_part).collect();
        let is_marked = line.contains(['=', ':']) || line.contains(" -> ") || is_time(line);
        if !is_marked {
            facts.clear();
        }
        if inward > heading.0 && !heading.1.is_empty() {
            facts.iter_mut().for_each(|(name, _)| *name = below(&heading.1, name));
        } else if !line.trim().is_empty() {
            heading = (0, String::new());
        }
        if let Some(title) = line.trim().strip_suffix(':').filter(|_| facts.is_empty()) {
            heading = (inward, title.to_string());
        }
        all.extend(facts);
    }
    all
}

/// `Latency (ms)` and `avg`: `Latency avg (ms)`.
fn below(heading: &str, name: &str) -> String {
    match heading.split_once(" (") {
        Some((heading, unit)) => format!("{heading} {name} ({unit}"),
        None => format!("{heading} {name}"),
    }
}

/// The named values of a line, or of the text between two bars.
fn of_part(part: &str) -> NamedValues {
    let part = part.trim().trim_start_matches("- ");
    let pair = part.split_once(": ").or(part.split_once('\t')).or(part.split_once(" = "));
    if let Some((name, value)) = pair.map(|(name, value)| (name.trim(), value.trim()))
        && !has_digit(name)
        && !name.contains('=')
        && !name.is_empty()
        && (is_number(value) || duration(value).is_some() || has_digit(value) && !value.contains([' ', ':', '=']))
    {
        return vec![(name.to_string(), value.to_string())];
    }
    of_words(&shapes(&part.replace(" = ", "=").replace(" : ", ": ").replace(" => ", ": ").replace(" -> ", ": ")))
}

/// `96 x  96 x 128` as one word.
fn shapes(sentence: &str) -> String {
    let words: Vec<&str> = sentence.split_whitespace().collect();
    let is_cross = |word: &str| matches!(word, "x" | "X" | "×" | "*");
    let digits = |word: &str| is_digits(word.trim_end_matches(':'));
    let mut joined = String::new();
    for (at, word) in words.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| words[before]);
        let is_inside =
            before.is_some_and(|before| is_cross(before) && digits(word) || is_cross(word) && digits(before));
        if at > 0 && !is_inside {
            joined.push(' ');
        }
        joined.push_str(word);
    }
    joined
}

/// The numbers of a sentence, each named by the words before it, or by its unit. Without a mark between names and values, it may be anything.
fn of_words(sentence: &str) -> NamedValues {
    let trimmed = |word: &str| -> String { word.trim_end_matches([',', ';', '.']).to_string() };
    let words: Vec<String> = sentence
        .split([' ', '\t', '(', ')', '[', ']', '{', '}', '<', '>', '"', '\''])
        .map(trimmed)
        .filter(|word| !word.is_empty())
        // `epoch=0/step=1` are two.
        .flat_map(|word| match word.matches('=').count() > 1 {
            true => word.split(['/', ',']).map(str::to_string).collect(),
            false => vec![word],
        })
        .collect();
    let mut words = words.iter().map(String::as_str).peekable();
    let (mut facts, mut name): (NamedValues, Vec<&str>) = (NamedValues::new(), Vec::new());
    while let Some(word) = words.next() {
        let pair = word.split_once('=').or_else(|| word.split_once(':')).filter(|(own, _)| !is_number(own));
        let (own, value) = pair.unwrap_or(("", word));
        let number = value.trim_end_matches(':');
        if !is_number(number) || is_time_of_day(value) {
            let label = if number.is_empty() { own } else { number };
            let has_number = has_digit(label) && label.contains(char::is_alphabetic);
            match has_number && facts.is_empty() && !label.starts_with("0x") && !is_time_of_day(value) {
                true => facts.push(("name".to_string(), label.to_string())),
                false if label.contains(char::is_alphabetic) => name.push(label),
                false => {}
            }
            continue;
        }
        // `10% percentile` is a name.
        if number.ends_with('%') && words.peek().is_some_and(|next| next.starts_with(char::is_alphabetic)) {
            name.push(number);
            continue;
        }
        let is_bare = number.ends_with(|letter: char| letter.is_ascii_digit()) && !value.ends_with(':');
        let unit = words.next_if(|next| is_bare && is_unit(next)).unwrap_or_default();
        let attached = number.trim_start_matches(|letter: char| letter.is_ascii_digit() || ".,+-".contains(letter));
        let said = if own.is_empty() { std::mem::take(&mut name).join(" ") } else { own.to_string() };
        name.clear();
        let said = said.trim_matches(|letter: char| !letter.is_alphanumeric());
        let said = PREPOSITIONS.iter().find_map(|before| said.strip_prefix(before)).unwrap_or(said).to_string();
        // `8: 5.2 ms` begins with the size.
        let size = if facts.is_empty() && value.ends_with(':') { "size" } else { "" };
        let said =
            [said, unit.to_string(), attached.to_string(), size.to_string()].into_iter().find(|said| !said.is_empty());
        let is_name = |said: &String| said.contains(char::is_alphabetic) && facts.iter().all(|(own, _)| own != said);
        if let Some(said) = said.filter(is_name) {
            facts.push((said, format!("{number} {unit}").trim().to_string()));
        }
    }
    facts
}

/// A number with a unit of time in front, `5.2 ms per loop`, or a name and a time as shells write it: `real 0m1.5s`.
fn is_time(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let (Some(first), Some(second)) = (words.next(), words.next()) else { return false };
    is_number(first) && unit_of(second).is_some() || duration(second).is_some()
}

/// A unit, or anything by the second or of a step.
fn is_unit(word: &str) -> bool {
    unit_of(word).is_some() || word.contains('/') && word.len() <= 16 && word.starts_with(char::is_alphabetic)
}

/// Whether a word is a time or a date, as in the lines of a log: `10:00:04`, `2025-01-31`.
fn is_time_of_day(word: &str) -> bool {
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    let marks = word.bytes().filter(|byte| matches!(byte, b':' | b'-' | b'T')).count();
    digits >= 4 && marks >= 2
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(line: impl Fn(u32) -> String) -> String {
        (1..=4).map(|i| line(8 * i)).collect()
    }

    #[test]
    fn a_line_or_a_block_for_each_size_is_a_row() {
        for (text, names, last) in [
            (
                lines(|n| format!("[INFO] 2025-01-01 10:00:0{} bs={n} step_time={n}.5ms loss=2.5\n", n / 8)),
                "bs,step_time,loss",
                "32,32.5ms,2.5",
            ),
            (lines(|n| format!("Batch size {n}: {n}.5 ms per step\n")), "Batch size,ms", "32,32.5 ms"),
            (lines(|n| format!("  {n} => Trial({n}.5 ms)\n")), "size,Trial", "32,32.5 ms"),
            (lines(|n| format!("{n} -> {n}.5 ms\n")), "size,ms", "32,32.5 ms"),
            (lines(|n| format!("bs={n}: {n}5.5 images/sec\n")), "bs,images/sec", "32,325.5 images/sec"),
            (
                lines(|n| format!("n={n}\n\nreal\t0m{n}.250s\nuser\t0m1.000s\n\n")),
                "n,real,user",
                "32,0m32.250s,0m1.000s",
            ),
            (lines(|n| format!("- batch: {n}\n  time_ms: {n}.5\n")), "batch,time_ms", "32,32.5"),
            (
                lines(|n| format!("Number of threads: {n}\n\nLatency (ms):\n   min:   1.5\n   avg:   {n}.5\n\n")),
                "Number of threads,Latency min (ms),Latency avg (ms)",
                "32,1.5,32.5",
            ),
            (lines(|n| format!("step=0/micro={n}, rate={n}.5\n")), "step,micro,rate", "0,32,32.5"),
            (
                lines(|n| format!(" iteration {n}/ 99 | elapsed time per iteration (ms): {n}.5 | loss: 1 |\n")),
                "iteration,elapsed time per iteration (ms),loss",
                "32/,32.5,1",
            ),
        ] {
            let (found, rows) = grid(&text).expect("a table").joined();
            assert_eq!((found.as_str(), rows.len(), rows[3].as_str()), (names, 4, last), "{text}");
        }
    }

    #[test]
    fn text_without_repeated_names_holds_no_facts() {
        for text in [
            "A.sort 8 avgt 5 1.5 us/op\nA.sort 16 avgt 5 2.5 us/op\nA.sort 24 avgt 5 2.5 us/op\n",
            "8,1.5\n16,2.5\n24,3.5\n",
            "a 1 2\nb 2 3\nc 3 4\n",
            "It took 5 s.\nThen 7 s.\n",
            "",
        ] {
            assert!(grid(text).is_none(), "{text}");
        }
    }
}
