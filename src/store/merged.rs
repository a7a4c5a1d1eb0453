//! A run directory that is made from other run directories.

use std::path::{Path, PathBuf};

use super::lock::Lock;
use super::names::{files, keys};
use super::parquet::Metadata;
use super::record::Record;
use super::written;
use crate::error::{Error, Kind, Result};
use crate::os::atomic::{TEMPORARY, write_text};
use crate::os::look;

/// What `merge.json` says while the files of one merge take the places of those of another.
const UNDER_WAY: &str = "{}\n";

/// A folder that merged tables are written into. They take the places of those of an earlier merge once all of them are written.
#[derive(Debug)]
pub struct MergedDirectory {
    path: PathBuf,
    /// Where the tables are until then.
    pending: PathBuf,
    metadata: Metadata,
    _lock: Lock,
}

impl Drop for MergedDirectory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.pending);
    }
}

impl MergedDirectory {
    /// Opens a folder that is missing, empty, or holds an earlier merge, which stays until [`MergedDirectory::finish`]. The tables say that they are
    /// of this resolved spec and this environment, and whether nothing of the plan is missing.
    ///
    /// # Errors
    /// [`Kind::Conflict`] where it holds something else, or another process writes there; [`Kind::Io`].
    pub fn begin(path: &Path, spec: &str, environment: &str, complete: bool) -> Result<Self> {
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
        let pending = path.join(format!("{TEMPORARY}merge"));
        // Left by a process that was killed.
        if look::is_there(&pending)? {
            std::fs::remove_dir_all(&pending).map_err(|e| Error::io("remove the folder", &pending, &e))?;
        }
        std::fs::create_dir(&pending).map_err(|e| Error::io("make the folder", &pending, &e))?;
        let metadata = written::metadata_of_run(spec, environment, complete);
        Ok(Self { path: path.to_path_buf(), pending, metadata, _lock: lock })
    }

    /// Refuses the result of a merge whose files may be of two merges, since its process ended while it put them in place.
    ///
    /// # Errors
    /// [`Kind::Data`] where `path` is that; [`Kind::Io`].
    pub fn refuse_cut_short(path: &Path) -> Result<()> {
        match look::text(&path.join(files::MERGE))? {
            Some(text) if text.trim_end() == UNDER_WAY.trim_end() => Err(Error::data("this merge was cut short")
                .at(path.display().to_string())
                .hint("merge again: `batchstep merge OUT RUN...`")),
            _ => Ok(()),
        }
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
        written::write_table(&self.pending.join(name), &self.metadata, fill)
    }

    /// Puts the tables in place, with the spec and the environment, and writes the statement of what was merged. It is the last file, so if
    /// it exists, the rest does as well.
    ///
    /// # Errors
    /// [`Kind::Io`].
    pub fn finish(self, statement: &str) -> Result<()> {
        let merge = self.path.join(files::MERGE);
        write_text(&merge, UNDER_WAY)?;
        // The findings are those of the earlier merge.
        let findings = self.path.join(files::JUMPS);
        if look::is_there(&findings)? {
            std::fs::remove_file(&findings).map_err(|e| Error::io("remove the file", &findings, &e))?;
        }
        for (name, key) in [(files::SPEC, keys::SPEC), (files::ENVIRONMENT, keys::ENVIRONMENT)] {
            write_text(&self.path.join(name), &self.metadata[key])?;
        }
        for table in look::entries(&self.pending)? {
            let path = self.path.join(table.file_name());
            std::fs::rename(table.path(), &path).map_err(|e| Error::io("rename the finished file", &path, &e))?;
        }
        write_text(&merge, statement)
    }
}
