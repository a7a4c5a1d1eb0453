//! What a run stored visit by visit, sealed or not.

use std::collections::BTreeSet;
use std::path::Path;

use super::claim::{self, PartFile};
use super::parquet::{self, check_version};
use super::shelf::Stored;
use crate::error::{Error, Kind, Result};
use crate::os::look;

/// Takes the rows of one visit, or of one cell.
pub type Each<'a, R> = &'a mut dyn FnMut(Vec<R>) -> Result<()>;

/// Gives the rows of every visit in `folder` to `each`, sealed or not, in the order of the run; one batch of rows is in memory at a
/// time. `damaged` decides what becomes of a part whose content is malformed.
///
/// # Errors
/// [`Kind::Data`] where the sealed table is damaged or of a newer schema; [`Kind::Io`] where anything cannot be read, since what cannot
/// be read is not known to be damaged; what `each` and `damaged` refuse.
pub(super) fn read_all<R: Stored>(
    folder: &Path,
    damaged: &mut dyn FnMut(&Path, &Error) -> Result<()>,
    each: Each<R>,
) -> Result<()> {
    // Listed first: what another process seals meanwhile is then in the table.
    let listed = claim::parts(folder, &R::SHELF)?;
    let mut given = BTreeSet::new();
    read_sealed(folder, &mut given, each)?;
    for part in listed {
        // A run that was killed between sealing and clearing its parts has some visits twice.
        if given.contains(&part.number) {
            continue;
        }
        match read_part(&part) {
            Ok(rows) => {
                given.insert(part.number);
                each(rows)?;
            }
            Err(_) if !look::is_there(&part.path)? => return read_sealed(folder, &mut given, each),
            Err(error) if error.kind() == Kind::Data => damaged(&part.path, &error)?,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The rows of one part.
fn read_part<R: Stored>(part: &PartFile) -> Result<Vec<R>> {
    let mut rows: Vec<R> = Vec::new();
    let here = |error: Error| error.at(part.path.display().to_string());
    parquet::read(&part.path, None, |frame| R::rows(frame).map(|more| rows.extend(more)).map_err(here))?;
    match rows.iter().find(|row| row.number() != part.number) {
        None if !rows.is_empty() => Ok(rows),
        None => Err(here(Error::data("this part contains no row"))),
        Some(other) => Err(here(Error::data(format!(
            "this part contains a row of {} {}",
            R::SHELF.number.column(),
            other.number()
        )))),
    }
}

/// Gives those rows of the sealed table to `each` whose number was not given before.
fn read_sealed<R: Stored>(folder: &Path, given: &mut BTreeSet<i64>, each: Each<R>) -> Result<()> {
    let table = folder.join(R::SHELF.table);
    if !look::is_file(&table)? {
        return Ok(());
    }
    check_version(&table)?;
    let before = given.clone();
    let mut pending: Vec<R> = Vec::new();
    parquet::read(&table, None, |frame| {
        for row in R::rows(frame).map_err(|e| e.at(table.display().to_string()))? {
            if before.contains(&row.number()) {
                continue;
            }
            if pending.last().is_some_and(|last| last.number() != row.number()) {
                each(std::mem::take(&mut pending))?;
            }
            given.insert(row.number());
            pending.push(row);
        }
        Ok(())
    })?;
    if pending.is_empty() { Ok(()) } else { each(pending) }
}

/// Gives every row of a run to `each`, sealed or not, without opening the run for writing: it may be under way. A part that is damaged
/// is passed over, with a notice.
///
/// # Errors
/// As [`read_all`].
pub fn visits_of<R: Stored>(path: &Path, notices: &mut Vec<String>, each: Each<R>) -> Result<()> {
    let mut damaged = |part: &Path, _: &Error| {
        notices.push(format!("{} is damaged; its rows are left out", part.display()));
        Ok(())
    };
    read_all(path, &mut damaged, each)
}

/// Whether a folder holds rows of this kind, sealed or not.
///
/// # Errors
/// [`Kind::Io`].
pub fn holds<R: Stored>(folder: &Path) -> Result<bool> {
    Ok(look::is_file(&folder.join(R::SHELF.table))? || !claim::parts(folder, &R::SHELF)?.is_empty())
}

/// The visits that are there, sealed or not.
///
/// # Errors
/// [`Kind::Data`] where the sealed table is damaged; [`Kind::Io`].
pub fn count_visits<R: Stored>(folder: &Path) -> Result<usize> {
    let mut numbers = R::SHELF.sealed_numbers(folder)?;
    numbers.extend(claim::parts(folder, &R::SHELF)?.iter().map(|part| part.number));
    Ok(numbers.len())
}

/// What an error says of a part, without its path.
pub(super) fn why(part: &Path, error: &Error) -> String {
    let clause = error.clause();
    clause.strip_prefix(&format!("{}: ", part.display())).unwrap_or(&clause).to_owned()
}

/// What a reader says that cannot do without a damaged part.
pub(super) fn damaged_part(part: &Path, error: &Error) -> Error {
    Error::data(format!("this part is damaged: {}", why(part, error)))
        .at(part.display().to_string())
        .hint("`batchstep run SPEC --resume` sets it aside and measures its rows again")
}

/// Every row of a run, likewise, where a damaged part is an error.
///
/// # Errors
/// As [`visits_of`]; [`Kind::Data`] where a part is damaged, and where a study has not stored any visit.
pub fn rows_of<R: Stored>(path: &Path) -> Result<Vec<R>> {
    let mut rows = Vec::new();
    let mut damaged = |part: &Path, error: &Error| Err(damaged_part(part, error));
    read_all(path, &mut damaged, &mut |more: Vec<R>| {
        rows.extend(more);
        Ok(())
    })?;
    if rows.is_empty() && R::SHELF.is_main() {
        let what = format!("this folder contains no {} and no parts of one", R::SHELF.table);
        return Err(Error::data(what).at(path.display().to_string()));
    }
    Ok(rows)
}
