//! JSON as a table: a list of flat objects, lines of such, columns, and what [`super::tools`] knows.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::grid::{Grid, NamedValues};
use super::members::{DEEPEST, flat, said};
use super::refusal::shown;
use super::{python, refusal, tools};
use crate::error::Result;

/// Rows, and the names of the lists beside them that are left out.
struct Found {
    rows: Vec<NamedValues>,
    left_out: Vec<String>,
}

/// Whether a text begins as JSON.
pub(super) fn is_document(bytes: &[u8]) -> bool {
    let start = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    matches!(start, Some(b'{' | b'['))
}

/// The table in a document; `None` if the text is not JSON.
///
/// # Errors
/// [`crate::error::Kind::Data`] where there is none in it.
pub(super) fn grid(text: &str) -> Result<Option<Grid>> {
    let (lines, unread) = lines(text);
    if !is_document(text.as_bytes()) && lines.len() < 3 {
        return python::value(text.trim()).map(|value| of_value(&value)).transpose();
    }
    match serde_json::from_str::<Value>(text.trim()) {
        Err(_) if let Some(value) = python::value(text.trim()) => of_value(&value).map(Some),
        Ok(value) => of_value(&value).map(Some),
        Err(_) if !lines.is_empty() => {
            let mut grid = of_value(&Value::Array(lines))?;
            grid.notes.extend(unread.first().map(|first| note_of_unread(*first, unread.len())));
            Ok(Some(grid))
        }
        // A log begins with `[INFO]`, and a section of an INI file with `[run]`.
        Err(error) if text.trim_start().starts_with('{') || text.trim_start().starts_with("[{") => {
            Err(refusal::of_json(&format!("this looks like JSON, and is damaged or cut off: {error}")))
        }
        Err(_) => Ok(None),
    }
}

/// The objects that have a line each, and the numbers of the lines that begin as one and are none.
fn lines(text: &str) -> (Vec<Value>, Vec<usize>) {
    let (mut values, mut unread) = (Vec::new(), Vec::new());
    for (at, line) in text.lines().map(str::trim).enumerate().filter(|(_, line)| line.starts_with('{')) {
        // Python writes `NaN`, which is not JSON.
        match serde_json::from_str(line).ok().or_else(|| python::value(line)) {
            Some(value) => values.push(value),
            None if line.len() > 1 => unread.push(at + 1),
            None => {}
        }
    }
    (values, unread)
}

fn note_of_unread(first: usize, count: usize) -> String {
    match count {
        1 => format!("line {first} begins as an object of JSON, is damaged or cut off, and is left out"),
        _ => format!(
            "{count} lines begin as objects of JSON, are damaged or cut off, and are left out; the first is line {first}"
        ),
    }
}

fn of_value(value: &Value) -> Result<Grid> {
    if let Some(grid) = tools::grid(value)? {
        return Ok(grid);
    }
    let found = rows(value, 0).filter(|found| !found.rows.is_empty());
    let found = found.ok_or_else(|| refusal::of_json("this JSON contains no list of measurements"))?;
    let mut grid = Grid::of_rows(found.rows);
    if !found.left_out.is_empty() {
        let names = shown(&found.left_out);
        grid.notes.push(format!("other lists of this JSON have other columns, and are left out: {names}"));
    }
    // Values that say nothing, and lists within a row, are no columns.
    grid.hints = tools::hints(&grid.names);
    Ok(grid)
}

/// The rows of a list of objects, a list of lists, an object of columns, or of an object that holds one of them.
fn rows(value: &Value, depth: usize) -> Option<Found> {
    let alone = |rows: Vec<NamedValues>| Found { rows, left_out: Vec::new() };
    match value {
        Value::Array(items) if items.iter().any(Value::is_object) => {
            Some(alone(items.iter().filter_map(Value::as_object).flat_map(exploded).collect()))
        }
        Value::Array(items) if items.iter().all(Value::is_array) => listed(items).map(alone),
        Value::Object(object) => of_columns(object).or_else(|| of_map(object)).map(alone).or_else(|| {
            inner(object, depth)
                .filter(|found| found.rows.len() > 1)
                .or_else(|| Some(exploded(object)).filter(|rows| depth == 0 && rows[0].len() > 1).map(alone))
        }),
        _ => None,
    }
}

/// The rows of the values of an object. Of values with the same columns all, told apart by their keys; the columns with the most rows count.
fn inner(object: &Map<String, Value>, depth: usize) -> Option<Found> {
    if depth == DEEPEST {
        return None;
    }
    let of_value = |(key, value): (&String, &Value)| {
        let found = rows(value, depth + 1)?;
        Some((names_of(&found), key.clone(), found))
    };
    let all: Vec<(BTreeSet<String>, String, Found)> = object.iter().filter_map(of_value).collect();
    let names = {
        let mut counts: BTreeMap<&BTreeSet<String>, usize> = BTreeMap::new();
        all.iter().for_each(|(names, _, found)| *counts.entry(names).or_default() += found.rows.len());
        counts.iter().max_by_key(|(_, count)| **count).map(|(names, _)| (*names).clone())?
    };
    let (same, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|(own, ..)| *own == names);
    let name = ["variant", "key", "list"].into_iter().find(|name| !names.contains(*name)).filter(|_| same.len() > 1);
    // A value of one row is no list.
    let others = others.into_iter().filter(|(.., found)| found.rows.len() > 1);
    let mut left_out: Vec<String> = others.map(|(_, key, _)| key).collect();
    let mut joined: Vec<NamedValues> = Vec::new();
    for (_, key, found) in same {
        left_out.extend(found.left_out);
        let own = name.map(|name| (name.to_string(), key));
        joined.extend(found.rows.into_iter().map(|row| row.into_iter().chain(own.clone()).collect::<NamedValues>()));
    }
    Some(Found { rows: joined, left_out })
}

/// The names of the columns of rows.
fn names_of(found: &Found) -> BTreeSet<String> {
    found.rows.iter().flatten().map(|(name, _)| name.clone()).collect()
}

/// A list of lists, of which the first may be names.
fn listed(items: &[Value]) -> Option<Vec<NamedValues>> {
    let first = items.first()?.as_array()?;
    let named = first.iter().all(Value::is_string);
    let names: Vec<String> = match named {
        true => first.iter().map(said).collect(),
        // As TensorBoard exports them.
        false if first.len() == 3 && first[0].as_f64().is_some_and(|time| time > 1e9) => {
            ["Wall time", "Step", "Value"].map(str::to_string).to_vec()
        }
        false => (1..=first.len()).map(|at| format!("column {at}")).collect(),
    };
    let row = |item: &Value| names.iter().cloned().zip(item.as_array().into_iter().flatten().map(said)).collect();
    Some(items.iter().skip(usize::from(named)).map(row).collect())
}

/// `{"batch": [1, 2], "ms": [5, 6]}`, and the ways in which pandas writes a frame.
fn of_columns(object: &Map<String, Value>) -> Option<Vec<NamedValues>> {
    if let (Some(Value::Array(names)), Some(Value::Array(data))) = (object.get("columns"), object.get("data")) {
        let items: Vec<Value> = std::iter::once(Value::Array(names.clone())).chain(data.iter().cloned()).collect();
        return listed(&items).filter(|rows| rows.len() == data.len());
    }
    // Rows by their size or their index.
    if sizes(&object.keys().map(String::as_str).collect::<Vec<_>>()).is_some() {
        return None;
    }
    let lists: Vec<(&String, Vec<&Value>)> = object
        .iter()
        .filter_map(|(name, value)| match value {
            Value::Array(items) => Some((name, items.iter().collect())),
            Value::Object(items) => Some((name, items.values().collect())),
            _ => None,
        })
        .filter(|(_, items): &(_, Vec<&Value>)| items.iter().all(|item| !item.is_object() && !item.is_array()))
        .collect();
    let length = lists.first()?.1.len();
    if lists.len() < 2 || length < 2 || lists.iter().any(|(_, items)| items.len() != length) {
        return None;
    }
    let keys =
        object.values().find_map(Value::as_object).map(|inner| inner.keys().map(String::as_str).collect::<Vec<_>>());
    let sized = keys.filter(|keys| !is_index(keys)).and_then(|keys| sizes(&keys));
    let row = |at: usize| {
        let size = sized.iter().map(|(size, numbers)| (size.clone(), numbers[at].clone()));
        size.chain(lists.iter().map(|(name, items)| ((*name).clone(), said(items[at])))).collect()
    };
    Some((0..length).map(row).collect())
}

/// `0`, `1`, `2`, as pandas numbers rows.
fn is_index(keys: &[&str]) -> bool {
    keys.iter().enumerate().all(|(at, key)| *key == at.to_string())
}

/// `{"1": 5.2, "2": 5.4}`: sizes and values; `{"bs1": {"ms": 5.2}, ...}`.
fn of_map(object: &Map<String, Value>) -> Option<Vec<NamedValues>> {
    let keys: Vec<&str> = object.keys().map(String::as_str).collect();
    let (mut name, numbers) = sizes(&keys)?;
    // `fp8`, `fp16` and `fp32` may name tables.
    if object.values().any(is_table) {
        return None;
    }
    if is_index(&keys) && object.values().all(Value::is_object) {
        name = "index".to_string();
    }
    let row = |(number, value): (String, &Value)| {
        let values = match value {
            Value::Object(object) => flat(object),
            other => vec![("value".to_string(), said(other))],
        };
        std::iter::once((name.clone(), number)).chain(values).collect()
    };
    Some(numbers.into_iter().zip(object.values()).map(row).collect())
}

/// Whether a value holds rows, or columns of values.
fn is_table(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(|item| item.is_object() || item.is_array()),
        Value::Object(object) => object.values().any(Value::is_array) && of_columns(object).is_some(),
        _ => false,
    }
}

/// What names that end in different numbers begin with, and the numbers: `bs8`, `bs16`. Bare numbers are sizes.
fn sizes(names: &[&str]) -> Option<(String, Vec<String>)> {
    fn parts<'n>(name: &&'n str) -> Option<(&'n str, &'n str)> {
        let before = name.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.').len();
        (before < name.len()).then(|| name.split_at(before))
    }
    let parts: Vec<(&str, &str)> = names.iter().map(parts).collect::<Option<_>>()?;
    let (before, _) = *parts.first().filter(|_| parts.len() > 2)?;
    let name = before.trim_end_matches(['_', '-', '=', ' ', ':']);
    let numbers = parts.iter().map(|(_, number)| (*number).to_string()).collect();
    let same = parts.iter().all(|(own, number)| *own == before && number.parse::<f64>().is_ok());
    same.then(|| (if name.is_empty() { "size".to_string() } else { name.to_string() }, numbers))
}

/// The rows of one object: one, or one for each repetition where it has lists of them.
fn exploded(object: &Map<String, Value>) -> Vec<NamedValues> {
    const REPETITIONS: &[&str] = &[
        "times",
        "samples",
        "data",
        "raw",
        "latencies",
        "values",
        "runs",
        "rawdata",
        "measurements",
        "times_ms",
        "times_s",
        "latencies_ms",
        "raw_data",
    ];
    let plain = flat(object);
    let list = object.iter().find_map(|(name, value)| {
        let items = value.as_array()?.iter().filter(|item| item.is_number()).collect::<Vec<_>>();
        (REPETITIONS.contains(&&name.to_lowercase()[..]) && !items.is_empty()).then_some((name, items))
    });
    let Some((name, items)) = list else { return vec![plain] };
    let own = if name == "times_ms" || name == "latencies_ms" { "time_ms" } else { "time" };
    items.into_iter().map(|item| plain.iter().cloned().chain([(own.to_string(), said(item))]).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (String, Vec<String>) {
        grid(text).expect("read").expect("a table").joined()
    }

    #[test]
    fn every_usual_form_of_a_list_is_a_table() {
        let rows = vec!["4,1.5".to_string(), "8,2.5".to_string()];
        for text in [
            r#"[{"n": 4, "ms": 1.5}, {"n": 8, "ms": 2.5}]"#,
            "{\"n\": 4, \"ms\": 1.5}\n{\"n\": 8, \"ms\": 2.5}\n",
            r#"{"meta": {"gpu": "a"}, "results": [{"n": 4, "ms": 1.5}, {"n": 8, "ms": 2.5}]}"#,
            r#"{"n": [4, 8], "ms": [1.5, 2.5]}"#,
            r#"{"n": {"0": 4, "1": 8}, "ms": {"0": 1.5, "1": 2.5}}"#,
            r#"{"columns": ["n", "ms"], "index": [0, 1], "data": [[4, 1.5], [8, 2.5]]}"#,
            r#"[["n", "ms"], [4, 1.5], [8, 2.5]]"#,
        ] {
            assert_eq!(read(text), ("n,ms".to_string(), rows.clone()), "{text}");
        }
        let named = ("bs,ms".to_string(), vec!["4,1.5".to_string(), "8,2.5".to_string(), "16,3.5".to_string()]);
        assert_eq!(read(r#"{"bs4": {"ms": 1.5}, "bs8": {"ms": 2.5}, "bs16": {"ms": 3.5}}"#), named);
        let indexed = r#"{"0": {"n": 4, "ms": 1.5}, "1": {"n": 8, "ms": 2.5}, "2": {"n": 16, "ms": 3.5}}"#;
        assert_eq!(read(indexed).0, "index,n,ms");
        let two = r#"{"a": {"4": 1.5, "8": 2.5, "16": 3.5}, "b": {"4": 5, "8": 6, "16": 7}}"#;
        assert_eq!(read(two), ("size,a,b".to_string(), vec!["4,1.5,5".into(), "8,2.5,6".into(), "16,3.5,7".into()]));
        assert_eq!(read(r#"{"4": 1.5, "8": 2.5, "16": 3.5}"#).0, "size,value");
        assert_eq!(read(r#"[{"n": 4, "times": [1.5, 1.6]}]"#).1, ["4,1.5", "4,1.6"]);
        assert_eq!(
            read(r#"[{"cfg": {"n": 4}, "shape": [4, 8], "x": [{}]}]"#),
            ("cfg.n,shape".into(), vec!["4,[4, 8]".into()])
        );
    }

    #[test]
    fn lists_with_the_same_columns_are_told_apart_by_their_keys() {
        let rows = ["4,1.5,fp16", "8,2.5,fp16", "4,3.5,fp32", "8,4.5,fp32"].map(str::to_string).to_vec();
        for (text, names) in [
            (
                r#"{"fp16": [{"n": 4, "ms": 1.5}, {"n": 8, "ms": 2.5}], "fp32": [{"n": 4, "ms": 3.5}, {"n": 8, "ms": 4.5}]}"#,
                "n,ms,variant",
            ),
            (r#"{"fp16": {"n": [4, 8], "ms": [1.5, 2.5]}, "fp32": {"n": [4, 8], "ms": [3.5, 4.5]}}"#, "n,ms,variant"),
            (r#"{"fp16": [[4, 1.5], [8, 2.5]], "fp32": [[4, 3.5], [8, 4.5]]}"#, "column 1,column 2,variant"),
        ] {
            assert_eq!(read(text), (names.to_string(), rows.clone()), "{text}");
        }
        let three = r#"{"fp8": [{"n": 4, "ms": 1.5}], "fp16": [{"n": 4, "ms": 2.5}], "fp32": [{"n": 4, "ms": 3.5}]}"#;
        assert_eq!(read(three).1, ["4,1.5,fp8", "4,2.5,fp16", "4,3.5,fp32"]);
        let other = r#"{"runs": [{"n": 4}, {"n": 8}, {"n": 12}], "losses": [{"epoch": 1}, {"epoch": 2}]}"#;
        let grid = grid(other).expect("read").expect("a table");
        assert_eq!((grid.names.join(","), grid.rows.len(), grid.notes.len()), ("n".to_string(), 3, 1));
        assert!(grid.notes[0].ends_with("left out: losses"), "{:?}", grid.notes);
    }

    #[test]
    fn lines_of_json_that_are_not_read_are_counted() {
        let text = "{\"n\": 4, \"ms\": NaN}\n{\"n\": 8, \"ms\": 2.5}\n{\"n\": 12, \"m\n{\"n\": 16, \"ms\": 3.5}\n";
        assert_eq!(read(text).1, ["4,", "8,2.5", "16,3.5"]);
        let grid = grid(text).expect("read").expect("a table");
        assert!(grid.notes.len() == 1 && grid.notes[0].starts_with("line 3 "), "{:?}", grid.notes);
    }

    #[test]
    fn damaged_and_empty_documents_are_refused_in_a_line() {
        let long = format!("[{{\"a\": \"{}\"", "b".repeat(100_000));
        for text in [&long[..], "{}", "[]", "{\"a\": 1}", "[1, 2]"] {
            let error = grid(text).expect_err(&text[..10.min(text.len())]).to_string();
            assert!(error.len() < 400 && error.contains("list of flat objects"), "{error}");
        }
        assert!(grid("[INFO] hello\nn,ms\n1,2\n").expect("no JSON").is_none());
    }
}
