//! The tables of a training: epochs and batches.

use std::path::Path;

use super::claim;
use super::directory::{RunDirectory, check_version, sealed};
use super::names::files;
use super::parquet;
use super::record::Record;
use super::schema::{BatchRow, EpochRow};
use crate::error::{Error, Result};

pub(super) const EPOCHS: &str = "epochs-";
const BATCHES: &str = "batches-";

impl RunDirectory {
    /// Stores one visit of a training. The batches come first: a visit is there once its epochs are.
    ///
    /// # Errors
    /// [`crate::error::Kind::Io`]; what was stored before stays.
    pub fn append_epochs(&self, epochs: &[EpochRow], batches: &[BatchRow]) -> Result<()> {
        let Some(first) = epochs.first() else { return Ok(()) };
        if !batches.is_empty() {
            self.write_part(BATCHES, first.visit, batches)?;
        }
        self.write_part(EPOCHS, first.visit, epochs)
    }

    /// Every epoch there is, sealed or not, in the order of the run. A part that can't be read is set aside, with a notice.
    ///
    /// # Errors
    /// [`crate::error::Kind::Data`] where the sealed table is damaged or of a newer schema.
    pub fn epochs(&self, notices: &mut Vec<String>) -> Result<Vec<EpochRow>> {
        let path = self.path().join(files::EPOCHS);
        let mut rows: Vec<EpochRow> = if path.is_file() { sealed(&path)? } else { Vec::new() };
        let last = rows.iter().map(|row| row.visit).max().unwrap_or(-1);
        for part in self.parts(EPOCHS)? {
            rows.extend(self.read_part::<EpochRow>(&part, notices)?.into_iter().filter(|row| row.visit > last));
        }
        Ok(rows)
    }

    /// Turns the parts into the single files; `complete` says that nothing is left to resume.
    ///
    /// # Errors
    /// [`crate::error::Kind::Io`]; the parts stay until the sealed files are on the disk.
    pub fn seal_epochs(&self, complete: bool) -> Result<()> {
        let mut metadata = self.metadata(complete)?;
        let epochs = self.epochs(&mut Vec::new())?;
        let is_there = |visit: i64| epochs.iter().any(|row| row.visit == visit);
        self.write_table::<BatchRow>(files::BATCHES, &mut metadata, |put| {
            let path = self.path().join(files::BATCHES);
            let mut last = -1;
            if path.is_file() {
                parquet::read(&path, None, |frame| {
                    BatchRow::rows(frame)?.into_iter().try_for_each(|row| {
                        last = last.max(row.visit);
                        put(row)
                    })
                })?;
            }
            for part in self.parts(BATCHES)? {
                let rows: Vec<BatchRow> = self.read_part(&part, &mut Vec::new())?;
                if rows.first().is_some_and(|row| row.visit > last && is_there(row.visit)) {
                    rows.into_iter().try_for_each(&mut *put)?;
                }
            }
            Ok(())
        })?;
        self.write_table::<EpochRow>(files::EPOCHS, &mut metadata, |put| epochs.iter().cloned().try_for_each(put))?;
        self.clear_parts()
    }

    /// Whether a folder holds a training.
    pub fn is_training(path: &Path) -> bool {
        let part = |entry: std::io::Result<std::fs::DirEntry>| {
            entry.is_ok_and(|entry| entry.file_name().to_string_lossy().starts_with(EPOCHS))
        };
        let has_parts = || path.join(files::PARTS).read_dir().is_ok_and(|mut entries| entries.any(part));
        path.join(files::EPOCHS).is_file() || has_parts()
    }

    /// The epochs of a training, finished or under way, without opening it for writing.
    ///
    /// # Errors
    /// [`crate::error::Kind::Io`] where there is no such table, [`crate::error::Kind::Data`] where it is damaged or of a newer schema.
    pub fn epochs_of(path: &Path) -> Result<Vec<EpochRow>> {
        let table = path.join(files::EPOCHS);
        if table.is_file() {
            return sealed(&table);
        }
        let mut rows = Vec::new();
        for part in claim::parts(path, EPOCHS)? {
            parquet::read(&part, None, |frame| EpochRow::rows(frame).map(|more| rows.extend(more)))?;
        }
        check_rows(path, rows)
    }

    /// Checks that a sealed training can be continued by this version.
    ///
    /// # Errors
    /// As [`RunDirectory::epochs_of`].
    pub(super) fn check_training(path: &Path) -> Result<()> {
        let table = path.join(files::EPOCHS);
        if table.is_file() { check_version(&table) } else { Ok(()) }
    }
}

fn check_rows(path: &Path, rows: Vec<EpochRow>) -> Result<Vec<EpochRow>> {
    if rows.is_empty() {
        return Err(Error::data("this folder holds no epochs.parquet and no parts of a training")
            .at(path.display().to_string()));
    }
    Ok(rows)
}
