//! The run directory: opened, appended to visit by visit, sealed, and continued after whatever happened.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::begun::{Extent, environment_of, has_more_time, is_complete, spec_digest};
use super::claim::{self, Claim};
use super::lock::Lock;
use super::names::files;
use super::parquet::{self, Metadata, check_version};
use super::record::Record;
use super::schema::{CellRow, LayerRow, StepRow};
use super::shelf::Stored;
use super::stored::{Each, damaged_part, read_all, why};
use super::written;
use crate::error::{Error, Kind, Result};
use crate::kinds::Shelf;
use crate::os::atomic::{TEMPORARY, write_text};
use crate::os::look;

/// A run directory that this process may write to.
#[derive(Debug)]
pub struct RunDirectory {
    path: PathBuf,
    claim: Claim,
    _lock: Option<Lock>,
}

/// How a run directory is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// For a new run. A finished run there is kept under another name, and an unfinished one is refused.
    Anew,
    /// To go on with an unfinished run of the same spec, and with a finished one where the spec gives it another time limit; begins
    /// where there is nothing yet.
    Resume,
    /// The same, also if another process owns the run, perhaps on a machine that is lost: that process stops at its next visit.
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

/// Facts about the rows that are known only at the end of a run.
pub trait EndOfRun {
    fn step(&self, _: &mut StepRow) {}

    /// `place` is the row's among those of its cell, from 0.
    fn layer(&self, _: &mut LayerRow, _place: usize) {}
}

/// The result of sealing a run.
#[derive(Debug)]
#[must_use]
pub struct Sealed {
    /// Whether nothing is left to resume: nothing is missing, and no visit turned out to be damaged.
    pub complete: bool,
    /// Parts that were damaged, each with where it is kept.
    pub notices: Vec<String>,
}

/// The spec of the run in a folder; `None` where it is missing, empty, or left by a run that was killed before it wrote its spec.
///
/// # Errors
/// [`Kind::Conflict`] if it contains something other than a run, or links in places where a run writes and deletes; [`Kind::Io`].
fn begun_in(path: &Path) -> Result<Option<String>> {
    [files::LOCK, files::PARTS, files::DAMAGED].iter().try_for_each(|name| look::refuse_link(&path.join(name)))?;
    if look::is_file(&path.join(files::MERGE))? {
        return Err(conflict(path, "this folder contains the result of a merge"));
    }
    let spec = look::text(&path.join(files::SPEC))?;
    if spec.is_none() && holds_something_else(path)? {
        return Err(conflict(path, "this folder is not empty and not a run directory"));
    }
    Ok(spec)
}

fn conflict(path: &Path, what: &str) -> Error {
    Error::new(Kind::Conflict, what).at(path.display().to_string()).hint("choose another folder with `--out DIR`")
}

impl RunDirectory {
    /// Opens `path` for the experiment whose resolved spec is `spec`.
    ///
    /// # Errors
    /// [`Kind::Conflict`] where the folder holds something else, is in use, or was begun with another spec;
    /// [`Kind::Io`] where it can't be made, read or written.
    pub fn open(path: &Path, spec: &str, begin: Begin) -> Result<Opened> {
        let mut notices = Vec::new();
        match begun_in(path)? {
            Some(_) if begin == Begin::Anew => {
                notices.push(format!("the earlier run is kept as {}", keep_earlier(path)?.display()));
            }
            // Refused here, before the claim would stop a process that runs.
            Some(begun) => drop(has_more_time(path, &begun, spec)?),
            None => {}
        }
        std::fs::create_dir_all(path).map_err(|e| Error::io("make the run directory", path, &e))?;
        let directory = Self::claimed(path, begin)?;
        // Again, now that no other process can begin here: one may have done so meanwhile.
        match begun_in(path)? {
            Some(_) if begin == Begin::Anew => Err(conflict(path, "another process has begun a run in this folder")),
            Some(begun) => directory.go_on(&begun, spec, notices),
            None => {
                directory.make_parts()?;
                write_text(&path.join(files::SPEC), spec)?;
                Ok(Opened { directory, environment: None, complete: false, notices })
            }
        }
    }

    /// Whether a run could begin in `path`, which need not be there: a process may be about to.
    ///
    /// # Errors
    /// [`Kind::Io`].
    pub fn is_yet_to_begin(path: &Path) -> Result<bool> {
        Ok(!look::is_file(&path.join(files::SPEC))? && !look::is_file(path)? && !holds_something_else(path)?)
    }

    /// Takes the lock first, so that a process that is refused does not stop the one that runs. To take a run over, it makes the claim first, so
    /// that the other process stops and releases the lock.
    fn claimed(path: &Path, begin: Begin) -> Result<Self> {
        let (claim, lock) = match begin {
            Begin::TakeOver => (Claim::make(path)?, Lock::wait(path)?),
            Begin::Anew | Begin::Resume => {
                let lock = Lock::take(path)?;
                (Claim::make(path)?, Some(lock))
            }
        };
        claim.begin_at(Extent::of(path)?.visits)?;
        Ok(Self { path: path.to_path_buf(), claim, _lock: lock })
    }

    fn make_parts(&self) -> Result<()> {
        let parts = self.path.join(files::PARTS);
        std::fs::create_dir_all(&parts).map_err(|e| Error::io("make the folder", &parts, &e))
    }

    fn go_on(self, begun: &str, spec: &str, mut notices: Vec<String>) -> Result<Opened> {
        let has_more_time = has_more_time(&self.path, begun, spec)?;
        for shelf in Shelf::main() {
            let table = self.path.join(shelf.table);
            if look::is_file(&table)? {
                check_version(&table)?;
            }
        }
        let environment = environment_of(&self.path)?;
        // The time limit ends a run and decides nothing else, so a run that it ended can go on.
        if has_more_time {
            write_text(&self.path.join(files::SPEC), spec)?;
        }
        let complete = !has_more_time && is_complete(&self.path)?;
        if complete {
            // Killed between sealing and clearing.
            self.clear(&self.sealed_parts()?)?;
        } else {
            self.make_parts()?;
        }
        let damaged = self.path.join(files::DAMAGED);
        if !look::entries(&damaged)?.is_empty() {
            notices.push(format!("damaged parts of this run are kept in {}", damaged.display()));
        }
        Ok(Opened { directory: self, environment, complete, notices })
    }

    /// The parts whose rows the tables hold, and what a process left that was killed while it wrote one.
    fn sealed_parts(&self) -> Result<Vec<PathBuf>> {
        let is_temporary =
            |path: &PathBuf| path.file_name().and_then(OsStr::to_str).is_some_and(|name| name.starts_with(TEMPORARY));
        let mut found: Vec<PathBuf> = claim::files_of(&self.path)?.into_iter().filter(is_temporary).collect();
        for shelf in Shelf::all() {
            let sealed = shelf.sealed_numbers(&self.path)?;
            let parts = claim::all_parts(&self.path, shelf)?.into_iter();
            found.extend(parts.filter(|part| sealed.contains(&part.number)).map(|part| part.path));
        }
        Ok(found)
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// An empty folder for files that the run needs while it is under way; gone once it is sealed.
    ///
    /// # Errors
    /// [`Kind::Io`].
    pub fn scratch(&self) -> Result<PathBuf> {
        let folder = self.clear_scratch()?;
        std::fs::create_dir(&folder).map_err(|e| Error::io("make the folder", &folder, &e))?;
        Ok(folder)
    }

    fn clear_scratch(&self) -> Result<PathBuf> {
        let folder = self.path.join(files::PARTS).join("scratch");
        if look::is_there(&folder)? {
            std::fs::remove_dir_all(&folder).map_err(|e| Error::io("remove the folder", &folder, &e))?;
        }
        Ok(folder)
    }

    /// Writes one of the small text files, whole or not at all.
    ///
    /// # Errors
    /// [`Kind::Io`].
    pub fn write_text(&self, name: &str, text: &str) -> Result<()> {
        write_text(&self.path.join(name), text)
    }

    /// What tells the spec that the run was begun with from another one; the environment keeps it, since a person may change the file.
    ///
    /// # Errors
    /// [`Kind::Io`].
    pub fn spec_digest(&self) -> Result<String> {
        Ok(spec_digest(&look::text(&self.path.join(files::SPEC))?.unwrap_or_default()))
    }

    /// Stores the rows of one visit, or of one cell, as a part file.
    ///
    /// # Errors
    /// [`Kind::Io`]; what was stored before stays. [`Kind::Conflict`] where another process has taken the run over.
    pub fn append<R: Stored>(&self, rows: &[R]) -> Result<()> {
        let Some(first) = rows.first() else { return Ok(()) };
        self.claim.check()?;
        let parts = self.path.join(files::PARTS);
        let path = parts.join(self.claim.part_name(R::SHELF.parts, first.number()));
        let folder = path.parent().unwrap_or(&parts);
        if folder != parts {
            match std::fs::create_dir(folder) {
                Err(e) if e.kind() == ErrorKind::AlreadyExists => look::refuse_link(folder)?,
                // Without the folder of parts somebody has removed the run, as is found below.
                Err(e) if e.kind() != ErrorKind::NotFound => return Err(Error::io("make the folder", folder, &e)),
                _ => {}
            }
        }
        let written = written::write(&path, &Metadata::new(), false, |put| rows.iter().cloned().try_for_each(put));
        match written {
            Err(_) if !look::is_folder(folder)? => {
                Err(Error::new(Kind::Io, "the run directory was removed while the run was under way")
                    .at(self.path.display().to_string())
                    .hint("run it again from the beginning"))
            }
            written => written,
        }
    }

    /// Gives every row there is to `each`, sealed or not, by visit in the order of the run; one batch of rows is in memory at a time. A
    /// damaged part is set aside, with a notice: the visit it held will be done again.
    ///
    /// # Errors
    /// [`Kind::Data`] where the sealed table is damaged or of a newer schema; [`Kind::Io`]; what `each` refuses.
    pub fn read<R: Stored>(&self, notices: &mut Vec<String>, each: Each<R>) -> Result<()> {
        let mut damaged =
            |part: &Path, error: &Error| self.set_aside::<R>(part, error).map(|notice| notices.push(notice));
        read_all(&self.path, &mut damaged, each)
    }

    /// The same rows, all in memory.
    ///
    /// # Errors
    /// As [`RunDirectory::read`].
    pub fn all<R: Stored>(&self, notices: &mut Vec<String>) -> Result<Vec<R>> {
        let mut rows = Vec::new();
        self.read(notices, &mut |more: Vec<R>| {
            rows.extend(more);
            Ok(())
        })?;
        Ok(rows)
    }

    /// Moves a damaged part to a place where readers ignore it; returns a message for the user.
    fn set_aside<R: Stored>(&self, part: &Path, error: &Error) -> Result<String> {
        let folder = self.path.join(files::DAMAGED);
        std::fs::create_dir_all(&folder).map_err(|e| Error::io("make the folder", &folder, &e))?;
        let name = folder.join(part.file_stem().unwrap_or_default());
        let ending = |number| if number == 1 { ".damaged".to_owned() } else { format!(".{number}.damaged") };
        let kept = first_free(&name, ending)?;
        std::fs::rename(part, &kept).map_err(|e| Error::io("set the damaged part aside", part, &e))?;
        // The visit is done again under its number where it was the last.
        self.claim.begin_at(Extent::of(&self.path)?.visits)?;
        let (why, shown) = (why(part, error), part.display());
        let consequence = if R::SHELF.is_main() { "measured again" } else { "left out" };
        Ok(format!("{shown} is damaged: {why}; it is kept as {}, and its rows are {consequence}", kept.display()))
    }

    /// Turns the parts of a sweep into the single files. `end` sees each row before it is written; `complete` says that the plan was
    /// carried out, so that nothing is left to resume.
    ///
    /// # Errors
    /// [`Kind::Io`]; the parts stay until the sealed files are on the disk.
    pub fn seal(&self, end: &dyn EndOfRun, cells: &[CellRow], complete: bool) -> Result<Sealed> {
        self.sealing::<StepRow, LayerRow>(complete, |metadata| {
            let (mut cell, mut place) = (-1, 0);
            self.write_sealed(metadata, &|_| true, &mut |row: &mut LayerRow| {
                (cell, place) = (row.cell, if row.cell == cell { place + 1 } else { 0 });
                end.layer(row, place);
            })?;
            let table = self.path.join(files::CELLS);
            written::write_table(&table, metadata, |put| cells.iter().cloned().try_for_each(put))?;
            self.write_sealed(metadata, &|_| true, &mut |row: &mut StepRow| end.step(row))
        })
    }

    /// The same for a study whose visits have these rows; details are kept only if the rows of their visit are stored.
    ///
    /// # Errors
    /// As [`RunDirectory::seal`].
    pub fn seal_visits<R: Stored, Detail: Stored>(&self, complete: bool) -> Result<Sealed> {
        self.sealing::<R, Detail>(complete, |metadata| {
            if Detail::SHELF != R::SHELF {
                let mut there = BTreeSet::new();
                self.read(&mut Vec::new(), &mut |rows: Vec<R>| {
                    there.extend(rows.first().map(Stored::number));
                    Ok(())
                })?;
                self.write_sealed(metadata, &|number| there.contains(&number), &mut |_: &mut Detail| ())?;
            }
            self.write_sealed(metadata, &|_| true, &mut |_: &mut R| ())
        })
    }

    /// Sets damaged parts aside, lets `tables` write, and removes the parts that were there before. A run that loses a visit to a damaged part is not
    /// complete.
    fn sealing<R: Stored, Detail: Stored>(
        &self,
        complete: bool,
        tables: impl FnOnce(&Metadata) -> Result<()>,
    ) -> Result<Sealed> {
        self.claim.check()?;
        let listed = claim::files_of(&self.path)?;
        let mut notices = Vec::new();
        self.read(&mut notices, &mut |_: Vec<R>| Ok(()))?;
        let complete = complete && notices.is_empty();
        self.read(&mut notices, &mut |_: Vec<Detail>| Ok(()))?;
        tables(&self.metadata(complete)?)?;
        self.clear(&listed)?;
        Ok(Sealed { complete, notices })
    }

    /// Writes the table of one shelf: the rows of those numbers that `keep` wants, each after `end` has seen it.
    fn write_sealed<R: Stored>(
        &self,
        metadata: &Metadata,
        keep: &dyn Fn(i64) -> bool,
        end: &mut dyn FnMut(&mut R),
    ) -> Result<()> {
        written::write_table(&self.path.join(R::SHELF.table), metadata, |put| {
            let mut damaged = |part: &Path, error: &Error| Err(damaged_part(part, error));
            read_all(&self.path, &mut damaged, &mut |rows: Vec<R>| {
                rows.into_iter().filter(|row| keep(row.number())).try_for_each(|mut row| {
                    end(&mut row);
                    put(row)
                })
            })
        })
    }

    /// Removes those of the `listed` files that are parts of this claim or of earlier ones, once it is seen that the sealed tables
    /// hold every visit of theirs that counts.
    fn clear(&self, listed: &[PathBuf]) -> Result<()> {
        for shelf in Shelf::main() {
            let sealed = shelf.sealed_numbers(&self.path)?;
            let missing = claim::parts(&self.path, shelf)?.into_iter().find(|part| !sealed.contains(&part.number));
            if let Some(part) = missing {
                return Err(Error::new(Kind::Io, format!("{} lacks a visit that this part holds", shelf.table))
                    .at(part.path.display().to_string())
                    .hint("nothing was removed: continue with `--resume`"));
            }
        }
        let mut folders = BTreeSet::new();
        for path in listed.iter().filter(|path| claim::claim_of(path).is_some_and(|claim| self.claim.covers(claim))) {
            match std::fs::remove_file(path) {
                Err(e) if e.kind() != ErrorKind::NotFound => return Err(Error::io("clear the part", path, &e)),
                _ => folders.extend(path.parent().map(Path::to_path_buf)),
            }
        }
        // What is left of tables that processes of this run wrote when they were killed. Only the owner of a run writes its tables.
        let is_left = |name: &str| name.starts_with(TEMPORARY) && name.ends_with(".parquet");
        let left =
            look::entries(&self.path)?.into_iter().filter(|entry| entry.file_name().to_str().is_some_and(is_left));
        left.for_each(|left| drop(std::fs::remove_file(left.path())));
        self.clear_scratch()?;
        self.claim.forget_earlier();
        // The inner ones first; one is not empty where a later claim has parts.
        folders.insert(self.path.join(files::PARTS));
        folders.iter().rev().for_each(|folder| drop(std::fs::remove_dir(folder)));
        Ok(())
    }

    fn metadata(&self, complete: bool) -> Result<Metadata> {
        let text = |name: &str| {
            let path = self.path.join(name);
            std::fs::read_to_string(&path).map_err(|e| Error::io("read the file", &path, &e))
        };
        Ok(written::metadata_of_run(&text(files::SPEC)?, &text(files::ENVIRONMENT)?, complete))
    }
}

/// True where a folder holds anything but what a run that was killed before it wrote its spec leaves behind.
fn holds_something_else(path: &Path) -> Result<bool> {
    for entry in look::entries(path)? {
        let name = entry.file_name().to_string_lossy().into_owned();
        let ours = name == files::LOCK
            || name.starts_with(TEMPORARY)
            || name.starts_with(claim::PREFIX)
            || (name == files::PARTS && look::entries(&entry.path())?.is_empty());
        if !ours {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Every row of a sealed table of a run, without opening the run for writing.
///
/// # Errors
/// [`Kind::Io`] where there is no such table, [`Kind::Data`] where it is damaged or of a newer schema.
pub fn sealed<R: Record>(path: &Path) -> Result<Vec<R>> {
    check_version(path)?;
    let mut rows = Vec::new();
    parquet::read(path, None, |frame| {
        rows.extend(R::rows(frame).map_err(|e| e.at(path.display().to_string()))?);
        Ok(())
    })?;
    Ok(rows)
}

/// Renames a finished run to the first free `<name>.1`, `<name>.2`, ...; refuses an unfinished one, and one in use.
fn keep_earlier(path: &Path) -> Result<PathBuf> {
    // Held while the folder is renamed: a process that resumes the run here would go on in the renamed one.
    let _lock = Lock::take(path)?;
    if !is_complete(path)? {
        return Err(Error::new(Kind::Conflict, "this folder contains an unfinished run")
            .at(path.display().to_string())
            .hint("continue it with `--resume`, or choose another folder with `--out DIR`"));
    }
    // `results/vgg16/` is called as `results/vgg16`.
    let path: PathBuf = path.components().collect();
    let kept = first_free(&path, |number| format!(".{number}"))?;
    std::fs::rename(&path, &kept).map_err(|e| Error::io("keep the earlier run", &path, &e))?;
    Ok(kept)
}

/// The path with the ending of the smallest number, from 1, that is not taken.
fn first_free(path: &Path, ending: impl Fn(usize) -> String) -> Result<PathBuf> {
    let mut number = 1;
    loop {
        let mut name = path.as_os_str().to_owned();
        name.push(ending(number));
        if !look::is_there(Path::new(&name))? {
            return Ok(name.into());
        }
        number += 1;
    }
}
