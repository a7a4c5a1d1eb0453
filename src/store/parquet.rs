//! Parquet files as they are read: what one claims is checked before it is unpacked.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use polars::io::mmap::MmapBytesReader;
use polars::io::parquet::read::FileMetadata;
use polars::prelude::{ArrowDataType, ArrowSchema, DataFrame, ParquetReader, PolarsError, PolarsResult, SerReader};

use super::names::keys;
use super::schema::SCHEMA_VERSION;
use super::upgrade::upgrade;
use super::{footer, pages, panic_guard};
use crate::device::free_memory;
use crate::error::{Error, Kind, Result};
use crate::table;

/// Rows that are in memory at once, and in one row group of our files: a row of `steps.parquet` is about 1 kB there.
pub(super) const BATCH: usize = 1 << 15;

/// Key-value metadata of a Parquet file.
pub type Metadata = BTreeMap<String, String>;

/// Reads the named columns that are there, all where `columns` is `None`, [`BATCH`] rows at a time; a row group that is
/// larger than a few batches is decoded in pieces.
///
/// # Errors
/// [`crate::error::Kind::Data`] where the file is not Parquet or damaged, [`crate::error::Kind::Io`] where it can't be read;
/// what `each` refuses.
pub(super) fn read(
    path: &Path,
    columns: Option<&[String]>,
    mut each: impl FnMut(&DataFrame) -> Result<()>,
) -> Result<()> {
    let table = Checked::open(path)?;
    let version = metadata(&table.footer).get(keys::VERSION).and_then(|version| version.parse().ok()).unwrap_or(0);
    table.batches(columns, |frame| each(&upgrade(frame, version)?).map(|()| true))
}

/// The bytes of a table, open from beginning to end, since another process may put a new table in its place meanwhile.
#[derive(Debug)]
enum Bytes {
    File(File),
    Piped(Arc<[u8]>),
}

impl Bytes {
    fn open(path: &Path) -> Result<Self> {
        Ok(match table::piped(path)? {
            Some(bytes) => Self::Piped(bytes),
            None => Self::File(File::open(path).map_err(|e| Error::io("open the table", path, &e))?),
        })
    }

    fn reader(&self, path: &Path) -> Result<Box<dyn MmapBytesReader>> {
        Ok(match self {
            Self::File(file) => Box::new(file.try_clone().map_err(|e| Error::io("open the table", path, &e))?),
            Self::Piped(bytes) => Box::new(Cursor::new(bytes.clone())),
        })
    }
}

/// A table whose footer and pages claim no more than there can be.
#[derive(Debug)]
pub(super) struct Checked {
    pub path: PathBuf,
    bytes: Bytes,
    pub schema: Arc<ArrowSchema>,
    pub footer: Arc<FileMetadata>,
    /// For each row group, its columns with the bytes of their unpacked pages.
    unpacked: Vec<Vec<(String, u64)>>,
}

impl Checked {
    /// # Errors
    /// As [`read`].
    pub fn open(path: &Path) -> Result<Self> {
        let (bytes, mut reader, footer) = open_checked(path)?;
        let claimed = footer.row_groups.iter().map(|group| group.num_rows()).fold(0, usize::saturating_add);
        if claimed > MOST_ROWS {
            return Err(damaged(path, format!("the table claims {claimed} rows")));
        }
        let unpacked = check_pages(path, &bytes, &footer)?;
        let schema = unless_it_panics("read the table", path, || reader.schema())?;
        Ok(Self { path: path.to_path_buf(), bytes, schema, footer, unpacked })
    }

    /// The rows of each row group.
    pub fn groups(&self) -> impl Iterator<Item = usize> {
        self.footer.row_groups.iter().map(|group| group.num_rows())
    }

    /// Gives the named columns, all where `columns` is `None`, to `each`, [`BATCH`] rows at a time and at least once, until it has enough.
    ///
    /// # Errors
    /// As [`read`]; what `each` refuses.
    pub fn batches(&self, columns: Option<&[String]>, mut each: impl FnMut(DataFrame) -> Result<bool>) -> Result<()> {
        // A row of many columns takes more memory.
        let most = (8 * DECODED / columns.map_or(8, <[String]>::len).max(8)).max(BATCH);
        for (start, length) in pieces(self.groups(), most) {
            let frame = self.decode(columns, start, length)?;
            for offset in (0..frame.height().max(1)).step_by(BATCH) {
                let part = frame.slice(offset as i64, BATCH);
                // polars panics over a column of a type that it was built without.
                let goes_on = panic_guard::guarded(|| each(part));
                if !goes_on.unwrap_or_else(|| Err(unusable(&self.path, "a column")))? {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Some rows.
    ///
    /// # Errors
    /// As [`read`].
    pub fn decode(&self, columns: Option<&[String]>, start: usize, length: usize) -> Result<DataFrame> {
        let most = free_memory::bytes().map_or(MOST_UNPACKED, |free| MOST_UNPACKED.min(free / 2));
        self.check_memory(columns, start, length, most)?;
        let reader = ParquetReader::new(self.bytes.reader(&self.path)?);
        let mut reader = reader.with_columns(columns.map(<[String]>::to_vec)).with_slice(Some((start, length)));
        reader.set_metadata(self.footer.clone());
        unless_it_panics("read the table", &self.path, || reader.finish()).map_err(|error| {
            let is_wanted = |name: &str| columns.is_none_or(|columns| columns.iter().any(|column| column == name));
            let mut strange = self.schema.iter_values().filter(|field| !is_read(&field.dtype));
            match strange.find(|field| is_wanted(&field.name)) {
                Some(field) => unusable(&self.path, &format!("the column `{}`", field.name)),
                None => error,
            }
        })
    }

    /// Refuses to unpack at once what would take more than `most` bytes of memory: a few kilobytes can hold gigabytes.
    fn check_memory(&self, columns: Option<&[String]>, start: usize, length: usize, most: u64) -> Result<()> {
        let is_wanted = |name: &String| columns.is_none_or(|columns| columns.contains(name));
        let (mut first, mut bytes) = (0, 0u64);
        for (rows, chunks) in self.groups().zip(&self.unpacked) {
            if first < start + length && start < first + rows {
                let wanted = chunks.iter().filter(|(name, _)| is_wanted(name));
                bytes = wanted.fold(bytes, |sum, (_, bytes)| sum.saturating_add(*bytes));
            }
            first += rows;
        }
        // The page, its values, and their copy in our rows.
        let needed = bytes.saturating_mul(3);
        if needed <= most {
            return Ok(());
        }
        let gigabytes = |bytes: u64| bytes as f64 / 1e9;
        let what = format!(
            "unpacked, a row group of these columns takes about {:.1} GB of memory, and at most {:.1} GB are taken here",
            gigabytes(needed),
            gigabytes(most)
        );
        Err(Error::new(Kind::Io, what)
            .at(self.path.display().to_string())
            .hint("write the table with smaller row groups; the limit is half of the free memory, and 4 GiB"))
    }
}

/// Refuses a file whose pages claim more than their columns hold; see [`pages`]. What they take when they are unpacked, by row group and
/// column.
fn check_pages(path: &Path, bytes: &Bytes, footer: &FileMetadata) -> Result<Vec<Vec<(String, u64)>>> {
    let mut file = bytes.reader(path)?;
    let groups = footer.row_groups.iter().map(|group| {
        let columns = group.parquet_columns().iter().map(|column| {
            let range = unless_it_panics("read the table", path, || Ok(column.byte_range()))?;
            let (values, rows) = (column.num_values(), group.num_rows() as i64);
            // A value in each row, unless a row may hold a list.
            if values < 0 || (column.descriptor().descriptor.max_rep_level == 0 && values != rows) {
                return Err(damaged(path, format!("a column claims {values} values in {rows} rows")));
            }
            let length = range.end.saturating_sub(range.start);
            let chunk = pages::Chunk { start: range.start, length, values: values.unsigned_abs() };
            let bytes = pages::check(&mut file, chunk).map_err(|flaw| flawed(path, flaw))?;
            Ok((column.descriptor().path_in_schema.first().map(ToString::to_string).unwrap_or_default(), bytes))
        });
        columns.collect()
    });
    groups.collect()
}

/// Spans of rows that are decoded at once: whole row groups, together about `most` rows, or pieces of a larger one.
/// At least one span, so that a table without rows is seen too.
pub(super) fn pieces(groups: impl Iterator<Item = usize>, most: usize) -> Vec<(usize, usize)> {
    let mut pieces = vec![(0, 0)];
    let mut start = 0;
    for rows in groups {
        let mut done = 0;
        while done < rows {
            let length = (rows - done).min(most);
            match pieces.last_mut() {
                Some(last) if last.1 + length <= most => last.1 += length,
                _ => pieces.push((start + done, length)),
            }
            done += length;
        }
        start += rows;
    }
    pieces
}

/// Row groups of images are the largest that people have, some hundred megabytes.
const MOST_UNPACKED: u64 = 4 << 30;

/// No table that a person measured; a damaged footer can claim any number.
const MOST_ROWS: usize = 1 << 36;

/// The remedy of an error says so if the file itself is the reason.
pub(super) const DAMAGED: &str = "the file is damaged, cut short, or not Parquet";

fn damaged(path: &Path, what: String) -> Error {
    Error::data(what).at(path.display().to_string()).hint(DAMAGED)
}

fn flawed(path: &Path, flaw: footer::Flaw) -> Error {
    match flaw {
        footer::Flaw::Unread(error) => Error::io("read the table", path, &error),
        footer::Flaw::Damaged(what) => damaged(path, what),
        footer::Flaw::TooLarge(what) => Error::new(Kind::Io, what)
            .at(path.display().to_string())
            .hint("write it with fewer columns and in fewer row groups"),
    }
}

fn unusable(path: &Path, column: &str) -> Error {
    Error::data(format!("{column} is of a type that cannot be used here"))
        .at(path.display().to_string())
        .hint("write its numbers as int64 or float64, its texts as UTF-8")
}

/// Whether a column of that type can be read: polars is built here without dates, durations and decimals.
pub(super) fn is_read(of: &ArrowDataType) -> bool {
    use ArrowDataType as Type;
    match of {
        Type::Null
        | Type::Boolean
        | Type::Int8
        | Type::Int16
        | Type::Int32
        | Type::Int64
        | Type::UInt8
        | Type::UInt16
        | Type::UInt32
        | Type::UInt64
        | Type::Float32
        | Type::Float64
        | Type::Utf8View
        | Type::BinaryView
        | Type::FixedSizeBinary(_) => true,
        Type::Dictionary(_, values, _) => is_read(values),
        Type::LargeList(inner) => is_read(&inner.dtype),
        Type::Struct(fields) => fields.iter().all(|field| is_read(&field.dtype)),
        _ => false,
    }
}

/// Runs `work` and turns polars' panics into errors as well: it panics on some damaged files.
pub(super) fn unless_it_panics<T>(doing: &str, path: &Path, work: impl FnOnce() -> PolarsResult<T>) -> Result<T> {
    let done = panic_guard::guarded(work).ok_or_else(|| damaged(path, format!("cannot {doing}")))?;
    done.map_err(|e| wrap(doing, path, &e))
}

/// See [`pieces`]; 2^18 is the size of the row groups that polars writes.
pub(super) const DECODED: usize = 1 << 18;

/// The names of the columns and the key-value metadata.
///
/// # Errors
/// As [`read`].
pub(super) fn describe(path: &Path) -> Result<(Vec<String>, Metadata)> {
    let (_, mut reader, footer) = open_checked(path)?;
    let names = unless_it_panics("read the table", path, || reader.schema())?;
    let names = names.iter_names().map(ToString::to_string).collect();
    Ok((names, metadata(&footer)))
}

pub(super) fn metadata(footer: &FileMetadata) -> Metadata {
    let pairs = footer.key_value_metadata().iter().flatten();
    pairs.filter_map(|pair| Some((pair.key.to_string(), pair.value.as_ref()?.to_string()))).collect()
}

/// A footer as a file of its own.
type Footer = ParquetReader<Cursor<Vec<u8>>>;

/// Opens the table and reads its footer, once that is known to be one; see [`footer`].
fn open_checked(path: &Path) -> Result<(Bytes, Footer, Arc<FileMetadata>)> {
    let bytes = Bytes::open(path)?;
    let footer = footer::read(&mut bytes.reader(path)?).map_err(|flaw| flawed(path, flaw))?;
    let mut reader = ParquetReader::new(Cursor::new(footer));
    let footer = unless_it_panics("read the table", path, || reader.get_metadata().cloned())?;
    Ok((bytes, reader, footer))
}

pub(super) fn wrap(doing: &str, path: &Path, error: &PolarsError) -> Error {
    match error {
        PolarsError::IO { error, .. } => Error::io(doing, path, error),
        other => Error::data(format!("cannot {doing}: {}", other.to_string().lines().next().unwrap_or("damaged")))
            .at(path.display().to_string())
            .hint(DAMAGED),
    }
}

/// Refuses a table of a newer schema, and one that batchstep has not written.
pub(super) fn check_version(path: &Path) -> Result<()> {
    let (_, metadata) = describe(path)?;
    match metadata.get(keys::VERSION).map(|version| version.parse::<u32>()) {
        Some(Ok(version)) if version <= SCHEMA_VERSION => Ok(()),
        Some(Ok(version)) => {
            Err(Error::data(format!("schema version {version} is newer than this batchstep's {SCHEMA_VERSION}"))
                .at(path.display().to_string())
                .hint("install a newer batchstep"))
        }
        _ => Err(Error::data("this table was not written by batchstep").at(path.display().to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::super::schema::CellRow;
    use super::super::written;
    use super::*;

    /// Eight million equal letters are a few hundred bytes in the file.
    #[test]
    fn what_unpacks_to_more_than_the_limit_is_refused_before_it_is_unpacked() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.parquet");
        let row = CellRow { model: "a".repeat(8 << 20), ..CellRow::default() };
        written::write(&path, &Metadata::new(), true, |put| put(row)).expect("written");
        assert!(path.metadata().expect("there").len() < 100_000);
        let table = Checked::open(&path).expect("opens");
        let error = table.check_memory(None, 0, 1, 20 << 20).expect_err("refused");
        assert!(error.kind() == Kind::Io && error.to_string().contains("at most 0.0 GB are taken here"), "{error}");
        table.check_memory(None, 0, 1, 64 << 20).expect("three times eight million");
        table.check_memory(Some(&["steps".to_owned()]), 0, 1, 1 << 20).expect("another column");
    }

    #[test]
    fn row_groups_are_joined_or_cut_into_pieces_of_like_size() {
        assert_eq!(pieces([].into_iter(), DECODED), [(0, 0)]);
        assert_eq!(pieces([100, 200].into_iter(), DECODED), [(0, 300)]);
        assert_eq!(pieces([DECODED, 5].into_iter(), DECODED), [(0, DECODED), (DECODED, 5)]);
        let cut = pieces([2 * DECODED + 7, DECODED - 7].into_iter(), DECODED);
        assert_eq!(cut, [(0, DECODED), (DECODED, DECODED), (2 * DECODED, DECODED)]);
    }
}
