//! Files that are recognised but cannot be read, each with a remedy.

use crate::error::Error;
use crate::foreign;

/// The most columns that a message names, and the most letters of each.
const SHOWN: usize = 12;
const LONGEST: usize = 60;

/// First bytes of files, what they are, and a remedy.
const FORMATS: &[(&[u8], &str, &str)] = &[
    (b"PK\x03\x04", "this is a spreadsheet or another archive (ZIP)", "save its sheet as CSV, or unpack it"),
    (b"%PDF", "this is a PDF", "copy its table into a text file"),
    (b"\x89PNG", "this is a picture (PNG)", "give the numbers that it was drawn from"),
    (b"\xff\xd8\xff", "this is a picture (JPEG)", "give the numbers that it was drawn from"),
    (b"\x28\xb5\x2f\xfd", "this is packed by zstd", "unpack it with `zstd -d`"),
    (b"\xfd7zXZ", "this is packed by xz", "unpack it with `xz -d`"),
    (b"BZh", "this is packed by bzip2", "unpack it with `bzip2 -d`"),
    (
        b"SQLite format 3",
        "this is a SQLite database, such as Nsight Systems writes",
        "export a table of it: `nsys stats --format csv`, or `sqlite3 -csv -header`",
    ),
    (b"\x89HDF", "this is HDF5", "write its table as CSV or Parquet, with pandas: `frame.to_csv`"),
    (
        b"\x93NUMPY",
        "this is an array of NumPy",
        "write it with `numpy.savetxt(path, array, delimiter=',', header='batch,time_ms')`",
    ),
    (b"ARROW1", "this is an Arrow file", "write it as Parquet"),
    (
        b"\x80\x04",
        "this is a pickle of Python, which may run code when it is read",
        "write its table as CSV or Parquet",
    ),
    (
        b"\x80\x02",
        "this is a pickle of Python, which may run code when it is read",
        "write its table as CSV or Parquet",
    ),
    (b"<!DOCTYPE", "this is a web page", "copy its table into a text file, or save the CSV that it links to"),
    (b"<html", "this is a web page", "copy its table into a text file, or save the CSV that it links to"),
    (b"<?xml", "this is XML", "export the same results as CSV or JSON"),
];

/// The refusal of a file that is recognised by its first bytes, or that is not text.
pub(super) fn of_bytes(bytes: &[u8]) -> Option<Error> {
    let known = FORMATS.iter().find(|(start, ..)| bytes.starts_with(start));
    if let Some((_, what, remedy)) = known {
        return Some(Error::data(format!("{what}, which is not read")).hint(*remedy));
    }
    // Records of TensorBoard begin with their length, in eight bytes.
    let is_events = bytes.len() > 24
        && bytes[1..8].iter().all(|byte| *byte == 0)
        && bytes[..200.min(bytes.len())].windows(11).any(|part| part == b"brain.Event");
    if is_events {
        return Some(
            Error::data("these are events of TensorBoard, which are not read")
                .hint("export the scalars in TensorBoard as CSV or JSON, and give that file"),
        );
    }
    bytes[..bytes.len().min(1 << 16)].contains(&0).then(|| {
        Error::data("this is not text: it holds zero bytes")
            .hint("batchstep reads tables as text (CSV, Markdown, JSON), Parquet, and its own run directories")
    })
}

/// Beginnings of lines of texts that are known and not read, what they are, and a remedy.
const TEXTS: &[(&str, &str, &str)] = &[
    (
        "<table",
        "this is a table of a web page, which is not read",
        "copy it from the page into a text file, or save it as CSV",
    ),
    (
        "CREATE TABLE",
        "this is SQL, which is not read",
        "load it, and write the table as CSV: `sqlite3 -csv -header`; `llama-bench -o csv` writes the same results",
    ),
    (
        "MLPerf Results Summary",
        "this is MLPerf's summary of one run, which contains no size",
        "give a table with a row for each size, or the summaries of all sizes one after the other",
    ),
];

/// The refusal of a text that is known by the beginning of a line, and holds one run, or another language.
pub(super) fn of_known(text: &str) -> Option<Error> {
    let begins = |start: &str| text.lines().filter(|line| line.trim_start().starts_with(start)).count();
    if begins("MLPerf Results Summary") > 1 {
        return None;
    }
    let known = TEXTS.iter().find(|(start, ..)| begins(start) > 0 && !text.contains("|--") && !text.contains("| --"));
    if text.lines().any(|line| line.contains(": (groupid=")) {
        let what = "this is what fio prints for people, which is not read";
        return Some(Error::data(what).hint("give the results of `fio --output-format=json`"));
    }
    let perf = || {
        text.lines().any(|line| line.contains(",msec,task-clock,") || line.contains("Performance counter stats for"))
    };
    match known {
        Some((_, what, remedy)) => Some(Error::data(*what).hint(*remedy)),
        None => perf().then(|| {
            Error::data("these are counters of `perf stat`, which name no size, and are not read")
                .hint("give a table with a row for each size and its time; `hyperfine --parameter-list` measures and writes one")
        }),
    }
}

/// The refusal of a text without a table.
pub(super) fn of_text(text: &str) -> Error {
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("").trim();
    let shown = foreign::name(&first.chars().take(60).collect::<String>());
    Error::data(format!("no row of numbers was found in this text, which begins `{shown}`")).hint(
        "batchstep reads CSV, Markdown tables, columns of text, JSON lists of records, and the results of common tools: a row for each size, with its time or rate",
    )
}

/// The refusal of JSON without a table.
pub(super) fn of_json(what: &str) -> Error {
    Error::data(what.to_string()).hint("batchstep reads JSON as a list of flat objects, one for each measurement: [{\"batch\": 8, \"time_ms\": 5.2}, ...]")
}

/// The names for a message.
pub(super) fn shown<T: AsRef<str>>(names: impl IntoIterator<Item = T>) -> String {
    let names: Vec<String> = names.into_iter().map(|name| short(name.as_ref())).collect();
    let more = if names.len() > SHOWN { format!(" and {} more", names.len() - SHOWN) } else { String::new() };
    names[..names.len().min(SHOWN)].join(", ") + &more
}

pub(super) fn short(name: &str) -> String {
    foreign::name(&name.chars().take(LONGEST).collect::<String>())
}

/// The message where several columns may be meant.
pub(super) fn ambiguous<T: AsRef<str>>(what: &str, columns: impl IntoIterator<Item = T>, flag: &str) -> Error {
    Error::data(format!("several columns could be the {what}: {}", shown(columns)))
        .hint(format!("name one with `{flag} COLUMN`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_read_is_named_with_a_remedy() {
        for (bytes, said) in [
            (&b"\x93NUMPY\x01"[..], "savetxt"),
            (b"SQLite format 3\0", "nsys stats"),
            (b"\xfd7zXZ\0", "xz -d"),
            (b"<html><table>", "web page"),
            (b"a,b\n\0\0", "zero bytes"),
        ] {
            let error = of_bytes(bytes).expect("refused").to_string();
            assert!(error.contains(said) && error.contains("help:"), "{error}");
        }
        assert!(of_bytes(b"n,ms\n1,2\n").is_none());
        for (text, said) in [
            ("<table><tr><td>8</td></tr></table>", "web page"),
            ("CREATE TABLE a (\nINSERT INTO a VALUES (1);\n", "SQL"),
            ("read: (groupid=0, jobs=1): err= 0\n", "--output-format=json"),
            ("1.5,msec,task-clock,1,2\n", "perf stat"),
            ("====\nMLPerf Results Summary\n====\n", "one run"),
        ] {
            let error = of_known(text).expect("refused").to_string();
            assert!(error.contains(said) && error.contains("help:"), "{error}");
        }
        assert!(of_known("n,ms\n1,2\n").is_none());
        let error = of_text(&"long ".repeat(10_000)).to_string();
        assert!(error.len() < 600 && error.contains("begins `long long"), "{error}");
    }
}
