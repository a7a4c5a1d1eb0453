//! What benchmark libraries print for people: Go, Rust, benchstat, Catch2, criterion, PyTorch's `Compare`.

use regex::{Captures, Regex};

use super::cell::is_number;
use super::comma::is_digits;
use super::grid::{Grid, NamedValues, pair};

/// Fewer results are no table.
const FEWEST: usize = 2;
/// The columns of times, of which most libraries print one.
const TIMES: &[&str] = &["time", "time 2", "time 3", "time 4"];

/// What names and times of other libraries look like, and what their texts hold.
const NAMES_AND_TIMES: &[(&str, &str)] = &[
    // Rust's own: `test sort_64 ... bench:       1,234 ns/iter (+/- 31)`.
    (" ... bench:", r"^ *test (.+) \.\.\. bench: *([0-9,.]+ \S+) \("),
    // Catch2: a name with counts and an estimate, and in the next line mean, low mean and high mean.
    ("low mean", r"^([^\W\d_].*?)  .*\n *(TIME) +TIME +TIME[ \r]*$"),
    // criterion: `sort/64   time:   [1.23 µs 1.24 µs 1.25 µs]`, the name in a line of its own where it is long.
    ("time:", r"^(.*\S)\s+time:\s+\[TIME (TIME) TIME\]"),
];

/// The table in such a text; `None` in any other.
pub(super) fn grid(text: &str) -> Option<Grid> {
    let ways = [go, benchstat, names_and_times, compare];
    let found = ways.into_iter().map(|read| read(text)).find(|rows| rows.len() >= FEWEST)?;
    Grid::of_tool(found, &["name (number)"], TIMES)
}

/// `BenchmarkSort/size=64-8   1000   1234 ns/op   16 B/op`: the number behind the last dash counts processors.
fn go(text: &str) -> Vec<NamedValues> {
    let row = |line: &str| {
        let mut words = line.strip_prefix("Benchmark")?.split_whitespace();
        let name = without_processors(words.next()?);
        words.next()?.parse::<u64>().ok()?;
        let rest: Vec<&str> = words.collect();
        let values = rest.chunks_exact(2).filter(|two| is_number(two[0]) && two[1].contains('/'));
        let named = values.map(|two| match two[1] {
            "ns/op" => pair("time", format!("{} ns/op", two[0])),
            unit => pair(unit, two[0]),
        });
        let row: NamedValues = std::iter::once(pair("name", name)).chain(named).collect();
        (row.len() > 1).then_some(row)
    };
    text.lines().filter_map(row).collect()
}

fn names_and_times(text: &str) -> Vec<NamedValues> {
    let found = |(mark, form): &(&str, &str)| {
        let form = format!("(?m){}", form.replace("TIME", "[0-9.,]+ [nuµμm]?s"));
        let form = Regex::new(&form).ok().filter(|_| text.contains(mark))?;
        let row = |found: Captures| vec![pair("name", found[1].trim()), pair("time", found[2].replace(',', ""))];
        Some(form.captures_iter(text).map(row).collect())
    };
    NAMES_AND_TIMES.iter().filter_map(found).find(|rows: &Vec<NamedValues>| !rows.is_empty()).unwrap_or_default()
}

fn without_processors(name: &str) -> &str {
    name.rsplit_once('-').filter(|(_, processors)| is_digits(processors)).map_or(name, |(name, _)| name)
}

/// benchstat: `Sort/size=64-8   1.234µ ± 1%   1.100µ ± 2%   -10.9% (p=0.000 n=10)`, of its times.
fn benchstat(text: &str) -> Vec<NamedValues> {
    let mut is_time = false;
    let mut rows = Vec::new();
    for line in text.lines() {
        if line.contains("/op") && (line.contains('│') || line.contains('|') || line.contains("time/op")) {
            is_time = line.contains("sec/op") || line.contains("time/op");
        }
        let times: Vec<&str> = line.split('±').filter_map(|part| part.split_whitespace().last()).collect();
        let Some(name) = line.split_whitespace().next().filter(|name| is_time && *name != "geomean") else { continue };
        // Behind the last sign stands its share.
        let times: Vec<Option<String>> =
            times[..times.len().saturating_sub(1)].iter().map(|time| seconds(time)).collect();
        let named: NamedValues = TIMES.iter().zip(times).filter_map(|(name, time)| Some(pair(name, time?))).collect();
        if !named.is_empty() {
            rows.push(std::iter::once(pair("name", without_processors(name))).chain(named).collect());
        }
    }
    rows
}

/// `1.234µ` and `5.6m`, which benchstat writes of seconds.
fn seconds(text: &str) -> Option<String> {
    let number = text.trim_end_matches(|letter: char| letter.is_alphabetic());
    let unit = &text[number.len()..];
    number.parse::<f64>().ok()?;
    Some(format!("{number} {unit}{}", if unit.ends_with('s') { "" } else { "s" }))
}

/// `torch.utils.benchmark.Compare`: a section for each number of threads, a row for each size, a column for each description.
fn compare(text: &str) -> Vec<NamedValues> {
    let unit = text.split_once("Times are in ").and_then(|(_, unit)| unit.split_once('(')?.1.split_once(')'));
    let Some((unit, _)) = unit else { return Vec::new() };
    let (mut names, mut threads, mut rows): (Vec<&str>, &str, Vec<NamedValues>) = (Vec::new(), "", Vec::new());
    for line in text.lines() {
        let mut cells = line.split('|').map(str::trim);
        let first = cells.next().unwrap_or_default();
        let cells: Vec<&str> = cells.collect();
        if let Some((count, _)) = first.split_once(" threads: -") {
            threads = count;
        } else if first.is_empty() && !cells.is_empty() {
            names = cells;
        } else if !cells.is_empty() && cells.len() == names.len() {
            let values = names.iter().zip(cells).map(|(name, cell)| pair(&format!("{name} ({unit})"), cell));
            rows.push([pair("name", first), pair("threads", threads)].into_iter().chain(values).collect());
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the recorded samples do not have: fractions, other parts of a report, and names in a line of their own.
    #[test]
    fn what_libraries_print_is_a_table() {
        for (text, names, rows) in [
            (
                "running 2 tests\ntest sort_8 ... bench:       1,234 ns/iter (+/- 31)\ntest sort_16 ... bench:   2,345.5 ns/iter (+/- 9)\n",
                "name,time",
                ["sort_8,1234 ns/iter", "sort_16,2345.5 ns/iter"],
            ),
            (
                "        │  old  │  new  │\n        │ sec/op │ sec/op  vs base │\nA/8-4   1.25µ ± 1%   1.5m ± 2%  +9% (p=0.000 n=10)\nA/16-4   2.25µ ± 1%   2.5m ± 2%  ~ (p=0.1 n=10)\ngeomean  1µ\n        │ B/op │\nA/8-4   16 ± 0%\n",
                "name,time,time 2",
                ["A/8,1.25 µs,1.5 ms", "A/16,2.25 µs,2.5 ms"],
            ),
            (
                "sort/8    time:   [1.1 µs 1.2 µs 1.3 µs]\n          change: [-1% +0% +1%]\nsort of some length/16\n          time:   [2.1 µs 2.2 µs 2.3 µs]\n",
                "name,time",
                ["sort/8,1.2 µs", "sort of some length/16,2.2 µs"],
            ),
        ] {
            let found = grid(text).expect("a table").joined();
            assert_eq!(found, (names.to_string(), rows.map(str::to_string).to_vec()), "{text}");
        }
        assert!(grid("n,ms\n8,1.5\n16,2.5\n").is_none());
    }
}
