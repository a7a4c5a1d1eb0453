//! Tables as people have them: reads bytes into named columns of cells, and chooses which of the columns are x, y and groups.
//!
//! A path is a file or standard input (`-`), in UTF-8 or UTF-16, plain or packed by gzip. It contains separated fields, a Markdown table, columns of
//! text, JSON of one of the usual tools, or a log; columns of another form, such as Parquet's, are given as texts. Small tables are read into memory
//! as a whole and put in order: sizes in headers, units in cells, numbers in names. Large tables of separated fields, and large columns, are read in
//! pieces. This module does not know what the numbers are used for.

pub mod amounts;
mod cell;
mod choice;
mod comma;
mod console;
mod facts;
mod grid;
mod json;
mod latex;
mod layout;
mod log;
mod members;
pub mod names;
mod number;
mod order;
mod pattern;
mod python;
mod refusal;
mod seen;
mod sizes;
mod source;
mod text;
mod tools;
pub mod units;
mod values;
mod whole;
mod wide;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::error::{Error, Result};
pub use amounts::Size;
use cell::Notation;
pub use choice::{Choice, Query};
use grid::Grid;
use layout::{Layout, Record, RecordKind, told_apart};
pub use source::{is_stdin, piped};
use text::{Fields, Lines};
pub use units::TimeOrRate;

/// Rows of one batch.
const BATCH: usize = 1 << 14;
/// Rows from which is seen what a column holds.
const PROFILED: usize = 4096;
/// Bytes of a table that are in memory as a whole.
const WHOLE: u64 = 1 << 24;
/// Bytes of a document that cannot be read a stretch at a time.
const LARGEST: u64 = 1 << 26;
/// Bytes in which the form of a larger table is looked for.
const HEAD: usize = 1 << 20;

/// A table of another program, its names read and its rows not yet.
pub struct Sheet {
    path: PathBuf,
    columns: Vec<ColumnSample>,
    notes: Vec<String>,
    /// The notes on a table that is read a stretch at a time and ends before its file does, once it was read.
    notes_at_end: OnceLock<Vec<String>>,
    hints: Hints,
    body: Body,
    /// The note on columns that cannot be read.
    left_out: Option<String>,
}

/// What a known format says about its columns.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Hints {
    x: &'static [&'static str],
    y: &'static [&'static str],
}

enum Body {
    Grid(Vec<Record>),
    Stream(u8, Layout),
    Columns(Reader),
}

/// See [`Sheet::of_columns`].
type Reader = Box<dyn Fn(&[usize], &mut dyn FnMut(Vec<Cells>) -> Result<bool>) -> Result<()>>;

/// The cells of a column in a row, as texts that are numbers on demand.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cells {
    text: String,
    ends: Vec<usize>,
    notation: Notation,
}

/// What the first rows of a column hold.
#[derive(Clone, Debug, Default)]
struct ColumnSample {
    name: String,
    notation: Notation,
    /// NaN if a cell is not a number.
    numbers: Vec<f64>,
    texts: Vec<String>,
}

impl Cells {
    /// Adds a row.
    pub fn push(&mut self, cell: &str) {
        self.text.push_str(cell);
        self.ends.push(self.text.len());
    }

    /// The text of a row's cell.
    pub fn get(&self, row: usize) -> &str {
        let start = row.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.text.get(start..self.ends[row]).unwrap_or("")
    }

    /// The rows.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Adds the rows of `other`.
    pub fn extend(&mut self, other: &Self) {
        (0..other.len()).for_each(|row| self.push(other.get(row)));
    }

    /// As numbers, NaN where a cell holds none.
    ///
    /// # Errors
    /// The row of a number whose comma may be decimal or divide thousands.
    pub fn numbers(&self) -> Result<Vec<f64>, usize> {
        let number = |row: usize| {
            let text = self.get(row);
            match self.notation.number(text) {
                None if self.notation.is_unclear(text) => Err(row),
                number => Ok(number.unwrap_or(f64::NAN)),
            }
        };
        (0..self.len()).map(number).collect()
    }
}

impl Sheet {
    /// Finds the table in `path`.
    ///
    /// # Errors
    /// [`crate::error::Kind::Data`] if there is no table, with what the file contains; [`crate::error::Kind::Io`].
    pub fn open(path: &Path) -> Result<Self> {
        let here = |error: Error| error.at(path.display().to_string());
        let failed = |e: std::io::Error| Error::io("read the file", path, &e);
        let mut source = source::open(path)?;
        let mut bytes = Vec::new();
        source.by_ref().take(WHOLE + 1).read_to_end(&mut bytes).map_err(failed)?;
        if bytes.is_empty() {
            return Err(Error::data("the file is empty")
                .at(path.display().to_string())
                .hint("a table needs a row of column names, and rows of numbers under it"));
        }
        refusal::of_bytes(&bytes).map_or(Ok(()), |error| Err(here(error)))?;
        let is_whole = bytes.len() as u64 <= WHOLE;
        let is_document = json::is_document(&bytes);
        if is_document && !is_whole {
            source.by_ref().take(LARGEST + 1).read_to_end(&mut bytes).map_err(failed)?;
            if bytes.len() as u64 > LARGEST {
                let what = format!("this JSON is longer than {} MiB", LARGEST >> 20);
                return Err(here(Error::data(what).hint("write its rows as CSV, which may be of any length")));
            }
        } else if !is_whole {
            let end = bytes[..HEAD].iter().rposition(|byte| *byte == b'\n').ok_or_else(|| {
                let what = format!("its first line is longer than {HEAD} bytes: it is not a table");
                here(Error::data(what).hint("a table begins with a line of column names"))
            })?;
            bytes.truncate(end + 1);
        }
        let text = String::from_utf8(bytes).unwrap_or_else(|error| western(error.as_bytes()));
        if is_whole || is_document {
            return Ok(Self::of_grid(path, whole::of_text(&text, path)?));
        }
        match text::recognise(&text) {
            Some((Fields::Separated(separator), layout)) => Self::of_stream(path, &text, separator, layout),
            Some(_) => Err(here(
                Error::data(format!("this text is longer than {} MiB", WHOLE >> 20))
                    .hint("write its rows as CSV, which may be of any length"),
            )),
            None => Err(here(refusal::of_text(&text))),
        }
    }

    /// The table of columns that `read` gives: those at the places that it is asked for, as texts, some thousand rows at a time and at least once,
    /// until the function that takes them has enough. `left_out` are columns that it cannot read, each with its type.
    ///
    /// # Errors
    /// [`crate::error::Kind::Data`] if there are no rows; what `read` refuses.
    pub fn of_columns(
        path: &Path,
        names: Vec<String>,
        left_out: &[String],
        read: impl Fn(&[usize], &mut dyn FnMut(Vec<Cells>) -> Result<bool>) -> Result<()> + 'static,
    ) -> Result<Self> {
        let all: Vec<usize> = (0..names.len()).collect();
        let (mut rows, mut bytes) = (Vec::new(), 0);
        let mut keep = |columns: Vec<Cells>| -> Result<bool> {
            for row in 0..columns.first().map_or(0, Cells::len) {
                let fields = columns.iter().map(|cells| cells.get(row).to_string()).collect();
                // The first line of a table as text is that of the names.
                rows.push(Record { line: rows.len() + 2, fields });
            }
            bytes += columns.iter().map(|cells| cells.text.len() + size_of::<String>() * cells.len()).sum::<usize>();
            Ok(bytes as u64 <= WHOLE)
        };
        if !all.is_empty() {
            read(&all, &mut keep)?;
        }
        let note = format!("columns of other types are left out: {}", refusal::shown(left_out));
        let left_out = (!left_out.is_empty()).then_some(note);
        if rows.is_empty() {
            let what = left_out.filter(|_| all.is_empty()).unwrap_or_else(|| whole::NO_ROWS.to_string());
            return Err(Error::data(what).at(path.display().to_string()).hint(whole::ROWS));
        }
        let grid =
            Grid { names: told_apart(names), rows, notes: left_out.iter().cloned().collect(), ..Grid::default() };
        if bytes as u64 <= WHOLE {
            return Ok(Self { left_out, ..Self::of_grid(path, grid.in_order()) });
        }
        Ok(Self { left_out, body: Body::Columns(Box::new(read)), ..Self::of_grid(path, grid) })
    }

    fn of_grid(path: &Path, grid: Grid) -> Self {
        let columns = samples(&grid);
        let Grid { rows, notes, hints, .. } = grid;
        let (path, notes_at_end) = (path.to_path_buf(), OnceLock::new());
        Self { path, columns, notes, notes_at_end, hints, body: Body::Grid(rows), left_out: None }
    }

    fn of_stream(path: &Path, head: &str, separator: u8, layout: Layout) -> Result<Self> {
        let mut rows = Vec::new();
        rows_of(head.as_bytes(), path, separator, &layout, &mut |record| {
            rows.push(record.clone());
            Ok(rows.len() < PROFILED)
        })?;
        let grid = Grid { names: layout.names.clone(), rows, semicolons: separator == b';', ..Grid::default() };
        Ok(Self { body: Body::Stream(separator, layout), ..Self::of_grid(path, grid) })
    }

    /// The names of the columns, all different.
    pub fn names(&self) -> Vec<String> {
        self.columns.iter().map(|column| column.name.clone()).collect()
    }

    /// What a person should know about how the text was read; of a large table, once it was.
    pub fn notes(&self) -> &[String] {
        self.notes_at_end.get().unwrap_or(&self.notes)
    }

    /// Which columns are x, y and groups.
    ///
    /// # Errors
    /// [`crate::error::Kind::Data`] where that is open, or where a column that is asked for is not there.
    pub fn choose(&self, query: &Query) -> Result<Choice> {
        let chosen = choice::choose(&self.columns, self.hints, query);
        let explained = |error: Error| match &self.left_out {
            Some(left_out) => Error::data(format!("{}; {left_out}", error.clause()))
                .hint("write numbers as int64 or float64, texts as UTF-8"),
            None => error,
        };
        chosen.map_err(|error| explained(error).at(self.path.display().to_string()))
    }

    /// Gives the rows of those of the `wanted` columns that are there to `each`, some thousand at a time, and at least once.
    ///
    /// # Errors
    /// As [`Sheet::open`]; what `each` refuses.
    pub fn scan(
        &self,
        wanted: &[&str],
        each: &mut dyn FnMut(Vec<(String, Cells)>, Vec<usize>) -> Result<()>,
    ) -> Result<()> {
        let place = |name: &&str| self.columns.iter().position(|own| own.name == **name);
        let columns: Vec<usize> = wanted.iter().filter_map(place).collect();
        let named = |cells: Vec<Cells>| -> Vec<(String, Cells)> {
            let own = columns.iter().map(|&at| &self.columns[at]);
            own.zip(cells)
                .map(|(own, cells)| (own.name.clone(), Cells { notation: own.notation.clone(), ..cells }))
                .collect()
        };
        if let Body::Columns(read) = &self.body {
            let mut next = 2;
            return read(&columns, &mut |cells| {
                let first = next;
                next += cells.first().map_or(0, Cells::len);
                each(named(cells), (first..next).collect()).map(|()| true)
            });
        }
        let empty = vec![Cells::default(); columns.len()];
        let (mut cells, mut lines) = (empty.clone(), Vec::new());
        let mut take = |record: &Record| {
            for (&at, cells) in columns.iter().zip(&mut cells) {
                cells.push(record.fields.get(at).map_or("", String::as_str));
            }
            lines.push(record.line);
            if lines.len() == BATCH {
                each(named(std::mem::replace(&mut cells, empty.clone())), std::mem::take(&mut lines))?;
            }
            Ok(true)
        };
        match &self.body {
            Body::Grid(rows) => rows.iter().try_for_each(|row| take(row).map(|_| ()))?,
            Body::Columns(_) => {}
            Body::Stream(separator, layout) => {
                let source = source::open(&self.path)?;
                if let Some(line) = rows_of(source, &self.path, *separator, layout, &mut take)? {
                    let note = std::iter::once(whole::note_of_end(line));
                    self.notes_at_end.get_or_init(|| self.notes.iter().cloned().chain(note).collect());
                }
            }
        }
        each(named(cells), lines)
    }
}

/// What the first rows of each column hold, with the units of its cells in its name.
fn samples(grid: &Grid) -> Vec<ColumnSample> {
    let rows = &grid.rows[..grid.rows.len().min(PROFILED)];
    let points = rows.iter().flat_map(|row| &row.fields).any(|cell| cell::has_point(cell));
    let cells_of = |at: usize| rows.iter().map(move |row| row.fields.get(at).map_or("", String::as_str));
    let of_column =
        |(at, name): (usize, &String)| Notation::of(name, cells_of(at)).beside_points(points, grid.semicolons);
    let found: Vec<Notation> = grid.names.iter().enumerate().map(of_column).collect();
    let sample = |(at, name): (usize, &String)| {
        let cells = cells_of(at);
        let notation = found[at].clone().beside_commas(&found, grid.semicolons, cells.clone());
        let name = notation.addition(name).map_or_else(|| name.clone(), |unit| format!("{name} ({unit})"));
        // A number whose comma is not clear is one, and refused where it is read.
        let unclear = |cell: &str| notation.is_unclear(cell).then_some(1.0 + cell.len() as f64);
        let number = |cell: &str| notation.number(cell).or_else(|| unclear(cell)).unwrap_or(f64::NAN);
        let numbers = cells.clone().map(number).collect();
        ColumnSample { name, numbers, texts: cells.map(str::to_string).collect(), notation }
    };
    grid.names.iter().enumerate().map(sample).collect()
}

/// An error of that line; of none where it is 0.
fn at_line(error: Error, path: &Path, line: usize) -> Error {
    let path = path.display();
    error.at(if line == 0 { path.to_string() } else { format!("{path}:{line}") })
}

/// The rows of a table of separated fields, until it ends or `each` has enough: the line before which it ends, if more follows.
fn rows_of(
    text: impl std::io::BufRead,
    path: &Path,
    separator: u8,
    layout: &Layout,
    each: &mut dyn FnMut(&Record) -> Result<bool>,
) -> Result<Option<usize>> {
    let mut reader = text::reader(Lines::of(text), separator);
    let mut bytes = csv::ByteRecord::new();
    let mut record = Record::default();
    let failed = |e: csv::Error, line: usize| {
        at_line(Error::data(format!("the text cannot be read any further: {e}")), path, line)
    };
    while reader.read_byte_record(&mut bytes).map_err(|e| failed(e, record.line))? {
        // The place of a record is where the empty lines before it begin.
        let begins = bytes.position().map_or(0, csv::Position::line);
        record.line = begins.max(reader.position().line().saturating_sub(1)) as usize;
        if record.line < layout.first || bytes.get(0).is_some_and(|first| first.starts_with(b"#")) {
            continue;
        }
        record.fields.resize(bytes.len(), String::new());
        for (field, bytes) in record.fields.iter_mut().zip(&bytes) {
            field.clear();
            match std::str::from_utf8(bytes) {
                Ok(text) => field.push_str(text),
                Err(_) => field.push_str(&western(bytes)),
            }
        }
        if let Some(error) = text::unclosed(&record, separator, layout.names.len()) {
            return Err(at_line(error, path, record.line));
        }
        let line = record.line;
        if layout.part(&mut record, false).map_err(|e| at_line(e, path, line))? == RecordKind::End {
            return Ok(Some(line));
        }
        if !each(&record).map_err(|e| at_line(e, path, 0))? {
            break;
        }
    }
    Ok(None)
}

/// Bytes that are no UTF-8, as the first 256 letters, which most of western Europe's older files are in.
fn western(bytes: &[u8]) -> String {
    bytes.iter().map(|&byte| byte as char).collect()
}

#[cfg(test)]
mod tests;
