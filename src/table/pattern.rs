//! Numbers in texts: of `8x16384`, `torch.Size([8, 32])`, `BM_sort/1024` or `pp512` the one that varies, as a column of its own.

use std::collections::{BTreeMap, BTreeSet};

use super::cell::{is_missing, is_number};
use super::grid::Grid;

/// A longer text is a sentence.
const LONGEST: usize = 120;
/// The fewest different numbers that make a size.
const FEWEST: usize = 3;
/// Letters before a number that make it the name of a type or a device.
const NAMES: &[&str] =
    &["fp", "bf", "f", "float", "bfloat", "int", "uint", "i", "u", "sm", "v", "q", "w", "cuda", "gpu", "h", "a", "rtx"];

/// A text with its numbers apart.
struct Pattern {
    /// What stands around them.
    around: Vec<String>,
    numbers: Vec<u64>,
}

impl Pattern {
    /// `None` of a text without numbers.
    fn of(text: &str) -> Option<Self> {
        if text.len() > LONGEST {
            return None;
        }
        let (mut around, mut numbers, mut rest) = (vec![String::new()], Vec::new(), text);
        while let Some(start) = rest.find(|letter: char| letter.is_ascii_digit()) {
            let (before, number) = rest.split_at(start);
            rest = number.trim_start_matches(|letter: char| letter.is_ascii_digit());
            let number = &number[..number.len() - rest.len()];
            let last = around.last_mut()?;
            last.push_str(before);
            let word = last.rsplit(|letter: char| !letter.is_alphabetic()).next().unwrap_or_default().to_lowercase();
            match number.parse() {
                Ok(number) if !NAMES.contains(&&word[..]) => {
                    numbers.push(number);
                    around.push(String::new());
                }
                _ => last.push_str(number),
            }
        }
        around.last_mut()?.push_str(rest);
        (!numbers.is_empty()).then_some(Self { around, numbers })
    }

    /// The text with a mark in place of one of its numbers.
    fn without(&self, place: usize) -> String {
        let mut text = self.around[0].clone();
        for (at, number) in self.numbers.iter().enumerate() {
            text.push_str(&if at == place { "N".to_string() } else { number.to_string() });
            text.push_str(&self.around[at + 1]);
        }
        text
    }
}

/// Adds, for each column of such texts, the number that varies as `name (number)`, and as `name (kind)` what else distinguishes them.
pub(super) fn derive(grid: &mut Grid) {
    for column in 0..grid.names.len() {
        let Some((numbers, kinds)) = derived(&grid.cells(column).collect::<Vec<_>>()) else { continue };
        let name = grid.names[column].clone();
        let several = kinds.iter().filter(|kind| !kind.is_empty()).collect::<BTreeSet<_>>().len() > 1;
        grid.add(format!("{name} (number)"), numbers);
        if several {
            grid.add(format!("{name} (kind)"), kinds);
        }
    }
}

fn derived(cells: &[&str]) -> Option<(Vec<String>, Vec<String>)> {
    let held: Vec<&&str> = cells.iter().filter(|cell| !is_missing(cell)).collect();
    if held.len() < FEWEST || 2 * held.iter().filter(|cell| is_number(cell)).count() > held.len() {
        return None;
    }
    let patterns: Vec<Option<Pattern>> = cells.iter().map(|cell| Pattern::of(cell)).collect();
    let read: Vec<&Pattern> = patterns.iter().flatten().collect();
    if 10 * read.len() < 9 * held.len() {
        return None;
    }
    // For each way of writing, the place whose number takes the most values; among equal places the first, as for the sides of a square.
    let mut values: BTreeMap<&[String], Vec<BTreeSet<u64>>> = BTreeMap::new();
    for pattern in &read {
        let places = values.entry(&pattern.around).or_insert_with(|| vec![BTreeSet::new(); pattern.numbers.len()]);
        places.iter_mut().zip(&pattern.numbers).for_each(|(seen, number)| seen.extend([*number]));
    }
    if values.values().flatten().map(BTreeSet::len).max()? < FEWEST {
        return None;
    }
    let place = |pattern: &Pattern| {
        let places = values.get(&pattern.around[..]).map(Vec::as_slice).unwrap_or_default();
        (0..places.len()).rev().max_by_key(|&at| places[at].len()).unwrap_or(0)
    };
    let with = |of: &dyn Fn(&Pattern, usize) -> String| -> Vec<String> {
        patterns
            .iter()
            .map(|pattern| pattern.as_ref().map_or(String::new(), |pattern| of(pattern, place(pattern))))
            .collect()
    };
    // Numbers that follow the varying number, such as the other side of a square, do not distinguish series.
    let squares = read
        .iter()
        .all(|pattern| pattern.numbers.len() > 1 && pattern.numbers.iter().all(|number| *number == pattern.numbers[0]));
    let kinds = with(&|pattern, at| if squares { pattern.around.join("N") } else { pattern.without(at) });
    Some((with(&|pattern, at| pattern.numbers[at].to_string()), kinds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_that_varies_is_the_size() {
        for (cells, numbers) in [
            (&["4x512", "8x512", "12x512"][..], "4 8 12"),
            (&["torch.Size([7, 1])", "torch.Size([7, 2])", "torch.Size([7, 3])"], "1 2 3"),
            (&["64x64", "96x96", "128x128"], "64 96 128"),
            (&["BM_fp16/8", "BM_fp16/16", "BM_fp16/32"], "8 16 32"),
        ] {
            let (found, kinds) = derived(cells).expect("a pattern");
            assert_eq!(found.join(" "), numbers);
            assert!(kinds.iter().all(|kind| *kind == kinds[0]), "{kinds:?}");
        }
        let (_, kinds) = derived(&["pp8", "pp16", "pp32", "tg8", "tg16"]).expect("a pattern");
        assert_eq!(kinds.join(" "), "ppN ppN ppN tgN tgN");
    }

    #[test]
    fn texts_without_a_size_have_none() {
        for cells in [&["fp16", "fp32", "fp8"][..], &["a", "b", "c"], &["1", "2", "3"], &["v1", "v1", "v2"]] {
            assert!(derived(cells).is_none(), "{cells:?}");
        }
    }
}
