//! Parquet files, written whole or not at all, with their story in their own metadata.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use polars::prelude::{
    DataFrame, KeyValueMetadata, ParquetCompression, ParquetReader, ParquetWriter, PolarsError, SerReader,
};

use crate::error::{Error, Result};

/// Key-value metadata of a Parquet file.
pub type Metadata = BTreeMap<String, String>;

/// Writes `bytes` to `path` so that a reader sees the old contents or the new, never a part: a temporary file beside it,
/// flushed to the disk, then renamed.
///
/// # Errors
/// [`crate::error::Kind::Io`]; the temporary file is gone and the old contents stay.
pub fn write_whole(path: &Path, fill: impl FnOnce(&mut File) -> Result<()>) -> Result<()> {
    replace(path, true, fill)
}

/// As [`write_whole`]; where `durable` is false, without waiting for the disk: such a file survives the end of the process,
/// but perhaps not a power failure.
fn replace(path: &Path, durable: bool, fill: impl FnOnce(&mut File) -> Result<()>) -> Result<()> {
    let temporary = temporary_beside(path);
    let attempt = || {
        let mut file = File::create(&temporary).map_err(|e| Error::io("create the file", &temporary, &e))?;
        fill(&mut file)?;
        if durable {
            file.sync_all().map_err(|e| Error::io("write the file", path, &e))?;
        }
        std::fs::rename(&temporary, path).map_err(|e| Error::io("rename the finished file", path, &e))
    };
    attempt().inspect_err(|_| drop(std::fs::remove_file(&temporary)))
}

fn temporary_beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".tmp");
    path.with_file_name(name)
}

/// Writes text, whole or not at all.
///
/// # Errors
/// As [`write_whole`].
pub fn write_text(path: &Path, text: &str) -> Result<()> {
    write_whole(path, |file| file.write_all(text.as_bytes()).map_err(|e| Error::io("write the file", path, &e)))
}

/// Writes a table with metadata, whole or not at all; durable as in [`replace`].
///
/// # Errors
/// As [`write_whole`].
pub(super) fn write(path: &Path, frame: &mut DataFrame, metadata: &Metadata, durable: bool) -> Result<()> {
    let pairs = metadata.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
    replace(path, durable, |file| {
        // The footer is written a few bytes at a time.
        let mut file = Remembering { file, failed: None };
        let mut buffer = BufWriter::new(&mut file);
        let written = ParquetWriter::new(&mut buffer)
            .with_compression(ParquetCompression::Zstd(None))
            .with_key_value_metadata(Some(KeyValueMetadata::from_static(pairs)))
            .set_parallel(false)
            .finish(frame)
            .and_then(|_| Ok(buffer.flush()?));
        // What the buffer still holds is of no use any more; dropping it would try the full disk once again.
        drop(buffer.into_parts());
        match (written, file.failed) {
            (Ok(()), _) => Ok(()),
            (Err(_), Some(error)) => Err(Error::io("write the table", path, &error)),
            (Err(error), None) => Err(wrap("write the table", path, &error)),
        }
    })
}

/// A file that remembers why writing to it failed: polars turns an operating system's error into words of its own.
struct Remembering<'a> {
    file: &'a mut File,
    failed: Option<std::io::Error>,
}

impl Write for Remembering<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.file.write(bytes).inspect_err(|error| {
            self.failed =
                Some(error.raw_os_error().map_or_else(|| error.kind().into(), std::io::Error::from_raw_os_error));
        })
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}

/// Reads the named columns that are there; all where `columns` is `None`.
///
/// # Errors
/// [`crate::error::Kind::Data`] where the file is not Parquet or damaged, [`crate::error::Kind::Io`] where it can't be read.
pub(super) fn read(path: &Path, columns: Option<Vec<String>>) -> Result<DataFrame> {
    open(path)?.with_columns(columns).finish().map_err(|e| wrap("read the table", path, &e))
}

/// The names of the columns and the key-value metadata.
///
/// # Errors
/// As [`read`].
pub(super) fn describe(path: &Path) -> Result<(Vec<String>, Metadata)> {
    let mut reader = open(path)?;
    let names = reader.schema().map_err(|e| wrap("read the table", path, &e))?;
    let names = names.iter_names().map(ToString::to_string).collect();
    let footer = reader.get_metadata().map_err(|e| wrap("read the table", path, &e))?;
    let pairs = footer.key_value_metadata().iter().flatten();
    let metadata = pairs.filter_map(|pair| Some((pair.key.to_string(), pair.value.as_ref()?.to_string()))).collect();
    Ok((names, metadata))
}

fn open(path: &Path) -> Result<ParquetReader<File>> {
    let file = File::open(path).map_err(|e| Error::io("open the table", path, &e))?;
    Ok(ParquetReader::new(file))
}

fn wrap(doing: &str, path: &Path, error: &PolarsError) -> Error {
    match error {
        PolarsError::IO { error, .. } => Error::io(doing, path, error),
        other => Error::data(format!("cannot {doing}: {}", other.to_string().lines().next().unwrap_or("damaged")))
            .at(path.display().to_string())
            .hint("the file is damaged, cut short, or not Parquet"),
    }
}
