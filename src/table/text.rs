//! Lines of text in fields: separated, between bars, or in columns.

use std::io::{BufRead, Read};

use super::cell::{is_bare_number, is_number};
use super::latex;
use super::layout::{Layout, Record, cleaned, told_apart};
use crate::error::Error;

/// What stands between the fields of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fields {
    /// Bars, as in Markdown and in the output of databases.
    Bars,
    Separated(u8),
    /// Two or more blanks.
    Columns,
    /// One or more blanks.
    Blanks,
}

/// A longer line is refused: the whole line would have to be in memory.
pub(super) const LONGEST_LINE: usize = 1 << 24;

/// The records of a text, and its comments.
pub(super) struct Records {
    pub records: Vec<Record>,
    pub comments: Vec<Record>,
}

/// How the fields of a text are separated: the way that finds the most rows, and among equal ways the most common one.
pub(super) fn recognise(text: &str) -> Option<(Fields, Layout)> {
    let ways = [
        Fields::Bars,
        Fields::Separated(b'\t'),
        Fields::Separated(b';'),
        Fields::Separated(b','),
        Fields::Columns,
        Fields::Blanks,
    ];
    let find = |way: Fields| {
        let Records { records, comments } = records(text, way);
        let is_aligned = matches!(way, Fields::Columns | Fields::Blanks);
        let layout = Layout::find(&records, &comments, is_aligned)?;
        Some((way, if is_aligned { by_place(layout, text, way) } else { layout }))
    };
    let found: Vec<(Fields, Layout)> = ways.into_iter().filter_map(find).collect();
    let most = found.iter().map(|(_, layout)| layout.rows).max()?;
    let mut near: Vec<(Fields, Layout)> = found.into_iter().filter(|(_, layout)| 5 * layout.rows >= 4 * most).collect();
    // Names speak for a way; the sort keeps the order of the others.
    near.sort_by_key(|(_, layout)| !layout.is_named);
    near.into_iter().next()
}

/// The records of a whole text.
pub(super) fn records(text: &str, way: Fields) -> Records {
    let is_comment = |line: &str| {
        let line = line.trim_start();
        line.starts_with('#') || line.starts_with("//") || line.starts_with('%')
    };
    let is_jmh = text.lines().any(|line| ["Mode", "Score", "Error", "Units"].iter().all(|name| line.contains(name)));
    let is_latex = way == Fields::Bars && latex::is_table(text);
    let split = |(at, line): (usize, &str)| {
        let fields = if is_latex { latex::fields(line) } else { fields(line, way, is_jmh) };
        Record { line: at + 1, fields }
    };
    let lines = || text.lines().enumerate();
    let mut comments: Vec<Record> = lines().filter(|(_, line)| is_comment(line)).map(split).collect();
    if matches!(way, Fields::Columns | Fields::Blanks) {
        with_units(&mut comments, text);
    }
    let records = match way {
        Fields::Separated(separator) => separated(text, separator, is_comment),
        _ => lines()
            .filter(|(_, line)| !is_comment(line) && !is_border(line))
            .map(split)
            .filter(|record| !record.fields.is_empty())
            .collect(),
    };
    Records { records, comments }
}

/// With quoted fields, which may hold separators and ends of lines.
fn separated(text: &str, separator: u8, is_comment: impl Fn(&str) -> bool) -> Vec<Record> {
    // The reader counts empty lines to the record behind them: it gets none.
    let kept = || text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty() && !is_comment(line));
    let numbers: Vec<usize> = kept().map(|(at, _)| at + 1).collect();
    let plain: String = kept().flat_map(|(_, line)| [line, "\n"]).collect();
    let mut reader = reader(plain.as_bytes(), separator);
    let mut records = Vec::new();
    let mut record = csv::StringRecord::new();
    while reader.read_record(&mut record).unwrap_or(false) {
        let line = record.position().and_then(|position| numbers.get((position.line() as usize).checked_sub(1)?));
        records.push(Record { line: line.copied().unwrap_or(0), fields: record.iter().map(str::to_string).collect() });
    }
    records
}

/// A reader of separated fields, which may be more or fewer in a line.
pub(super) fn reader<R: Read>(text: R, separator: u8) -> csv::Reader<R> {
    let mut builder = csv::ReaderBuilder::new();
    builder.delimiter(separator).has_headers(false).flexible(true).trim(csv::Trim::All);
    builder.from_reader(text)
}

/// The refusal of a record that holds rows of the table within a field: a quote before them is not closed.
pub(super) fn unclosed(record: &Record, separator: u8, columns: usize) -> Option<Error> {
    let is_row = |line: &&str| {
        let mut fields = line.split(separator as char);
        fields.clone().count() == columns && fields.any(is_bare_number)
    };
    let long = record.fields.iter().filter(|field| field.contains('\n'));
    let rows = long.flat_map(|field| field.lines().skip(1)).filter(is_row).count();
    (columns > 1 && rows > 0).then(|| {
        let lines = if rows == 1 { "the row below it belongs".to_string() } else { format!("{rows} rows belong") };
        Error::data(format!("a quote in this row is not closed: {lines} to its text"))
            .hint("close the quote, or leave it out")
    })
}

fn fields(line: &str, way: Fields, is_jmh: bool) -> Vec<String> {
    let plain = line.trim().trim_start_matches("//").trim_start_matches(['#', '%']);
    match way {
        Fields::Separated(separator) => {
            plain.split(separator as char).map(|field| field.trim().trim_matches('"').to_string()).collect()
        }
        Fields::Bars => bars(line),
        // `#bytes #iterations` are two names.
        // A score and its error, of JMH, are two columns.
        Fields::Columns => plain
            .replace(" #", "  #")
            .replace(" ± ", if is_jmh { "  ±" } else { " ± " })
            .split('\t')
            .flat_map(|part| part.split("  "))
            .map(str::trim)
            .filter(|field| !field.is_empty())
            .map(str::to_string)
            .collect(),
        Fields::Blanks => plain.split_whitespace().map(str::to_string).collect(),
    }
}

/// The cells of a line with bars, without bold type; empty where it has none.
fn bars(line: &str) -> Vec<String> {
    let line = line.trim().trim_start_matches("> ");
    // Names of Jira.
    let line: String =
        line.replace("||", "|").chars().map(|letter| if "│┃║┆┊".contains(letter) { '|' } else { letter }).collect();
    if !line.contains('|') {
        return Vec::new();
    }
    let line = line.strip_prefix('|').unwrap_or(&line);
    let line = line.strip_suffix('|').unwrap_or(line);
    line.split('|').map(plain).collect()
}

/// A cell of Markdown as text: without bold type, code and links.
fn plain(cell: &str) -> String {
    let mut text = cell.trim().replace("<sup>", "^").replace("</sup>", "");
    for mark in ["**", "__", "~~", "`", "<b>", "</b>", "<br>", "<sub>", "</sub>"] {
        text = text.replace(mark, "");
    }
    if let Some((label, _)) = text.strip_prefix('[').and_then(|link| link.split_once("](")) {
        text = label.to_string();
    }
    text.trim().to_string()
}

/// A line that only draws: `|---|---:|`, `+-----+`, `════`.
fn is_border(line: &str) -> bool {
    let line = line.trim().trim_start_matches("> ");
    line.len() > 1 && line.chars().all(|letter| "|+-=: ".contains(letter) || ('─'..='╿').contains(&letter))
        || line.starts_with("```")
        || is_types(line)
}

/// The types that R, polars and DuckDB print below names.
fn is_types(line: &str) -> bool {
    const TYPES: &[&str] =
        &["---", "i32", "i64", "u32", "u64", "f32", "f64", "str", "int32", "int64", "double", "float", "varchar"];
    let mut words = line.split([' ', '|', '│', '┃', '┆']).filter(|word| !word.is_empty()).peekable();
    words.peek().is_some() && words.all(|word| word.starts_with('<') && word.ends_with('>') || TYPES.contains(&word))
}

/// Joins a line of units in brackets, such as nccl-tests writes below the names, to the names above which they stand.
fn with_units(comments: &mut [Record], text: &str) {
    let lines: Vec<&str> = text.lines().collect();
    for at in 1..comments.len() {
        let [.., names, units] = &mut comments[..=at] else { continue };
        let is_unit = |field: &String| field.starts_with('(') && field.ends_with(')');
        if units.fields.is_empty() || !units.fields.iter().all(is_unit) || names.line + 1 != units.line {
            continue;
        }
        let ends = |record: &Record| ends(lines.get(record.line - 1).copied().unwrap_or_default());
        let (own, below) = (ends(names), ends(units));
        if (own.len(), below.len()) != (names.fields.len(), units.fields.len()) {
            continue;
        }
        for (unit, end) in units.fields.iter().zip(below) {
            if let Some(name) = (0..own.len()).min_by_key(|&name| own[name].abs_diff(end)) {
                names.fields[name] = format!("{} {unit}", cleaned(&names.fields[name]));
            }
        }
    }
}

/// Names of columns that stand above them in one or two lines, where a column has none, as the index that pandas prints.
fn by_place(mut layout: Layout, text: &str, way: Fields) -> Layout {
    let lines: Vec<&str> = text.lines().take(layout.first).collect();
    let Some(row) = layout.first.checked_sub(1).and_then(|at| lines.get(at)).filter(|_| !layout.is_named) else {
        return layout;
    };
    let cells = spans(row, way);
    let above = lines[..layout.first - 1].iter().rev().take_while(|line| !line.trim().is_empty()).take(2);
    let mut names = vec![String::new(); cells.len()];
    for line in above {
        let spans = spans(line, way);
        if spans.iter().any(|(_, _, name)| is_number(name)) || spans.len() > cells.len() {
            break;
        }
        for (start, end, name) in spans {
            // The cell below it, or the nearest one.
            let far = |(own, last, _): &(usize, usize, &str)| own.saturating_sub(end).max(start.saturating_sub(*last));
            let Some(at) = (0..cells.len()).min_by_key(|&at| far(&cells[at])) else { return layout };
            if names[at].is_empty() {
                names[at] = cleaned(name);
            }
        }
    }
    let named = names.iter().filter(|name| !name.is_empty()).count();
    if cells.len() == layout.names.len() && named + 1 >= cells.len() && named > 1 {
        (layout.names, layout.is_named) = (told_apart(names), true);
    }
    layout
}

/// Where the fields of a line begin and end, in letters.
fn spans(line: &str, way: Fields) -> Vec<(usize, usize, &str)> {
    let mut spans = Vec::new();
    let mut start = None;
    let letters: Vec<(usize, char)> = line.char_indices().chain([(line.len(), ' '), (line.len(), ' ')]).collect();
    for at in 0..letters.len() - 1 {
        let (byte, letter) = letters[at];
        let is_gap =
            letter.is_whitespace() && (way == Fields::Blanks || letter == '\t' || letters[at + 1].1.is_whitespace());
        match (start, is_gap) {
            (None, false) if !letter.is_whitespace() => start = Some((at, byte)),
            (Some((from, first)), true) => {
                spans.push((from, at, line[first..byte].trim_end()));
                start = None;
            }
            _ => {}
        }
    }
    spans
}

/// Where each word of a comment ends.
fn ends(line: &str) -> Vec<usize> {
    let is_mark = |word: &str| word.trim_matches(['#', '%']).is_empty();
    spans(line, Fields::Blanks).into_iter().filter(|(.., word)| !is_mark(word)).map(|(_, end, _)| end).collect()
}

/// A text that fails where a line does not end.
pub(super) struct Lines<R> {
    pub text: R,
    /// The length of the line so far.
    length: usize,
}

impl<R> Lines<R> {
    pub fn of(text: R) -> Self {
        Self { text, length: 0 }
    }
}

impl<R: BufRead> Read for Lines<R> {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        let read = self.text.read(bytes)?;
        self.length = match bytes[..read].iter().rposition(|byte| *byte == b'\n') {
            Some(end) => read - end,
            None => self.length + read,
        };
        if self.length > LONGEST_LINE {
            let what = format!("a line is longer than {LONGEST_LINE} bytes: it is not a table");
            return Err(std::io::Error::new(std::io::ErrorKind::InvalidData, what));
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> (Fields, Vec<String>, usize) {
        let (way, layout) = recognise(text).expect("a table");
        (way, layout.names, layout.first)
    }

    #[test]
    fn the_separator_that_makes_rows_is_chosen() {
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(found("n;ms\n1;2,5\n2;2,6\n"), (Fields::Separated(b';'), names(&["n", "ms"]), 2));
        assert_eq!(found("n,ms\n1,2.5\n2,2.6\n"), (Fields::Separated(b','), names(&["n", "ms"]), 2));
        assert_eq!(found("n\tms\n1\t2,5\n2\t2,6\n"), (Fields::Separated(b'\t'), names(&["n", "ms"]), 2));
        let markdown = "Before and after:\n\n| n | **new** |\n|--:|:---:|\n| 1 | **2.5** |\n| 2 | 2.6 |\n\nThanks!\n";
        assert_eq!(found(markdown), (Fields::Bars, names(&["n", "new"]), 5));
        assert_eq!(
            found("data set   exec time\n   2 kB   5 ms\n   4 kB   6 ms\n"),
            (Fields::Columns, names(&["data set", "exec time"]), 2)
        );
        assert_eq!(found("# n, ms\n\n1,2.5\n2,2.6\n"), (Fields::Separated(b','), names(&["n", "ms"]), 3));
        assert_eq!(found("n ms\n1 2.5\n2 2.6\n"), (Fields::Blanks, names(&["n", "ms"]), 2));
        let printed = "        size  Triton\n0     4096.0     8.5\n1     8192.0     9.5\n";
        assert_eq!(found(printed), (Fields::Columns, names(&["size", "Triton"]), 2));
        let boxed = "+---+-----+\n| n | ms  |\n+---+-----+\n| 1 | 2.5 |\n| 2 | 2.6 |\n+---+-----+\n";
        assert_eq!(found(boxed).1, names(&["n", "ms"]));
    }

    #[test]
    fn if_a_column_has_no_name_names_are_assigned_by_their_place() {
        let index = "       time_ms  tflops\nbatch                 \n8        4.5    0.9\n16       5.5    1.9\n24       6.5    2.9\n";
        let (_, names, first) = found(index);
        assert_eq!((names.join(","), first), ("batch,time_ms,tflops".to_string(), 3));
        let behind =
            "name      old time    new time\nA/8    4.5 ms   5.5 ms   (p=0.1)\nA/16   6.5 ms   7.5 ms   (p=0.1)\n";
        assert_eq!(found(behind).1.join(","), "name,old time,new time,column 4");
    }

    #[test]
    fn units_below_names_are_joined_to_them() {
        let text = "#       size     type     time   busbw     time\n#        (B)              (us)  (GB/s)     (us)\n     8    float   20.75    0.10    20.34\n    16    float   21.75    0.20    21.34\n";
        let expected = ["size (B)", "type", "time (us)", "busbw (GB/s)", "time 2 (us)"].map(str::to_string);
        assert_eq!(found(text).1, expected);
    }
}
