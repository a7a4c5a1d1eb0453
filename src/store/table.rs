//! Reads the data of a run directory, a Parquet file or a table of another program, batch by batch, so that memory does not
//! grow with the file.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use polars::prelude::{DataFrame, DataType};

use super::claim;
use super::merged::MergedDirectory;
use super::names::{files, keys};
use super::parquet::{self, Metadata};
use super::schema::StepRow;
use super::sheet;
use super::shelf::{Stored, sealed_kind};
use super::stored::damaged_part;
use crate::error::{Error, Result};
use crate::kinds::StudyKind;
use crate::os::look;
use crate::table::{self, Cells, Sheet};

/// Some columns of a table, or of a batch of its rows, as numbers or as texts.
#[derive(Debug)]
pub struct Table {
    /// Where it came from, for messages and reports.
    pub source: PathBuf,
    columns: BTreeMap<String, Values>,
    /// The line of the first row of this batch; the column names are line 1 where nothing stands before them.
    first_line: usize,
    /// The line of each row, if the lines are not consecutive.
    lines: Vec<usize>,
    rows: usize,
}

/// One column.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// Missing values are NaN.
    Numbers(Vec<f64>),
    /// Missing values are empty.
    Texts(Texts),
    /// The cells of a text file; each reader decides whether they are numbers or texts.
    Cells(Cells),
}

/// Texts that are mostly alike: each distinct text is kept once.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Texts {
    /// In the order of first appearance.
    pub distinct: Vec<String>,
    /// For each row, its text's place in `distinct`.
    pub codes: Vec<u32>,
    places: HashMap<String, u32>,
}

impl Texts {
    fn push(&mut self, text: &str) {
        // Runs of equal texts are the rule.
        if let Some(&last) = self.codes.last()
            && self.distinct[last as usize] == text
        {
            self.codes.push(last);
            return;
        }
        let code = self.places.get(text).copied().unwrap_or_else(|| {
            let code = self.distinct.len() as u32;
            self.distinct.push(text.to_string());
            self.places.insert(text.to_string(), code);
            code
        });
        self.codes.push(code);
    }
}

impl Table {
    /// The names of the columns there.
    ///
    /// # Errors
    /// [`crate::error::Kind::Io`] where nothing can be read there; [`crate::error::Kind::Data`] where it is neither a run
    /// directory, nor Parquet, nor a table as text.
    pub fn names(path: &Path) -> Result<Vec<String>> {
        match form(path)? {
            Some(parts) => Ok(describe(path, &parts)?.0),
            None => Ok(Sheet::open(path)?.names()),
        }
    }

    /// The table of another program that `path` is; `None` where it is a run directory, or Parquet that batchstep wrote.
    ///
    /// # Errors
    /// As [`Table::names`].
    pub fn sheet(path: &Path) -> Result<Option<Sheet>> {
        match form(path)? {
            Some(parts) if parts == [path] => sheet::sheet(path),
            Some(_) => Ok(None),
            None => Sheet::open(path).map(Some),
        }
    }

    /// The spec of the run that `path` is, or that wrote this file; `None` in data of other programs.
    ///
    /// # Errors
    /// As [`Table::names`].
    pub fn spec(path: &Path) -> Result<Option<String>> {
        let Some(parts) = form(path)? else { return Ok(None) };
        let spec = path.join(files::SPEC);
        match std::fs::read_to_string(&spec) {
            Ok(text) => Ok(Some(text)),
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                Ok(describe(path, &parts)?.1.remove(keys::SPEC))
            }
            Err(e) => Err(Error::io("read the run's spec", &spec, &e)),
        }
    }

    /// Reads those of the `wanted` columns that are there, whole.
    ///
    /// # Errors
    /// As [`Table::names`].
    pub fn read(path: &Path, wanted: &[&str]) -> Result<Self> {
        let mut whole: Option<Self> = None;
        Self::scan(path, wanted, &mut |batch| {
            match &mut whole {
                None => whole = Some(batch),
                Some(whole) => whole.extend(&batch),
            }
            Ok(())
        })?;
        Ok(whole.unwrap_or_else(|| Self::empty(path, wanted.iter().map(ToString::to_string))))
    }

    /// Gives those of the `wanted` columns that are there to `each`, some ten thousand rows at a time.
    ///
    /// # Errors
    /// As [`Table::names`]; what `each` refuses.
    pub fn scan(path: &Path, wanted: &[&str], each: &mut dyn FnMut(Self) -> Result<()>) -> Result<()> {
        match form(path)? {
            Some(parts) => scan_parquet(path, &parts, wanted, each),
            None => Self::scan_sheet(&Sheet::open(path)?, path, wanted, each),
        }
    }

    /// As [`Table::scan`], for a table that is already open.
    ///
    /// # Errors
    /// As [`Sheet::scan`].
    pub fn scan_sheet(
        sheet: &Sheet,
        path: &Path,
        wanted: &[&str],
        each: &mut dyn FnMut(Self) -> Result<()>,
    ) -> Result<()> {
        sheet.scan(wanted, &mut |columns, lines| {
            let columns = columns.into_iter().map(|(name, cells)| (name, Values::Cells(cells))).collect();
            let (first_line, rows) = (lines.first().copied().unwrap_or(2), lines.len());
            each(Self { source: path.to_path_buf(), columns, first_line, lines, rows })
        })
    }

    fn empty(path: &Path, names: impl Iterator<Item = String>) -> Self {
        let columns = names.map(|name| (name, Values::Texts(Texts::default()))).collect();
        Self { source: path.to_path_buf(), columns, first_line: 2, lines: Vec::new(), rows: 0 }
    }

    fn extend(&mut self, batch: &Self) {
        self.rows += batch.rows;
        self.lines.extend_from_slice(&batch.lines);
        for (name, values) in &mut self.columns {
            match (values, batch.columns.get(name)) {
                (Values::Numbers(all), Some(Values::Numbers(more))) => all.extend_from_slice(more),
                (Values::Texts(all), Some(Values::Texts(more))) => {
                    more.codes.iter().for_each(|&code| all.push(&more.distinct[code as usize]));
                }
                (Values::Cells(all), Some(Values::Cells(more))) => all.extend(more),
                // Every batch of a file has the same columns, with the same types.
                _ => {}
            }
        }
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// True where the column was there.
    pub fn has(&self, name: &str) -> bool {
        self.columns.contains_key(name)
    }

    /// The column as numbers.
    ///
    /// # Errors
    /// [`crate::error::Kind::Data`] if it is missing, or if a value is not a number, with the row.
    pub fn numbers(&self, name: &str) -> Result<Vec<f64>> {
        match self.column(name)? {
            Values::Numbers(numbers) => Ok(numbers.clone()),
            Values::Texts(texts) => {
                let first = |code: usize| texts.codes.iter().position(|&c| c as usize == code).unwrap_or(0);
                let read = |(code, text): (usize, &String)| {
                    let text = text.trim();
                    let number = if text.is_empty() { Ok(f64::NAN) } else { text.parse() };
                    number.map_err(|_| self.at(first(code), no_number(name, text)))
                };
                let numbers: Vec<f64> = texts.distinct.iter().enumerate().map(read).collect::<Result<_>>()?;
                Ok(texts.codes.iter().map(|&code| numbers[code as usize]).collect())
            }
            Values::Cells(cells) => cells.numbers().map_err(|row| {
                let error = no_number(name, cells.get(row));
                self.at(row, error.hint("a comma may be decimal or divide thousands: write 1.5 for one and a half, and 1234 for a thousand and more"))
            }),
        }
    }

    /// The text of a cell in a text file; `None` if the cell is empty, or the table is not a text file.
    pub fn said(&self, name: &str, row: usize) -> Option<&str> {
        match self.columns.get(name)? {
            Values::Cells(cells) => Some(cells.get(row)).filter(|text| !text.is_empty()),
            Values::Numbers(_) | Values::Texts(_) => None,
        }
    }

    /// The line of a row of this batch.
    pub fn line(&self, row: usize) -> usize {
        self.lines.get(row).copied().unwrap_or(self.first_line + row)
    }

    fn at(&self, row: usize, error: Error) -> Error {
        error.at(format!("{}:{}", self.source.display(), self.line(row)))
    }

    /// The column as texts; whole numbers are written without a fraction.
    ///
    /// # Errors
    /// [`crate::error::Kind::Data`] where it is missing.
    pub fn texts(&self, name: &str) -> Result<Vec<String>> {
        let texts = self.distinct(name)?;
        Ok(texts.codes.iter().map(|&code| texts.distinct[code as usize].clone()).collect())
    }

    /// The column as texts, each distinct one once.
    ///
    /// # Errors
    /// As [`Table::texts`].
    pub fn distinct(&self, name: &str) -> Result<Texts> {
        Ok(match self.column(name)? {
            Values::Texts(texts) => texts.clone(),
            Values::Cells(cells) => {
                let mut texts = Texts::default();
                (0..cells.len()).for_each(|row| texts.push(cells.get(row)));
                texts
            }
            Values::Numbers(numbers) => {
                let mut texts = Texts::default();
                let mut before: Option<(f64, u32)> = None;
                for number in numbers {
                    match before {
                        Some((value, code)) if value.to_bits() == number.to_bits() => texts.codes.push(code),
                        _ => texts.push(&number.to_string()),
                    }
                    before = texts.codes.last().map(|&code| (*number, code));
                }
                texts
            }
        })
    }

    fn column(&self, name: &str) -> Result<&Values> {
        self.columns
            .get(name)
            .ok_or_else(|| Error::data(format!("the column `{name}` is missing")).at(self.source.display().to_string()))
    }
}

fn no_number(name: &str, text: &str) -> Error {
    let shown: String = text.chars().take(60).collect();
    Error::data(format!("`{shown}` in the column `{name}` is not a number"))
}

/// The Parquet files that a path means: itself, or those of a run; `None` where it is a table as text.
fn form(path: &Path) -> Result<Option<Vec<PathBuf>>> {
    const MAGIC: &[u8; 4] = b"PAR1";
    let is_pipe = table::is_stdin(path) || (look::is_there(path)? && !look::is_folder(path)? && !look::is_file(path)?);
    let parquet = if is_pipe {
        table::piped(path)?.is_some_and(|bytes| bytes.starts_with(MAGIC))
    } else if look::is_folder(path)? {
        return run_directory(path).map(Some);
    } else {
        let mut start = [0u8; 4];
        let mut file = File::open(path).map_err(|e| Error::io("open the file", path, &e))?;
        let read = file.read(&mut start).map_err(|e| Error::io("read the file", path, &e))?;
        start[..read] == *MAGIC || path.extension().is_some_and(|extension| extension == "parquet")
    };
    Ok(parquet.then(|| vec![path.to_path_buf()]))
}

/// A sealed run's one file, or the parts of a run that is under way.
fn run_directory(path: &Path) -> Result<Vec<PathBuf>> {
    MergedDirectory::refuse_cut_short(path)?;
    let sealed = path.join(files::STEPS);
    let tables: Vec<PathBuf> = match look::is_file(&sealed)? {
        true => vec![sealed],
        false => claim::parts(path, &StepRow::SHELF)?.into_iter().map(|part| part.path).collect(),
    };
    if !tables.is_empty() {
        return Ok(tables);
    }
    let (what, remedy) = match sealed_kind(path)? {
        Some(kind) => {
            let epochs = (kind == StudyKind::Training).then(|| path.join(kind.visits().table));
            let to_jumps = epochs.map(|epochs| format!("; give {} to look for jumps", epochs.display()));
            let remedy = format!("`batchstep plot` draws it{}", to_jumps.unwrap_or_default());
            (format!("this run is {}", kind.description()), remedy)
        }
        None => {
            let other = "give a run directory such as results/vgg16, a Parquet file, or a CSV file".to_owned();
            ("this folder contains no steps.parquet and no parts of a run".to_owned(), other)
        }
    };
    Err(Error::data(what).at(path.display().to_string()).hint(remedy))
}

fn scan_parquet(
    source: &Path,
    parts: &[PathBuf],
    wanted: &[&str],
    each: &mut dyn FnMut(Table) -> Result<()>,
) -> Result<()> {
    let (names, _) = describe(source, parts)?;
    let chosen: Vec<String> =
        wanted.iter().filter(|name| names.iter().any(|n| n == *name)).map(ToString::to_string).collect();
    let mut first_line = 2;
    for part in parts {
        parquet::read(part, Some(&chosen), |frame| {
            let mut columns = BTreeMap::new();
            for name in &chosen {
                let values = parquet_values(frame, name).map_err(|e| e.at(source.display().to_string()))?;
                columns.insert(name.clone(), values);
            }
            let rows = frame.height();
            each(Table { source: source.to_path_buf(), columns, first_line, lines: Vec::new(), rows })?;
            first_line += rows;
            Ok(())
        })
        .map_err(|error| of_part(source, part, error))?;
    }
    Ok(())
}

/// The columns and the metadata of the first of the files.
fn describe(source: &Path, parts: &[PathBuf]) -> Result<(Vec<String>, Metadata)> {
    parquet::describe(&parts[0]).map_err(|error| of_part(source, &parts[0], error))
}

/// The error of a file; a damaged part of a run can be measured again.
fn of_part(source: &Path, part: &Path, error: Error) -> Error {
    let is_damaged = error.remedy() == Some(parquet::DAMAGED);
    if is_damaged && part.starts_with(source.join(files::PARTS)) { damaged_part(part, &error) } else { error }
}

fn parquet_values(frame: &DataFrame, name: &str) -> Result<Values> {
    let refuse = |e: polars::prelude::PolarsError| Error::data(format!("the column `{name}` can't be used: {e}"));
    let column = frame.column(name).map_err(refuse)?;
    if column.dtype().is_primitive_numeric() || column.dtype().is_bool() {
        let numbers = column.cast(&DataType::Float64).map_err(refuse)?;
        let numbers = numbers.f64().map_err(refuse)?;
        return Ok(Values::Numbers(numbers.iter().map(|value| value.unwrap_or(f64::NAN)).collect()));
    }
    let column = column.cast(&DataType::String).map_err(refuse)?;
    let mut texts = Texts::default();
    column.str().map_err(refuse)?.iter().for_each(|value| texts.push(value.unwrap_or("")));
    Ok(Values::Texts(texts))
}
