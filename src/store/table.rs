//! Reading anyone's data: a run directory of ours, a Parquet file or a CSV file of another program.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use polars::prelude::{DataFrame, DataType};

use super::directory::files;
use super::parquet::{self, Metadata};
use crate::error::{Error, Result};

/// Some columns of a table, as numbers or as texts.
#[derive(Debug)]
pub struct Table {
    /// Where it came from, for messages and reports.
    pub source: PathBuf,
    pub metadata: Metadata,
    columns: BTreeMap<String, Values>,
    rows: usize,
}

/// One column.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// Missing values are NaN.
    Numbers(Vec<f64>),
    /// Missing values are empty.
    Texts(Vec<String>),
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
            Form::Csv => csv_reader(path)?.0.headers().map(names).map_err(|e| csv_error(path, &e)),
        }
    }

    /// Reads those of the `wanted` columns that are there.
    ///
    /// # Errors
    /// As [`Table::names`].
    pub fn read(path: &Path, wanted: &[&str]) -> Result<Self> {
        match form(path)? {
            Form::Parquet(parts) => from_parquet(path, &parts, wanted),
            Form::Csv => from_csv(path, wanted),
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
            Values::Texts(texts) => texts.iter().enumerate().map(|(row, text)| self.number(name, row, text)).collect(),
        }
    }

    fn number(&self, name: &str, row: usize, text: &str) -> Result<f64> {
        let text = text.trim();
        if text.is_empty() || ["na", "nan", "null", "none"].contains(&text.to_lowercase().as_str()) {
            return Ok(f64::NAN);
        }
        text.parse().map_err(|_| {
            Error::data(format!("`{text}` in the column `{name}` is not a number"))
                // The header is line 1.
                .at(format!("{}:{}", self.source.display(), row + 2))
        })
    }

    /// The column as texts; whole numbers are written without a fraction.
    ///
    /// # Errors
    /// [`crate::error::Kind::Data`] where it is missing.
    pub fn texts(&self, name: &str) -> Result<Vec<String>> {
        Ok(match self.column(name)? {
            Values::Texts(texts) => texts.clone(),
            Values::Numbers(numbers) => numbers.iter().map(f64::to_string).collect(),
        })
    }

    fn column(&self, name: &str) -> Result<&Values> {
        self.columns
            .get(name)
            .ok_or_else(|| Error::data(format!("the column `{name}` is missing")).at(self.source.display().to_string()))
    }
}

fn form(path: &Path) -> Result<Form> {
    if path.is_dir() {
        return run_directory(path);
    }
    let mut start = [0u8; 4];
    let mut file = std::fs::File::open(path).map_err(|e| Error::io("open the file", path, &e))?;
    let read = std::io::Read::read(&mut file, &mut start).map_err(|e| Error::io("read the file", path, &e))?;
    let parquet = &start[..read] == b"PAR1" || path.extension().is_some_and(|extension| extension == "parquet");
    Ok(if parquet { Form::Parquet(vec![path.to_path_buf()]) } else { Form::Csv })
}

/// A sealed run's one file, or the parts of a run that is under way.
fn run_directory(path: &Path) -> Result<Form> {
    let sealed = path.join(files::STEPS);
    let mut tables: Vec<PathBuf> = if sealed.is_file() { vec![sealed] } else { Vec::new() };
    if tables.is_empty() {
        let parts = path.join(files::PARTS).read_dir().into_iter().flatten();
        tables.extend(parts.filter_map(|entry| Some(entry.ok()?.path())).filter(|part| {
            let name = part.file_name().unwrap_or_default().to_string_lossy().into_owned();
            name.starts_with("visit-") && name.ends_with(".parquet")
        }));
        tables.sort();
    }
    if tables.is_empty() {
        return Err(Error::data("this folder holds no steps.parquet and no parts of a run")
            .at(path.display().to_string())
            .hint("give a run directory such as results/vgg16, a Parquet file, or a CSV file"));
    }
    Ok(Form::Parquet(tables))
}

fn from_parquet(source: &Path, parts: &[PathBuf], wanted: &[&str]) -> Result<Table> {
    let (names, metadata) = parquet::describe(&parts[0])?;
    let chosen: Vec<String> =
        wanted.iter().filter(|name| names.iter().any(|n| n == *name)).map(ToString::to_string).collect();
    let mut whole: Option<DataFrame> = None;
    for part in parts {
        let frame = parquet::read(part, Some(chosen.clone()))?;
        match &mut whole {
            None => whole = Some(frame),
            Some(whole) => {
                whole.vstack_mut(&frame).map_err(|e| Error::data(e.to_string()).at(part.display().to_string()))?;
            }
        }
    }
    let frame = whole.unwrap_or_default();
    let mut columns = BTreeMap::new();
    for name in chosen {
        let values = parquet_values(&frame, &name).map_err(|e| e.at(source.display().to_string()))?;
        columns.insert(name, values);
    }
    Ok(Table { source: source.to_path_buf(), metadata, columns, rows: frame.height() })
}

fn parquet_values(frame: &DataFrame, name: &str) -> Result<Values> {
    let refuse = |e: polars::prelude::PolarsError| Error::data(format!("the column `{name}` can't be used: {e}"));
    let column = frame.column(name).map_err(refuse)?;
    if column.dtype().is_primitive_numeric() || column.dtype().is_bool() {
        let numbers = column.cast(&DataType::Float64).map_err(refuse)?;
        let numbers = numbers.f64().map_err(refuse)?;
        return Ok(Values::Numbers(numbers.iter().map(|value| value.unwrap_or(f64::NAN)).collect()));
    }
    let texts = column.cast(&DataType::String).map_err(refuse)?;
    let texts = texts.str().map_err(refuse)?;
    Ok(Values::Texts(texts.iter().map(|value| value.unwrap_or("").to_string()).collect()))
}

/// A reader over the text after a byte-order mark, with the separator that the header line uses most.
fn csv_reader(path: &Path) -> Result<(csv::Reader<std::io::Cursor<Vec<u8>>>, u8)> {
    let bytes = std::fs::read(path).map_err(|e| Error::io("read the file", path, &e))?;
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").map(<[u8]>::to_vec).unwrap_or(bytes);
    let header: Vec<u8> = bytes.split(|&b| b == b'\n').find(|line| !line.starts_with(b"#")).unwrap_or(&[]).to_vec();
    let count = |separator: u8| header.iter().filter(|&&b| b == separator).count();
    let separator = [b',', b';', b'\t'].into_iter().max_by_key(|&s| (count(s), s == b',')).unwrap_or(b',');
    let mut builder = csv::ReaderBuilder::new();
    builder.delimiter(separator).comment(Some(b'#')).trim(csv::Trim::All);
    Ok((builder.from_reader(std::io::Cursor::new(bytes)), separator))
}

fn names(header: &csv::StringRecord) -> Vec<String> {
    header.iter().map(str::to_string).collect()
}

fn from_csv(path: &Path, wanted: &[&str]) -> Result<Table> {
    let (mut reader, _) = csv_reader(path)?;
    let header = names(reader.headers().map_err(|e| csv_error(path, &e))?);
    let chosen: Vec<(usize, &str)> =
        wanted.iter().filter_map(|name| Some((header.iter().position(|column| column == name)?, *name))).collect();
    let mut texts = vec![Vec::new(); chosen.len()];
    let mut rows = 0;
    for record in reader.records() {
        let record = record.map_err(|e| csv_error(path, &e))?;
        for ((column, _), values) in chosen.iter().zip(&mut texts) {
            values.push(record.get(*column).unwrap_or("").to_string());
        }
        rows += 1;
    }
    let columns =
        chosen.iter().zip(texts).map(|((_, name), values)| (name.to_string(), Values::Texts(values))).collect();
    Ok(Table { source: path.to_path_buf(), metadata: Metadata::new(), columns, rows })
}

fn csv_error(path: &Path, error: &csv::Error) -> Error {
    let place = match error.position() {
        Some(position) => format!("{}:{}", path.display(), position.line()),
        None => path.display().to_string(),
    };
    let what = match error.kind() {
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            format!("this line has {len} fields, the header has {expected_len}")
        }
        csv::ErrorKind::Utf8 { .. } => "this is not UTF-8 text".to_string(),
        other => format!("not a CSV table: {other:?}"),
    };
    Error::data(what).at(place).hint("batchstep reads CSV with a header line, Parquet, and its own run directories")
}
