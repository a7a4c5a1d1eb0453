//! Which of several processes a run directory belongs to.
//!
//! If a machine or its link is lost, a scheduler starts the run again elsewhere while the first process may still live. A
//! lock does not help: it may never be released, and some file systems have no locks. So each process that opens a run directory makes a
//! claim, numbered from 1, by creating the file `.claim-N`, which must not exist yet; only one of two processes can. It then notes in the file
//! the first visit that it owns. A process whose number is no longer the highest stops at its next visit. Every reader recognises later parts
//! of that process by the number in their names and their place in the run, and leaves them out (a fencing token; Kleppmann, Designing
//! Data-Intensive Applications, 2017, chapter 8). This requires exclusive creation and atomic renaming, but neither locks nor hard links.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};

use super::names::files;
use crate::error::{Error, Kind, Result};
use crate::kinds::{Number, Shelf};
use crate::os::atomic::{TEMPORARY, write_text};
use crate::os::look;

/// Parts in one folder, of visits and of cells each.
const MOST_FILES: i64 = 1000;
/// How the name of a claim begins.
pub(super) const PREFIX: &str = ".claim-";

/// The claim of this process to a run directory.
#[derive(Debug)]
pub(super) struct Claim {
    folder: PathBuf,
    number: u64,
    /// Its first visit.
    first: AtomicI64,
}

impl Claim {
    /// Makes the next claim. Another process that holds an earlier one writes no more from here on that counts.
    ///
    /// # Errors
    /// [`Kind::Io`].
    pub fn make(folder: &Path) -> Result<Self> {
        loop {
            let number = Claims::read(folder)?.last() + 1;
            let path = path(folder, number);
            match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(_) => return Ok(Self { folder: folder.to_path_buf(), number, first: AtomicI64::new(i64::MAX) }),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(Error::io("claim the run directory", &path, &error)),
            }
        }
    }

    /// Notes the first visit that this claim owns: the first that no earlier claim has stored. If the last stored visits turn out to be
    /// damaged, this number falls; it never rises.
    ///
    /// # Errors
    /// [`Kind::Io`].
    pub fn begin_at(&self, visit: i64) -> Result<()> {
        if visit >= self.first.load(Ordering::SeqCst) {
            return Ok(());
        }
        write_text(&path(&self.folder, self.number), &format!("{visit}\n"))?;
        self.first.store(visit, Ordering::SeqCst);
        Ok(())
    }

    /// Fails where another process has made a later claim.
    ///
    /// # Errors
    /// [`Kind::Conflict`]; [`Kind::Io`] where that could not be found out.
    pub fn check(&self) -> Result<()> {
        if !look::is_there(&path(&self.folder, self.number + 1))? {
            return Ok(());
        }
        Err(Error::new(
            Kind::Conflict,
            "another process has taken this run over; what this one had not stored is dropped",
        )
        .at(self.folder.display().to_string())
        .hint("nothing is lost: the other one goes on with the same plan"))
    }

    /// Where a part lies among the parts: `visit-00000012.parquet` of the first claim, `visit-00000012.3.parquet` of the third, and beyond the
    /// first thousand `00017/visit-00017012.parquet`, since folders of many thousand files are slow on network file systems.
    pub fn part_name(&self, prefix: &str, number: i64) -> PathBuf {
        let name = match self.number {
            1 => format!("{prefix}{number:08}.parquet"),
            claim => format!("{prefix}{number:08}.{claim}.parquet"),
        };
        match number / MOST_FILES {
            0 => name.into(),
            thousand => Path::new(&format!("{thousand:05}")).join(name),
        }
    }

    /// Whether another one is this claim or an earlier one.
    pub fn covers(&self, number: u64) -> bool {
        number <= self.number
    }

    /// Removes the notes of earlier claims, which nothing refers to once their parts are gone.
    pub fn forget_earlier(&self) {
        (1..self.number).for_each(|earlier| drop(std::fs::remove_file(path(&self.folder, earlier))));
    }
}

fn path(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{PREFIX}{number}"))
}

/// All claims to a run directory, with the first visit of each.
struct Claims(BTreeMap<u64, i64>);

impl Claims {
    fn read(folder: &Path) -> Result<Self> {
        let mut claims = BTreeMap::new();
        for entry in look::entries(folder)? {
            let name = entry.file_name();
            let number = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.parse().ok());
            if let Some(number) = number {
                let first = look::text(&entry.path())?.and_then(|text| text.trim().parse().ok());
                // A claim without a first visit has stored nothing.
                claims.insert(number, first.unwrap_or(i64::MAX));
            }
        }
        Ok(Self(claims))
    }

    fn last(&self) -> u64 {
        self.0.keys().next_back().copied().unwrap_or(0)
    }

    /// The claim that a visit belongs to.
    fn of(&self, visit: i64) -> u64 {
        let own = self.0.iter().rev().find(|(_, first)| **first <= visit);
        own.map_or(1, |(number, _)| *number)
    }
}

/// A part file of a run that is not sealed yet.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PartFile {
    /// The visit's, or the cell's.
    pub number: i64,
    pub claim: u64,
    pub path: PathBuf,
}

impl PartFile {
    /// By its name: `visit-00000012.3.parquet`, or `visit-00000012.parquet` under the first claim.
    fn named(path: &Path, name: &str, shelf: &Shelf) -> Option<Self> {
        let middle = name.strip_prefix(shelf.parts)?.strip_suffix(".parquet")?;
        let (number, claim) = middle.split_once('.').unwrap_or((middle, "1"));
        Some(Self { number: number.parse().ok()?, claim: claim.parse().ok()?, path: path.to_path_buf() })
    }
}

/// The claim that a part was written under, or is being written under beside its place, by its name. `None` where it is no part.
pub(super) fn claim_of(path: &Path) -> Option<u64> {
    let name = path.file_name()?.to_str()?;
    let name = match name.strip_prefix(TEMPORARY) {
        Some(hidden) => hidden.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == '-'),
        None => name,
    };
    Shelf::all().find_map(|shelf| PartFile::named(path, name, shelf)).map(|part| part.claim)
}

/// Every file in the folder of parts and in its subfolders of a thousand parts each; empty if there is no such folder.
///
/// # Errors
/// [`Kind::Io`].
pub(super) fn files_of(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in look::entries(&folder.join(files::PARTS))? {
        let is_thousand = entry.file_name().to_str().is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
        if is_thousand {
            found.extend(look::entries(&entry.path())?.iter().map(std::fs::DirEntry::path));
        } else {
            found.push(entry.path());
        }
    }
    Ok(found)
}

/// Every part on a shelf, in the order of their numbers; nothing where there is no folder of parts.
///
/// # Errors
/// [`Kind::Io`].
pub(super) fn all_parts(folder: &Path, shelf: &Shelf) -> Result<Vec<PartFile>> {
    let part = |path: PathBuf| PartFile::named(&path, path.file_name()?.to_str()?, shelf);
    let mut parts: Vec<PartFile> = files_of(folder)?.into_iter().filter_map(part).collect();
    parts.sort();
    Ok(parts)
}

/// The parts that count: for each visit, the part written under the claim that owns the visit. Parts of cells do not depend on the claim,
/// so for each cell the last part counts.
///
/// # Errors
/// [`Kind::Io`].
pub(super) fn parts(folder: &Path, shelf: &Shelf) -> Result<Vec<PartFile>> {
    let mut parts = all_parts(folder, shelf)?;
    match shelf.number {
        Number::Cell => {
            parts.reverse();
            parts.dedup_by_key(|part| part.number);
            parts.reverse();
        }
        Number::Visit => {
            let claims = Claims::read(folder)?;
            parts.retain(|part| part.claim == claims.of(part.number));
        }
    }
    Ok(parts)
}
