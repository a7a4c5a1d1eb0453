//! Tables whose headers are sizes, `bs8, bs16, bs32`, or repetitions, `run1, run2, run3`, as a row for each value.

use super::amounts::{is_batch_size, is_setting, is_size};
use super::cell::is_number;
use super::grid::Grid;
use super::layout::{FEWEST_SIZES, Record, told_apart};

/// What numbers of a header count where they are no sizes.
const REPETITIONS: &[&str] = &[
    "run",
    "rep",
    "repeat",
    "repetition",
    "trial",
    "iter",
    "iteration",
    "sample",
    "measurement",
    "try",
    "round",
    "time",
    "t",
    "attempt",
    "r",
];
/// What such numbers are where the columns are different things.
const OTHERS: &[&str] = &[
    "column",
    "p",
    "q",
    "percentile",
    "pct",
    "gpu",
    "device",
    "core",
    "rank",
    "layer",
    "l",
    "c",
    "col",
    "f",
    "fp",
    "int",
    "v",
    "top",
];

/// A header in two parts.
struct Header<'a> {
    prefix: &'a str,
    number: &'a str,
}

impl<'a> Header<'a> {
    fn of(name: &'a str) -> Option<Self> {
        let body = name.trim_end_matches(['K', 'k', 'M', ')', ']']);
        let digits = body.trim_end_matches(|letter: char| letter.is_ascii_digit());
        if digits.len() == body.len() || digits.ends_with('.') || name.len() - body.len() > 1 {
            return None;
        }
        let prefix = digits.trim_end_matches(|letter: char| letter.is_whitespace() || "_=-:([".contains(letter));
        Some(Self { prefix, number: name[digits.len()..].trim_end_matches([')', ']']) })
    }
}

/// Transposes such a table; does not change other tables.
pub(super) fn melt(grid: &mut Grid) {
    let headers: Vec<Option<Header>> = grid.names.iter().map(|name| Header::of(name)).collect();
    let Some(prefix) = headers.iter().flatten().map(|header| header.prefix).find(|prefix| {
        let count = headers.iter().flatten().filter(|header| header.prefix == *prefix).count();
        let is_other = OTHERS.contains(&&prefix.to_lowercase()[..]);
        count >= FEWEST_SIZES && 2 * count >= grid.names.len() && !is_other
    }) else {
        return;
    };
    let is_value = |at: &usize| headers[*at].as_ref().is_some_and(|header| header.prefix == prefix);
    let (values, others): (Vec<usize>, Vec<usize>) = (0..grid.names.len()).partition(is_value);
    let numbers = grid
        .rows
        .iter()
        .flat_map(|row| values.iter().map(|&at| &row.fields[at]))
        .filter(|cell| is_number(cell))
        .count();
    if 2 * numbers < values.len() * grid.rows.len() {
        return;
    }
    let sizes: Vec<String> =
        values.iter().filter_map(|&at| headers[at].as_ref().map(|header| header.number.to_string())).collect();
    let prefix = prefix.to_string();
    let lower = prefix.to_lowercase();
    if REPETITIONS.contains(&&lower[..]) {
        let name =
            if lower.starts_with('t') && lower != "trial" && lower != "try" { prefix } else { "value".to_string() };
        return long(grid, &values, &others, None, name);
    }
    let names_a_size = |name: &str| is_batch_size(name) || is_size(name) || is_setting(name);
    let over_labels =
        others.first().map(|&at| grid.names[at].clone()).filter(|name| prefix.is_empty() && names_a_size(name));
    let x = over_labels.unwrap_or(if prefix.is_empty() { "size".to_string() } else { prefix });
    let labels: Option<Vec<String>> = match &others[..] {
        [label] => Some(grid.cells(*label).map(str::to_string).collect()),
        [] if grid.rows.len() == 1 => Some(vec!["value".to_string()]),
        _ => None,
    };
    let is_label =
        |labels: &Vec<String>| labels.iter().all(|label| !is_number(label) && !label.is_empty()) && labels.len() <= 16;
    match labels.filter(is_label) {
        Some(labels) => turned(grid, &values, x, labels, &sizes),
        None => long(grid, &values, &others, Some((x, sizes)), "value".to_string()),
    }
}

/// A row for each value, with the size of its header where that is one.
fn long(grid: &mut Grid, values: &[usize], others: &[usize], x: Option<(String, Vec<String>)>, y: String) {
    let mut rows = Vec::new();
    for row in &grid.rows {
        for (place, &at) in values.iter().enumerate() {
            let mut fields: Vec<String> = others.iter().map(|&at| row.fields[at].clone()).collect();
            fields.extend(x.iter().map(|(_, sizes)| sizes[place].clone()));
            fields.push(row.fields[at].clone());
            rows.push(Record { line: row.line, fields });
        }
    }
    let mut names: Vec<String> = others.iter().map(|&at| grid.names[at].clone()).collect();
    names.extend(x.map(|(name, _)| name));
    names.push(y);
    (grid.names, grid.rows) = (told_apart(names), rows);
}

/// Rows for columns: every row's label becomes the name of a column.
fn turned(grid: &mut Grid, values: &[usize], x: String, labels: Vec<String>, sizes: &[String]) {
    let row = |(&at, size): (&usize, &String)| {
        let cells = grid.rows.iter().map(|row| row.fields[at].clone());
        Record {
            line: grid.rows.first().map_or(1, |row| row.line),
            fields: std::iter::once(size.clone()).chain(cells).collect(),
        }
    };
    let rows = values.iter().zip(sizes).map(row).collect();
    (grid.names, grid.rows) = (told_apart(std::iter::once(x).chain(labels).collect()), rows);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn melted(lines: &[&str]) -> (Vec<String>, Vec<Vec<String>>) {
        let split = |line: &str| line.split(',').map(str::to_string).collect::<Vec<_>>();
        let rows = lines[1..].iter().map(|line| Record { line: 1, fields: split(line) }).collect();
        let mut grid = Grid { names: split(lines[0]), rows, ..Grid::default() };
        melt(&mut grid);
        (grid.names, grid.rows.into_iter().map(|row| row.fields).collect())
    }

    #[test]
    fn sizes_in_headers_become_rows() {
        let (names, rows) = melted(&["rep,bs4,bs8,bs16", "0,1.5,2.5,3.5", "1,1.6,2.6,3.6"]);
        assert_eq!((names.join(","), rows.len(), rows[4].join(",")), ("rep,bs,value".into(), 6, "1,8,2.6".into()));
        let (names, rows) = melted(&["Batch Size,4,8,16", "time (ms),1.5,2.5,3.5", "MB,7,8,9"]);
        assert_eq!((names.join(","), rows[1].join(",")), ("Batch Size,time (ms),MB".into(), "8,2.5,8".into()));
        let (names, rows) = melted(&["n,run1,run2,run3", "4,1.5,2.5,3.5"]);
        assert_eq!((names.join(","), rows[2].join(",")), ("n,value".into(), "4,3.5".into()));
    }

    #[test]
    fn other_numbers_in_headers_are_left_alone() {
        for header in ["n,p50,p90,p99", "n,fp16,fp8,fp32", "n,a1,b2,c3", "column 1,column 2,column 3"] {
            assert_eq!(melted(&[header, "4,1.5,2.5,3.5"]).0.join(","), header);
        }
    }
}
