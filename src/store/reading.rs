//! Reading a run directory that another process may be writing to.

use std::collections::BTreeSet;
use std::path::Path;

use super::claim::parts;
use super::directory::{LAYER_PARTS, VISIT_PARTS, check_version, is_complete};
use super::names::files;
use super::parquet;
use super::record::{Field, Record};
use super::schema::{LayerRow, StepRow};
use crate::error::{Error, Result};

/// How far a sweep has come, from its files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    pub visits: i64,
    /// Whether nothing is left to resume.
    pub complete: bool,
    /// Whether visits are there that are not sealed.
    pub has_parts: bool,
}

impl Extent {
    /// Of the sweep in `path`; nothing where none has begun.
    ///
    /// # Errors
    /// [`crate::error::Kind::Data`] where the sealed table is damaged; [`crate::error::Kind::Io`].
    pub fn of(path: &Path) -> Result<Self> {
        let parts = parts(path, VISIT_PARTS)?;
        let table = path.join(files::STEPS);
        let sealed = if table.is_file() { last_visit(&table)? } else { -1 };
        let number = |part: &Path| -> Option<i64> {
            let name = part.file_name()?.to_string_lossy().into_owned();
            name.strip_prefix(VISIT_PARTS)?.split('.').next()?.parse().ok()
        };
        let last = parts.iter().filter_map(|part| number(part)).max().unwrap_or(-1);
        Ok(Self { visits: sealed.max(last) + 1, complete: is_complete(path), has_parts: last > sealed })
    }
}

/// The largest number of a visit in a sealed table; -1 where it has no rows.
pub(super) fn last_visit(table: &Path) -> Result<i64> {
    let mut last = -1;
    parquet::read(table, Some(&["visit".to_owned()]), |frame| {
        i64::fill(frame, "visit", |_, visit| last = last.max(visit)).map_err(|e| e.at(table.display().to_string()))
    })?;
    Ok(last)
}

/// Gives the visits of a sealed table after number `after` to `each`, one batch of rows in memory at a time; the last number.
pub(super) fn sealed_visits(table: &Path, after: i64, each: &mut dyn FnMut(Vec<StepRow>) -> Result<()>) -> Result<i64> {
    if !table.is_file() {
        return Ok(after);
    }
    check_version(table)?;
    let mut last = after;
    let mut pending: Vec<StepRow> = Vec::new();
    parquet::read(table, None, |frame| {
        for row in StepRow::rows(frame).map_err(|e| e.at(table.display().to_string()))? {
            if row.visit <= after {
                continue;
            }
            if pending.last().is_some_and(|before| before.visit != row.visit) {
                each(std::mem::take(&mut pending))?;
            }
            last = last.max(row.visit);
            pending.push(row);
        }
        Ok(())
    })?;
    if !pending.is_empty() {
        each(pending)?;
    }
    Ok(last)
}

/// Gives every visit of a run to `each`, sealed or not, in the order of the run, without opening the run for writing: it may be
/// under way. A part that can't be read is passed over, with a notice.
///
/// # Errors
/// [`crate::error::Kind::Data`] where the sealed table is damaged or of a newer schema; what `each` refuses.
pub fn visits_of(
    path: &Path,
    notices: &mut Vec<String>,
    each: &mut dyn FnMut(Vec<StepRow>) -> Result<()>,
) -> Result<()> {
    let table = path.join(files::STEPS);
    // Listed first: what is sealed meanwhile is then in the table.
    let listed = parts(path, VISIT_PARTS)?;
    let mut last = sealed_visits(&table, -1, each)?;
    for part in listed {
        let mut rows: Vec<StepRow> = Vec::new();
        let read = parquet::read(&part, None, |frame| StepRow::rows(frame).map(|more| rows.extend(more)));
        match read {
            Ok(()) if rows.first().is_some_and(|row| row.visit > last) => {
                last = rows[0].visit;
                each(rows)?;
            }
            Ok(()) => {}
            // The run was sealed meanwhile: the rest is in the table.
            Err(_) if !part.exists() => {
                sealed_visits(&table, last, each)?;
                return Ok(());
            }
            Err(_) => notices.push(format!("{} is damaged; its visit is left out", part.display())),
        }
    }
    Ok(())
}

/// Gives the layers of a run to `put`, those sealed and then those of new cells; likewise.
///
/// # Errors
/// As [`visits_of`].
pub fn layers_of(path: &Path, put: &mut dyn FnMut(LayerRow) -> Result<()>) -> Result<()> {
    let sealed = path.join(files::LAYERS);
    let mut known = BTreeSet::new();
    let listed = parts(path, LAYER_PARTS)?;
    if sealed.is_file() {
        check_version(&sealed)?;
        parquet::read(&sealed, None, |frame| {
            LayerRow::rows(frame)?.into_iter().try_for_each(|row| {
                known.insert(row.cell);
                put(row)
            })
        })?;
    }
    for part in listed {
        let mut rows: Vec<LayerRow> = Vec::new();
        let read = parquet::read(&part, None, |frame| LayerRow::rows(frame).map(|more| rows.extend(more)));
        // Another part, or the table, has the layers of the cell, or its next visit brings them.
        if read.is_ok() && rows.first().is_some_and(|row| !known.contains(&row.cell)) {
            rows.into_iter().try_for_each(&mut *put)?;
        }
    }
    Ok(())
}

/// The texts that a run directory begins with.
#[derive(Clone, Debug)]
pub struct Beginning {
    pub spec: String,
    /// `None` where the run has not come so far.
    pub environment: Option<String>,
}

impl Beginning {
    /// Of the run in `path`.
    ///
    /// # Errors
    /// [`crate::error::Kind::Data`] where there is no run.
    pub fn of(path: &Path) -> Result<Self> {
        let read = |name: &str| std::fs::read_to_string(path.join(name)).ok();
        let none = || Error::data("this folder holds no run").at(path.display().to_string());
        let spec =
            read(files::SPEC).ok_or_else(|| none().hint("give run directories, such as results/vgg16.shard-1-of-8"))?;
        Ok(Self { spec, environment: read(files::ENVIRONMENT) })
    }
}
