//! Reading anyone's data: a run directory of ours, a Parquet file or a CSV file of another program; batch by batch, so that
//! memory does not grow with the file.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{BufRead, BufReader, Chain, Cursor, ErrorKind, Read};
use std::path::{Path, PathBuf};

use polars::prelude::{DataFrame, DataType};

use super::claim;
use super::comma::Comma;
use super::names::{files, keys};
use super::parquet;
use super::schema::StepRow;
use super::stored::Stored;
use crate::error::{Error, Result};
use crate::look;

/// Some columns of a table, or of a batch of its rows, as numbers or as texts.
#[derive(Debug)]
pub struct Table {
    /// Where it came from, for messages and reports.
    pub source: PathBuf,
    columns: BTreeMap<String, Values>,
    /// The line of the first row of this batch; the column names are line 1 where nothing stands before them.
    first_line: usize,
    rows: usize,
}

/// One column.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// Missing values are NaN.
    Numbers(Vec<f64>),
    /// Missing values are empty.
    Texts(Texts),
}

/// Texts of which most are alike: each distinct one is kept once.
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

/// What kind of file a path is.
enum Form {
    Parquet(Vec<PathBuf>),
    Csv,
}

impl Table {
    /// The names of the columns there.
    ///
    /// # Errors
    /// [`crate::error::Kind::Io`] where nothing can be read there; [`crate::error::Kind::Data`] where it is neither a run
    /// directory, nor Parquet, nor CSV.
    pub fn names(path: &Path) -> Result<Vec<String>> {
        match form(path)? {
            Form::Parquet(parts) => Ok(parquet::describe(&parts[0])?.0),
            Form::Csv => csv_reader(path)?.headers().map(names).map_err(|e| csv_error(path, &e)),
        }
    }

    /// The spec of the run that `path` is, or that wrote this file; `None` in data of other programs.
    ///
    /// # Errors
    /// As [`Table::names`].
    pub fn spec(path: &Path) -> Result<Option<String>> {
        let Form::Parquet(parts) = form(path)? else { return Ok(None) };
        let spec = path.join(files::SPEC);
        match std::fs::read_to_string(&spec) {
            Ok(text) => Ok(Some(text)),
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                Ok(parquet::describe(&parts[0])?.1.remove(keys::SPEC))
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
            Form::Parquet(parts) => scan_parquet(path, &parts, wanted, each),
            Form::Csv => scan_csv(path, wanted, each),
        }
    }

    fn empty(path: &Path, names: impl Iterator<Item = String>) -> Self {
        let columns = names.map(|name| (name, Values::Texts(Texts::default()))).collect();
        Self { source: path.to_path_buf(), columns, first_line: 2, rows: 0 }
    }

    fn extend(&mut self, batch: &Self) {
        self.rows += batch.rows;
        for (name, values) in &mut self.columns {
            match (values, batch.columns.get(name)) {
                (Values::Numbers(all), Some(Values::Numbers(more))) => all.extend_from_slice(more),
                (Values::Texts(all), Some(Values::Texts(more))) => {
                    more.codes.iter().for_each(|&code| all.push(&more.distinct[code as usize]));
                }
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
    /// [`crate::error::Kind::Data`] where it is missing, or where a value is no number: with the row.
    pub fn numbers(&self, name: &str) -> Result<Vec<f64>> {
        match self.column(name)? {
            Values::Numbers(numbers) => Ok(numbers.clone()),
            Values::Texts(texts) => {
                let first = |code: usize| texts.codes.iter().position(|&c| c as usize == code).unwrap_or(0);
                let comma = Comma::of(&texts.distinct);
                let read = |(code, text): (usize, &String)| {
                    let number = comma.read(text).map_or_else(|| self.number(name, text), Ok);
                    number.map_err(|e| self.at(first(code), e))
                };
                let numbers: Vec<f64> = texts.distinct.iter().enumerate().map(read).collect::<Result<_>>()?;
                Ok(texts.codes.iter().map(|&code| numbers[code as usize]).collect())
            }
        }
    }

    /// The line of a row of this batch.
    pub fn line(&self, row: usize) -> usize {
        self.first_line + row
    }

    fn at(&self, row: usize, error: Error) -> Error {
        error.at(format!("{}:{}", self.source.display(), self.line(row)))
    }

    fn number(&self, name: &str, text: &str) -> Result<f64> {
        let text = text.trim();
        if text.is_empty() || ["na", "nan", "null", "none"].contains(&text.to_lowercase().as_str()) {
            return Ok(f64::NAN);
        }
        text.parse().map_err(|_| {
            let shown: String = text.chars().take(60).collect();
            let error = Error::data(format!("`{shown}` in the column `{name}` is not a number"));
            match text.contains(',') {
                true => error.hint("a comma may be decimal or divide thousands: write 1.5 for one and a half, and 1234 for a thousand and more"),
                false => error,
            }
        })
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

fn form(path: &Path) -> Result<Form> {
    if look::is_folder(path)? {
        return run_directory(path);
    }
    let mut start = [0u8; 4];
    let mut file = File::open(path).map_err(|e| Error::io("open the file", path, &e))?;
    let read = file.read(&mut start).map_err(|e| Error::io("read the file", path, &e))?;
    if read == 0 {
        return Err(Error::data("the file is empty")
            .at(path.display().to_string())
            .hint("a table needs a row of column names, and rows of numbers under it"));
    }
    let parquet = &start[..read] == b"PAR1" || path.extension().is_some_and(|extension| extension == "parquet");
    Ok(if parquet { Form::Parquet(vec![path.to_path_buf()]) } else { Form::Csv })
}

/// A sealed run's one file, or the parts of a run that is under way.
fn run_directory(path: &Path) -> Result<Form> {
    let sealed = path.join(files::STEPS);
    let tables: Vec<PathBuf> = match look::is_file(&sealed)? {
        true => vec![sealed],
        false => claim::parts(path, &StepRow::SHELF)?.into_iter().map(|part| part.path).collect(),
    };
    if tables.is_empty() && look::is_file(&path.join(files::PIPELINE))? {
        return Err(Error::data("this run is a study of the input pipeline, which has no step times")
            .at(path.display().to_string())
            .hint("`batchstep plot` draws it"));
    }
    if tables.is_empty() && look::is_file(&path.join(files::FIT))? {
        return Err(Error::data("this run is a study of fits, whose steps are in fit.parquet")
            .at(path.display().to_string())
            .hint("`batchstep plot` draws it"));
    }
    if tables.is_empty() && look::is_file(&path.join(files::EPOCHS))? {
        return Err(Error::data("this run is a training, whose times are those of epochs")
            .at(path.display().to_string())
            .hint(format!(
                "`batchstep plot` draws it; give {} to look for jumps",
                path.join(files::EPOCHS).display()
            )));
    }
    if tables.is_empty() {
        return Err(Error::data("this folder holds no steps.parquet and no parts of a run")
            .at(path.display().to_string())
            .hint("give a run directory such as results/vgg16, a Parquet file, or a CSV file"));
    }
    Ok(Form::Parquet(tables))
}

fn scan_parquet(
    source: &Path,
    parts: &[PathBuf],
    wanted: &[&str],
    each: &mut dyn FnMut(Table) -> Result<()>,
) -> Result<()> {
    let (names, _) = parquet::describe(&parts[0])?;
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
            each(Table { source: source.to_path_buf(), columns, first_line, rows })?;
            first_line += rows;
            Ok(())
        })?;
    }
    Ok(())
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

/// A text file whose head was looked at.
type Text = Chain<Cursor<Vec<u8>>, Lines>;

/// A longer header line is none: whatever the file is, it is not a table.
const LONGEST_HEADER: u64 = 1 << 20;
/// Neither is a longer line: it would be in memory as a whole.
const LONGEST_LINE: usize = 1 << 24;

/// A text file that fails where a line does not end.
struct Lines {
    file: BufReader<File>,
    /// Of the line so far.
    length: usize,
}

impl Read for Lines {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        let read = self.file.read(bytes)?;
        self.length = match bytes[..read].iter().rposition(|byte| *byte == b'\n') {
            Some(end) => read - end,
            None => self.length + read,
        };
        if self.length > LONGEST_LINE {
            let what = format!("a line is longer than {LONGEST_LINE} bytes: it is no table");
            return Err(std::io::Error::new(std::io::ErrorKind::InvalidData, what));
        }
        Ok(read)
    }
}

/// A reader over the text after a byte-order mark, with the separator that the header line uses most.
fn csv_reader(path: &Path) -> Result<csv::Reader<Text>> {
    let file = File::open(path).map_err(|e| Error::io("open the file", path, &e))?;
    let mut file = BufReader::new(file);
    let (mut head, mut line) = (Vec::new(), Vec::new());
    loop {
        line.clear();
        let left = LONGEST_HEADER - head.len() as u64;
        file.by_ref().take(left).read_until(b'\n', &mut line).map_err(|e| Error::io("read the file", path, &e))?;
        if head.is_empty() && line.starts_with(b"\xef\xbb\xbf") {
            line.drain(..3);
        }
        head.extend_from_slice(&line);
        if !line.starts_with(b"#") || head.len() as u64 >= LONGEST_HEADER {
            break;
        }
    }
    if head.len() as u64 >= LONGEST_HEADER {
        return Err(Error::data(format!("its first line is longer than {LONGEST_HEADER} bytes: it is no table"))
            .at(path.display().to_string())
            .hint("a table begins with a line of column names"));
    }
    let count = |separator: u8| line.iter().filter(|&&b| b == separator).count();
    let separator = [b',', b';', b'\t'].into_iter().max_by_key(|&s| (count(s), s == b',')).unwrap_or(b',');
    let mut builder = csv::ReaderBuilder::new();
    builder.delimiter(separator).comment(Some(b'#')).trim(csv::Trim::All);
    Ok(builder.from_reader(Cursor::new(head).chain(Lines { file, length: 0 })))
}

fn names(header: &csv::StringRecord) -> Vec<String> {
    header.iter().map(str::to_string).collect()
}

fn scan_csv(path: &Path, wanted: &[&str], each: &mut dyn FnMut(Table) -> Result<()>) -> Result<()> {
    let mut reader = csv_reader(path)?;
    let header = names(reader.headers().map_err(|e| csv_error(path, &e))?);
    let chosen: Vec<(usize, &str)> =
        wanted.iter().filter_map(|name| Some((header.iter().position(|column| column == name)?, *name))).collect();
    let mut texts = vec![Texts::default(); chosen.len()];
    let mut batch = |texts: &mut Vec<Texts>, rows: usize, first_line: usize| {
        let taken = std::mem::replace(texts, vec![Texts::default(); chosen.len()]);
        let columns = chosen.iter().zip(taken).map(|((_, name), texts)| (name.to_string(), Values::Texts(texts)));
        each(Table { source: path.to_path_buf(), columns: columns.collect(), first_line, rows })
    };
    let (mut rows, mut first_line) = (0, 2);
    let mut record = csv::StringRecord::new();
    while reader.read_record(&mut record).map_err(|e| csv_error(path, &e))? {
        if rows == 0 {
            first_line = record.position().map_or(first_line, |position| position.line() as usize);
        }
        for ((column, _), texts) in chosen.iter().zip(&mut texts) {
            texts.push(record.get(*column).unwrap_or(""));
        }
        rows += 1;
        if rows == parquet::BATCH {
            batch(&mut texts, rows, first_line)?;
            rows = 0;
        }
    }
    batch(&mut texts, rows, first_line)
}

fn csv_error(path: &Path, error: &csv::Error) -> Error {
    let place = match error.position() {
        Some(position) => format!("{}:{}", path.display(), position.line()),
        None => path.display().to_string(),
    };
    let decimal_commas =
        matches!(error.kind(), csv::ErrorKind::UnequalLengths { expected_len, len, .. } if len > expected_len);
    let what = match error.kind() {
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            format!("this line has {len} fields, the header has {expected_len}")
        }
        csv::ErrorKind::Io(error) if error.kind() == std::io::ErrorKind::InvalidData => error.to_string(),
        csv::ErrorKind::Io(error) => return Error::io("read the file", path, error),
        csv::ErrorKind::Utf8 { .. } => "this is not UTF-8 text".to_string(),
        other => format!("not a CSV table: {other:?}"),
    };
    Error::data(what).at(place).hint(match decimal_commas {
        true => "where numbers have decimal commas, separate the fields by semicolons or tabs",
        false => "batchstep reads CSV with a header line, Parquet, and its own run directories",
    })
}
