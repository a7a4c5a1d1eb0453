//! One table of a database: read row by row, replaced whole or not at all.

use std::path::Path;

use polars::prelude::Column;

use super::collected::DATABASE_VERSION;
use super::lock::Lock;
use super::names::keys;
use super::parquet::{self, Metadata};
use super::record::Record;
use super::written;
use crate::error::{Error, Kind, Result};
use crate::os::look;

/// One writer at a time in a database's folder; released when it is dropped, or when the process ends.
#[derive(Debug)]
pub struct Writer(#[expect(dead_code, reason = "held until it is dropped")] Lock);

impl Writer {
    /// Takes the folder's lock.
    ///
    /// # Errors
    /// [`Kind::Conflict`] where another process writes there.
    pub fn take(folder: &Path) -> Result<Self> {
        Lock::take(folder).map(Self).map_err(|error| match error.kind() {
            Kind::Conflict => Error::new(Kind::Conflict, "another process is collecting into this database")
                .at(folder.display().to_string())
                .hint("wait for it to end"),
            _ => error,
        })
    }
}

/// Writes the rows that `fill` gives, whole or not at all, with the database's version and the meaning of each column in the
/// file's metadata. The folder is made where it is missing.
///
/// # Errors
/// [`Kind::Io`]; what `fill` refuses.
pub fn replace<R: Record>(path: &Path, fill: impl FnOnce(&mut dyn FnMut(R) -> Result<()>) -> Result<()>) -> Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|e| Error::io("make the folder", folder, &e))?;
    }
    let version = Metadata::from([(keys::DATABASE.to_string(), DATABASE_VERSION.to_string())]);
    written::write_table(path, &version, fill)
}

/// Gives every row of a table that [`replace`] wrote to `each`; does nothing if there is no such file.
///
/// # Errors
/// [`Kind::Data`] where it is damaged, or of another version; what `each` refuses.
pub fn rows<R: Record>(path: &Path, each: &mut dyn FnMut(R) -> Result<()>) -> Result<()> {
    if !look::is_file(path)? {
        return Ok(());
    }
    let (_, metadata) = parquet::describe(path)?;
    let version = metadata.get(keys::DATABASE).map_or("none", String::as_str);
    if version != DATABASE_VERSION.to_string() {
        let what = format!("this table is of version {version} of the database, and {DATABASE_VERSION} is read here");
        return Err(Error::data(what)
            .at(path.display().to_string())
            .hint("collect the runs again into a new folder, or use the batchstep that wrote it"));
    }
    parquet::read(path, None, |frame| {
        let rows = R::rows(frame).map_err(|error| error.at(path.display().to_string()))?;
        rows.into_iter().try_for_each(&mut *each)
    })
}

/// The rows of a Parquet file of another program with the columns of `R`, except for `constants`, which have one text in all rows.
///
/// # Errors
/// [`Kind::Data`] where it is damaged, or a column is missing or of another type.
pub fn rows_of_others<R: Record>(path: &Path, constants: [(&str, &str); 2]) -> Result<Vec<R>> {
    let mut rows = Vec::new();
    parquet::read(path, None, |frame| {
        let constants = constants.map(|(name, text)| Column::new(name.into(), vec![text; frame.height()]));
        let whole = frame.hstack(&constants).map_err(|error| Error::data(error.to_string()));
        rows.extend(whole.and_then(|whole| R::rows(&whole)).map_err(|error| error.at(path.display().to_string()))?);
        Ok(())
    })?;
    Ok(rows)
}

/// The metadata of any Parquet file: its source and licence, where its writer put them there.
///
/// # Errors
/// [`Kind::Data`] where it is no Parquet file.
pub fn metadata(path: &Path) -> Result<Metadata> {
    parquet::describe(path).map(|(_, metadata)| metadata)
}
