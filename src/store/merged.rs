//! A run directory that is made from other run directories.

use std::path::{Path, PathBuf};

use super::directory::column_document;
use super::lock::Lock;
use super::names::{files, keys};
use super::parquet::{self, Metadata};
use super::record::Record;
use super::schema::SCHEMA_VERSION;
use crate::error::{Error, Kind, Result};
use crate::os::atomic::{TEMPORARY, write_text};
use crate::os::look;

/// What the metadata of every table says.
#[derive(Clone, Copy, Debug)]
pub struct Story<'a> {
    /// The resolved spec, and the environment as JSON.
    pub spec: &'a str,
    pub environment: &'a str,
    /// Whether nothing of the plan is missing.
    pub complete: bool,
}

/// A folder that merged tables are written into. Each table is replaced whole or not at all.
#[derive(Debug)]
pub struct MergedDirectory {
    path: PathBuf,
    metadata: Metadata,
    _lock: Lock,
}

impl MergedDirectory {
    /// Opens a folder that is missing, empty, or holds an earlier merge, which is replaced.
    ///
    /// # Errors
    /// [`Kind::Conflict`] where it holds something else, or another process writes there; [`Kind::Io`].
    pub fn begin(path: &Path, story: Story) -> Result<Self> {
        look::refuse_link(&path.join(files::LOCK))?;
        let is_ours = |name: &str| name == files::LOCK || name.starts_with(TEMPORARY);
        let occupied = look::entries(path)?.iter().any(|entry| !entry.file_name().to_str().is_some_and(is_ours));
        if occupied && !look::is_file(&path.join(files::MERGE))? {
            return Err(Error::new(Kind::Conflict, "this folder contains something other than an earlier merge")
                .at(path.display().to_string())
                .hint("give a new folder for the result"));
        }
        std::fs::create_dir_all(path).map_err(|e| Error::io("make the folder", path, &e))?;
        let lock = Lock::take(path)?;
        // First of all, so that what is cut short is known for a merge.
        write_text(&path.join(files::MERGE), "{}\n")?;
        write_text(&path.join(files::SPEC), story.spec)?;
        write_text(&path.join(files::ENVIRONMENT), story.environment)?;
        let metadata = Metadata::from([
            (keys::VERSION.to_string(), SCHEMA_VERSION.to_string()),
            (keys::SPEC.to_string(), story.spec.to_string()),
            (keys::ENVIRONMENT.to_string(), story.environment.to_string()),
            (keys::COMPLETE.to_string(), story.complete.to_string()),
        ]);
        Ok(Self { path: path.to_path_buf(), metadata, _lock: lock })
    }

    /// Writes one table; `fill` gives its rows.
    ///
    /// # Errors
    /// [`Kind::Io`]; what `fill` refuses.
    pub fn write<R: Record>(
        &self,
        name: &str,
        fill: impl FnOnce(&mut dyn FnMut(R) -> Result<()>) -> Result<()>,
    ) -> Result<()> {
        let mut metadata = self.metadata.clone();
        metadata.insert(keys::COLUMNS.to_string(), column_document::<R>());
        parquet::write(&self.path.join(name), &metadata, true, fill)
    }

    /// Writes the statement of what was merged. It is the last file, so if it exists, the rest does as well.
    ///
    /// # Errors
    /// [`Kind::Io`].
    pub fn finish(self, statement: &str) -> Result<()> {
        write_text(&self.path.join(files::MERGE), statement)
    }
}
