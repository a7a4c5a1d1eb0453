//! The table of a study of the input pipeline.

use std::path::Path;

use super::claim;
use super::directory::{RunDirectory, check_version, sealed};
use super::names::files;
use super::parquet;
use super::record::Record;
use super::schema::PipelineRow;
use crate::error::{Error, Result};

pub(super) const PREFIX: &str = "pipeline-";

impl RunDirectory {
    /// Stores one visit of a study of the input pipeline.
    ///
    /// # Errors
    /// [`crate::error::Kind::Io`]; what was stored before stays.
    pub fn append_pipeline(&self, rows: &[PipelineRow]) -> Result<()> {
        let Some(first) = rows.first() else { return Ok(()) };
        self.write_part(PREFIX, first.visit, rows)
    }

    /// Every row there is, sealed or not, in the order of the run. A part that can't be read is set aside, with a notice.
    ///
    /// # Errors
    /// [`crate::error::Kind::Data`] where the sealed table is damaged or of a newer schema.
    pub fn pipeline(&self, notices: &mut Vec<String>) -> Result<Vec<PipelineRow>> {
        let path = self.path().join(files::PIPELINE);
        let mut rows: Vec<PipelineRow> = if path.is_file() { sealed(&path)? } else { Vec::new() };
        let last = rows.iter().map(|row| row.visit).max().unwrap_or(-1);
        for part in self.parts(PREFIX)? {
            rows.extend(self.read_part::<PipelineRow>(&part, notices)?.into_iter().filter(|row| row.visit > last));
        }
        Ok(rows)
    }

    /// Turns the parts into the single file; `complete` says that nothing is left to resume.
    ///
    /// # Errors
    /// [`crate::error::Kind::Io`]; the parts stay until the sealed file is on the disk.
    pub fn seal_pipeline(&self, complete: bool) -> Result<()> {
        let mut metadata = self.metadata(complete)?;
        let rows = self.pipeline(&mut Vec::new())?;
        self.write_table::<PipelineRow>(files::PIPELINE, &mut metadata, |put| rows.into_iter().try_for_each(put))?;
        self.clear_parts()
    }

    /// Whether a folder holds a study of the input pipeline.
    pub fn is_pipeline(path: &Path) -> bool {
        path.join(files::PIPELINE).is_file() || claim::parts(path, PREFIX).is_ok_and(|parts| !parts.is_empty())
    }

    /// The rows of a study, finished or under way, without opening it for writing.
    ///
    /// # Errors
    /// [`crate::error::Kind::Data`] where there are none, or the table is damaged or of a newer schema.
    pub fn pipeline_of(path: &Path) -> Result<Vec<PipelineRow>> {
        let table = path.join(files::PIPELINE);
        if table.is_file() {
            return sealed(&table);
        }
        let mut rows = Vec::new();
        for part in claim::parts(path, PREFIX)? {
            parquet::read(&part, None, |frame| PipelineRow::rows(frame).map(|more| rows.extend(more)))?;
        }
        if rows.is_empty() {
            return Err(
                Error::data("this folder holds no pipeline.parquet and no parts of one").at(path.display().to_string())
            );
        }
        Ok(rows)
    }

    /// Checks that a sealed study can be continued by this version.
    ///
    /// # Errors
    /// As [`RunDirectory::pipeline_of`].
    pub(super) fn check_pipeline(path: &Path) -> Result<()> {
        let table = path.join(files::PIPELINE);
        if table.is_file() { check_version(&table) } else { Ok(()) }
    }
}
