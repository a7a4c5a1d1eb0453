//! The run directory: opened, appended to visit by visit, sealed, and continued after whatever happened.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::claim::{self, Claim};
use super::lock::Lock;
use super::names::{files, keys};
use super::parquet::{self, Metadata};
use super::reading::{last_visit, layers_of, sealed_visits};
use super::record::Record;
use super::schema::{CellRow, LayerRow, SCHEMA_VERSION, StepRow};
use crate::atomic::{TEMPORARY, write_text};
use crate::error::{Error, Kind, Result};

/// A run directory that this process may write to.
#[derive(Debug)]
pub struct RunDirectory {
    path: PathBuf,
    claim: Claim,
    _lock: Option<Lock>,
}

/// The beginnings of the names of parts: a visit's steps, a cell's layers.
pub(super) const VISIT_PARTS: &str = "visit-";
pub(super) const LAYER_PARTS: &str = "layers-";

/// How a run directory is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// For a new run. A finished run there is kept under another name, and an unfinished one is refused.
    Anew,
    /// To go on with an unfinished run of the same spec, and with a finished one where the spec gives it another time limit; begins
    /// where there is nothing yet.
    Resume,
    /// The same, also where another process holds the run, perhaps on a machine that is lost: that one stops at its next visit.
    TakeOver,
}

/// What was found when a run directory was opened.
#[derive(Debug)]
pub struct Opened {
    pub directory: RunDirectory,
    /// The environment as stored by the run that began it; `None` for a new run.
    pub environment: Option<String>,
    /// True where the run had been finished.
    pub complete: bool,
    /// What the user should know: a finished run moved aside, a damaged part.
    pub notices: Vec<String>,
}

/// What only the end of a run says of its rows.
pub trait EndOfRun {
    fn step(&self, _: &mut StepRow) {}

    /// `place` is the row's among those of its cell, from 0.
    fn layer(&self, _: &mut LayerRow, _place: usize) {}
}

impl RunDirectory {
    /// Opens `path` for the experiment whose resolved spec is `spec`.
    ///
    /// # Errors
    /// [`Kind::Conflict`] where the folder holds something else, is in use, or was begun with another spec;
    /// [`Kind::Io`] where it can't be made or written.
    pub fn open(path: &Path, spec: &str, begin: Begin) -> Result<Opened> {
        let mut notices = Vec::new();
        let begun = path.join(files::SPEC).is_file();
        if !begun && holds_something_else(path) {
            return Err(Error::new(Kind::Conflict, "this folder is not empty and not a run directory")
                .at(path.display().to_string())
                .hint("choose another folder with `--out DIR`"));
        }
        if path.join(files::MERGE).is_file() {
            return Err(Error::new(Kind::Conflict, "this folder holds the result of a merge")
                .at(path.display().to_string())
                .hint("choose another folder with `--out DIR`"));
        }
        if begun && begin != Begin::Anew {
            return Self::continue_run(path, spec, begin);
        }
        if begun {
            drop(Lock::take(path)?);
            if !is_complete(path) {
                return Err(Error::new(Kind::Conflict, "this folder holds an unfinished run")
                    .at(path.display().to_string())
                    .hint("continue it with `--resume`, or choose another folder with `--out DIR`"));
            }
            let kept = move_aside(path)?;
            notices.push(format!("the earlier run is kept as {}", kept.display()));
        }
        let parts = path.join(files::PARTS);
        std::fs::create_dir_all(&parts).map_err(|e| Error::io("make the run directory", &parts, &e))?;
        let directory = Self::claimed(path, begin)?;
        write_text(&path.join(files::SPEC), spec)?;
        Ok(Opened { directory, environment: None, complete: false, notices })
    }

    /// Whether a run could begin in `path`, which need not be there: a process may be about to.
    pub fn is_yet_to_begin(path: &Path) -> bool {
        !path.join(files::SPEC).is_file() && !holds_something_else(path) && !path.is_file()
    }

    /// The lock first, so that a process that is refused does not stop the one that runs; to take a run over, the claim first, so
    /// that the other one stops and releases the lock.
    fn claimed(path: &Path, begin: Begin) -> Result<Self> {
        let folder = path.to_path_buf();
        let (claim, lock) = match begin {
            Begin::TakeOver => (Claim::make(path)?, Lock::wait(path)?),
            Begin::Anew | Begin::Resume => {
                let lock = Lock::take(path)?;
                (Claim::make(path)?, Some(lock))
            }
        };
        claim.begin_at(first_free_visit(path)?)?;
        Ok(Self { path: folder, claim, _lock: lock })
    }

    fn continue_run(path: &Path, spec: &str, begin: Begin) -> Result<Opened> {
        let stored = path.join(files::SPEC);
        let begun = std::fs::read_to_string(&stored).map_err(|e| Error::io("read the run's spec", &stored, &e))?;
        let has_more_time = begun != spec && without_time_limit(&begun) == without_time_limit(spec);
        if begun != spec && !has_more_time {
            return Err(Error::new(Kind::Conflict, format!("the spec has changed:\n{}", difference(&begun, spec)))
                .at(path.display().to_string())
                .hint("resume with the spec it was begun with, or choose another folder with `--out DIR`"));
        }
        let parts = path.join(files::PARTS);
        std::fs::create_dir_all(&parts).map_err(|e| Error::io("make the run directory", &parts, &e))?;
        let directory = Self::claimed(path, begin)?;
        let sealed = path.join(files::STEPS);
        if sealed.is_file() {
            check_version(&sealed)?;
        }
        Self::check_training(path)?;
        Self::check_pipeline(path)?;
        Self::check_fits(path)?;
        let environment = std::fs::read_to_string(path.join(files::ENVIRONMENT)).ok();
        // The time limit ends a run and decides nothing else, so a run that it ended can go on.
        if has_more_time {
            write_text(&stored, spec)?;
        }
        Ok(Opened { directory, environment, complete: !has_more_time && is_complete(path), notices: Vec::new() })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The layers of a finished run, without opening it for writing.
    ///
    /// # Errors
    /// [`Kind::Io`] where there is no such table, [`Kind::Data`] where it is damaged or of a newer schema.
    pub fn layers_of(path: &Path) -> Result<Vec<LayerRow>> {
        sealed(&path.join(files::LAYERS))
    }

    /// The cells of a finished run, without opening it for writing.
    ///
    /// # Errors
    /// As [`RunDirectory::layers_of`].
    pub fn cells_of(path: &Path) -> Result<Vec<CellRow>> {
        sealed(&path.join(files::CELLS))
    }

    /// Writes one of the small text files, whole or not at all.
    ///
    /// # Errors
    /// [`Kind::Io`].
    pub fn write_text(&self, name: &str, text: &str) -> Result<()> {
        write_text(&self.path.join(name), text)
    }

    /// Stores one visit as a part file.
    ///
    /// # Errors
    /// [`Kind::Io`]; what was stored before stays.
    pub fn append(&self, visit: &[StepRow]) -> Result<()> {
        let Some(first) = visit.first() else { return Ok(()) };
        self.write_part(VISIT_PARTS, first.visit, visit)
    }

    /// Stores what the engine says of a cell's layers.
    ///
    /// # Errors
    /// As [`RunDirectory::append`].
    pub fn append_layers(&self, layers: &[LayerRow]) -> Result<()> {
        let Some(first) = layers.first() else { return Ok(()) };
        self.write_part(LAYER_PARTS, first.cell, layers)
    }

    pub(super) fn write_part<R: Record>(&self, prefix: &str, number: i64, rows: &[R]) -> Result<()> {
        self.claim.check()?;
        let parts = self.path.join(files::PARTS);
        let path = parts.join(self.claim.part_name(prefix, number));
        if let Some(folder) = path.parent().filter(|folder| **folder != parts) {
            // Not the folder of parts itself: if that is gone, somebody removed the run.
            let made = std::fs::create_dir(folder);
            made.or_else(|e| if e.kind() == ErrorKind::AlreadyExists || !parts.is_dir() { Ok(()) } else { Err(e) })
                .map_err(|e| Error::io("make the folder", folder, &e))?;
        }
        let written = parquet::write(&path, &Metadata::new(), false, |put| rows.iter().cloned().try_for_each(put));
        if !path.parent().is_some_and(Path::is_dir) {
            let gone = Error::new(Kind::Io, "the run directory was removed while the run was under way");
            return written
                .map_err(|_| gone.at(self.path.display().to_string()).hint("run it again from the beginning"));
        }
        written
    }

    /// Gives every visit there is to `each`, sealed or not, in the order of the run; one batch of rows is in memory at a
    /// time. A part that can't be read is set aside, with a notice: the visit it held will be done again.
    ///
    /// # Errors
    /// [`Kind::Data`] where the sealed table is damaged or of a newer schema; what `each` refuses.
    pub fn visits(&self, notices: &mut Vec<String>, each: &mut dyn FnMut(Vec<StepRow>) -> Result<()>) -> Result<()> {
        let last = sealed_visits(&self.path.join(files::STEPS), -1, each)?;
        for path in self.parts(VISIT_PARTS)? {
            let rows: Vec<StepRow> = self.read_part(&path, notices)?;
            // A run killed between sealing and clearing its parts has some visits twice: the part and the seal agree.
            if rows.first().is_some_and(|row| row.visit > last) {
                each(rows)?;
            }
        }
        Ok(())
    }

    pub(super) fn read_part<R: Record>(&self, path: &Path, notices: &mut Vec<String>) -> Result<Vec<R>> {
        let mut rows = Vec::new();
        let read = parquet::read(path, None, |frame| R::rows(frame).map(|more| rows.extend(more)));
        if read.is_err() {
            rows.clear();
            let _ = std::fs::rename(path, path.with_extension("damaged"));
            notices.push(format!("{} is damaged; what it held is measured again", path.display()));
        }
        Ok(rows)
    }

    pub(super) fn parts(&self, prefix: &str) -> Result<Vec<PathBuf>> {
        claim::parts(&self.path, prefix)
    }

    /// Removes the parts once they are sealed: those of this claim and of earlier ones, and never those of a later one.
    pub(super) fn clear_parts(&self) -> Result<()> {
        let folder = self.path.join(files::PARTS);
        let refuse = |e: std::io::Error| Error::io("clear the parts", &folder, &e);
        let mut folders = std::collections::BTreeSet::new();
        for path in claim::files_of(&folder)? {
            let is_later = claim::claim_of(&path).is_some_and(|claim| !self.claim.covers(claim));
            let removed = if is_later { Ok(()) } else { std::fs::remove_file(&path) };
            removed.or_else(|e| if e.kind() == ErrorKind::NotFound { Ok(()) } else { Err(refuse(e)) })?;
            folders.extend(path.parent().map(Path::to_path_buf));
        }
        self.claim.forget_earlier();
        // The inner ones first; one is not empty where a later claim has parts.
        folders.insert(folder);
        folders.iter().rev().for_each(|folder| drop(std::fs::remove_dir(folder)));
        Ok(())
    }

    /// Turns the parts into the single files. `end` sees each row before it is written; `complete` says that the plan was
    /// carried out, so that nothing is left to resume.
    ///
    /// # Errors
    /// [`Kind::Io`]; the parts stay until the sealed files are on the disk.
    pub fn seal(&self, end: &dyn EndOfRun, cells: &[CellRow], complete: bool) -> Result<()> {
        self.claim.check()?;
        let mut metadata = self.metadata(complete)?;
        let mut notices = Vec::new();
        self.write_table::<LayerRow>(files::LAYERS, &mut metadata, |put| {
            let (mut cell, mut place) = (-1, 0);
            layers_of(&self.path, &mut |mut row| {
                (cell, place) = (row.cell, if row.cell == cell { place + 1 } else { 0 });
                end.layer(&mut row, place);
                put(row)
            })
        })?;
        self.write_table::<CellRow>(files::CELLS, &mut metadata, |put| cells.iter().cloned().try_for_each(put))?;
        self.write_table::<StepRow>(files::STEPS, &mut metadata, |put| {
            self.visits(&mut notices, &mut |visit| {
                visit.into_iter().try_for_each(|mut row| {
                    end.step(&mut row);
                    put(row)
                })
            })
        })?;
        self.clear_parts()
    }

    pub(super) fn write_table<R: Record>(
        &self,
        name: &str,
        metadata: &mut Metadata,
        fill: impl FnOnce(&mut dyn FnMut(R) -> Result<()>) -> Result<()>,
    ) -> Result<()> {
        metadata.insert(keys::COLUMNS.to_string(), column_document::<R>());
        parquet::write(&self.path.join(name), metadata, true, fill)
    }

    pub(super) fn metadata(&self, complete: bool) -> Result<Metadata> {
        let text = |name: &str| {
            let path = self.path.join(name);
            std::fs::read_to_string(&path).map_err(|e| Error::io("read the file", &path, &e))
        };
        Ok(Metadata::from([
            (keys::VERSION.to_string(), SCHEMA_VERSION.to_string()),
            (keys::SPEC.to_string(), text(files::SPEC)?),
            (keys::ENVIRONMENT.to_string(), text(files::ENVIRONMENT)?),
            (keys::COMPLETE.to_string(), complete.to_string()),
        ]))
    }
}

/// The columns as JSON: `[{"name": ..., "unit": ..., "meaning": ...}]`.
pub(super) fn column_document<R: Record>() -> String {
    let columns: Vec<serde_json::Value> = R::columns()
        .iter()
        .map(|column| serde_json::json!({"name": column.name, "unit": column.unit, "meaning": column.meaning}))
        .collect();
    serde_json::Value::from(columns).to_string()
}

/// The number of the first visit that is not stored yet.
fn first_free_visit(path: &Path) -> Result<i64> {
    let mut last = -1;
    for name in [files::STEPS, files::EPOCHS, files::PIPELINE, files::FIT] {
        let sealed = path.join(name);
        if sealed.is_file() {
            last = last.max(last_visit(&sealed)?);
        }
    }
    for prefix in [VISIT_PARTS, super::epochs::EPOCHS, super::pipeline::PREFIX, super::fits::FITS] {
        last = last.max(claim::all_parts(path, prefix)?.last().map_or(-1, |part| part.number));
    }
    Ok(last + 1)
}

/// True where a folder holds anything but what a run that was killed before it wrote its spec leaves behind.
fn holds_something_else(path: &Path) -> bool {
    let ours = |entry: &std::fs::DirEntry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        let no_parts = || entry.path().read_dir().is_ok_and(|mut parts| parts.next().is_none());
        name == ".lock"
            || name.starts_with(TEMPORARY)
            || name.starts_with(claim::PREFIX)
            || (name == files::PARTS && no_parts())
    };
    path.is_dir() && path.read_dir().is_ok_and(|mut entries| entries.any(|entry| !entry.is_ok_and(|e| ours(&e))))
}

pub(super) fn is_complete(path: &Path) -> bool {
    let complete = |name: &str| {
        let described = parquet::describe(&path.join(name));
        described.is_ok_and(|(_, metadata)| metadata.get(keys::COMPLETE).is_some_and(|value| value == "true"))
    };
    [files::STEPS, files::EPOCHS, files::PIPELINE, files::FIT].into_iter().any(complete)
}

/// Every row of a sealed table.
pub(super) fn sealed<R: Record>(path: &Path) -> Result<Vec<R>> {
    check_version(path)?;
    let mut rows = Vec::new();
    parquet::read(path, None, |frame| {
        rows.extend(R::rows(frame).map_err(|e| e.at(path.display().to_string()))?);
        Ok(())
    })?;
    Ok(rows)
}

pub(super) fn check_version(path: &Path) -> Result<()> {
    let (_, metadata) = parquet::describe(path)?;
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

/// Renames a finished run to the first free `<name>.1`, `<name>.2`, ...
fn move_aside(path: &Path) -> Result<PathBuf> {
    let free = (1..).map(|n| PathBuf::from(format!("{}.{n}", path.display()))).find(|candidate| !candidate.exists());
    let target = free.unwrap_or_else(|| path.with_extension("old"));
    std::fs::rename(path, &target).map_err(|e| Error::io("keep the earlier run", path, &e))?;
    Ok(target)
}

fn without_time_limit(spec: &str) -> String {
    spec.lines().filter(|line| !line.starts_with("time_limit = ")).collect()
}

/// The lines in which two specs differ, as `-` what was and `+` what is.
fn difference(before: &str, after: &str) -> String {
    let mut come: Vec<&str> = after.lines().collect();
    let mut gone = Vec::new();
    for line in before.lines() {
        match come.iter().position(|new| *new == line) {
            Some(same) => drop(come.remove(same)),
            None => gone.push(line),
        }
    }
    let gone = gone.into_iter().map(|line| format!("  - {line}"));
    gone.chain(come.into_iter().map(|line| format!("  + {line}"))).collect::<Vec<_>>().join("\n")
}
