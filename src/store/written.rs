//! Parquet files as they are written: whole or not at all, with their story in their own metadata.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use polars::prelude::{KeyValueMetadata, ParquetCompression, ParquetWriter, PolarsError, StatisticsOptions};
use serde_json::json;

use super::names::keys;
use super::parquet::{BATCH, Metadata, read, wrap};
use super::record::{ColumnFacts, Record};
use super::schema::SCHEMA_VERSION;
use crate::error::{Error, Kind, Result};
use crate::os::atomic;

/// Writes a table with metadata, whole or not at all; a durable one is read again before it takes the place of another. `fill` gives the rows one after the other; only [`BATCH`] of them are in
/// memory at once. Where `durable` is false nothing waits for the disk: such a file survives the end of the process, but
/// perhaps not a power failure.
///
/// # Errors
/// As [`atomic::replace`], and what `fill` refuses.
pub(super) fn write<R: Record>(
    path: &Path,
    metadata: &Metadata,
    durable: bool,
    fill: impl FnOnce(&mut dyn FnMut(R) -> Result<()>) -> Result<()>,
) -> Result<()> {
    let pairs = metadata.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
    atomic::replace(path, |temporary| {
        let file = File::create(temporary).map_err(|e| Error::io("create the file", temporary, &e))?;
        let mut file = Remembering { file, failed: None };
        // The footer is written a few bytes at a time.
        let mut buffer = BufWriter::new(&mut file);
        let writer = ParquetWriter::new(&mut buffer)
            .with_compression(if durable { ParquetCompression::Zstd(None) } else { ParquetCompression::Uncompressed })
            .with_statistics(if durable { StatisticsOptions::default() } else { StatisticsOptions::empty() })
            .with_key_value_metadata(Some(KeyValueMetadata::from_static(pairs)))
            .set_parallel(false);
        let written = write_rows(writer, path, fill).and_then(|rows| {
            buffer.flush().map_err(|e| Error::io("write the table", path, &e))?;
            Ok(rows)
        });
        // What the buffer still holds is of no use any more; dropping it would try the full disk once again.
        drop(buffer.into_parts());
        match (written, file.failed) {
            (Err(_), Some(error)) => Err(Error::io("write the table", path, &error)),
            (Err(error), None) => Err(error),
            (Ok(rows), _) if durable => {
                file.file.sync_all().map_err(|e| Error::io("write the table", path, &e))?;
                read_back::<R>(temporary, rows).map_err(|error| error.at(path.display().to_string()))
            }
            (Ok(_), _) => Ok(()),
        }
    })
}

/// Writes a durable table, whose metadata also say what each column means.
pub(super) fn write_table<R: Record>(
    path: &Path,
    metadata: &Metadata,
    fill: impl FnOnce(&mut dyn FnMut(R) -> Result<()>) -> Result<()>,
) -> Result<()> {
    let column = |facts: &ColumnFacts| json!({"name": facts.name, "unit": facts.unit, "meaning": facts.meaning});
    let columns: Vec<serde_json::Value> = R::columns().iter().map(column).collect();
    let mut metadata = metadata.clone();
    metadata.insert(keys::COLUMNS.to_string(), serde_json::Value::from(columns).to_string());
    write(path, &metadata, true, fill)
}

/// The metadata of a table of a run.
pub(super) fn metadata_of_run(spec: &str, environment: &str, complete: bool) -> Metadata {
    let (spec, environment) = (spec.to_owned(), environment.to_owned());
    let (version, complete) = (SCHEMA_VERSION.to_string(), complete.to_string());
    let values = [version, spec, environment, complete];
    let keys = [keys::VERSION, keys::SPEC, keys::ENVIRONMENT, keys::COMPLETE];
    keys.map(str::to_owned).into_iter().zip(values).collect()
}

/// Reads the written file back: the caller may then remove the source of the rows, and must know that they are stored.
fn read_back<R: Record>(written: &Path, rows: usize) -> Result<()> {
    let mut found = 0;
    read(written, None, |frame| R::rows(frame).map(|rows| found += rows.len()))?;
    if found == rows {
        return Ok(());
    }
    Err(Error::new(Kind::Io, format!("of {rows} rows that were written, {found} can be read"))
        .hint("nothing was removed: see to the disk, or run into another folder with `--out DIR`"))
}

fn write_rows<R: Record, W: Write>(
    writer: ParquetWriter<W>,
    path: &Path,
    fill: impl FnOnce(&mut dyn FnMut(R) -> Result<()>) -> Result<()>,
) -> Result<usize> {
    let refuse = |error: PolarsError| wrap("write the table", path, &error);
    let empty = R::frame(&[]).map_err(refuse)?;
    let mut writer = writer.batched(empty.schema()).map_err(refuse)?;
    let (mut rows, mut count): (Vec<R>, usize) = (Vec::new(), 0);
    let mut group = |rows: &mut Vec<R>| -> Result<()> {
        let frame = R::frame(rows).map_err(refuse)?;
        rows.clear();
        writer.write_batch(&frame).map_err(refuse)
    };
    fill(&mut |row| {
        rows.push(row);
        count += 1;
        if rows.len() < BATCH { Ok(()) } else { group(&mut rows) }
    })?;
    group(&mut rows)?;
    writer.finish().map_err(refuse)?;
    Ok(count)
}

/// A file that remembers why writing to it failed: polars turns an operating system's error into words of its own.
struct Remembering {
    file: File,
    failed: Option<std::io::Error>,
}

impl Write for Remembering {
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
