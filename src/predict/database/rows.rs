//! The rows of the tables of a database.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::layout::{of_device, values};
use crate::error::Result;
use crate::store::{Record, dataset};

pub(super) fn all<R: Record>(path: &Path) -> Result<Vec<R>> {
    let mut rows = Vec::new();
    dataset::rows(path, &mut |row| {
        rows.push(row);
        Ok(())
    })?;
    Ok(rows)
}

/// Puts `rows` into a table in place of those that are `outdated`.
pub(super) fn replace<R: Record>(path: &Path, rows: Vec<R>, outdated: impl Fn(&R) -> bool) -> Result<()> {
    dataset::replace(path, |put| {
        dataset::rows(path, &mut |row: R| if outdated(&row) { Ok(()) } else { put(row) })?;
        rows.into_iter().try_for_each(put)
    })
}

/// Puts what others measured into the files of `table`, in place of earlier rows from the same sources; `of` gives the device and the source of a row.
pub(super) fn replace_published<R: Record>(
    root: &Path,
    table: &str,
    rows: Vec<R>,
    of: fn(&R) -> [&String; 2],
) -> Result<()> {
    let sources: BTreeSet<String> = rows.iter().map(|row| of(row)[1].clone()).collect();
    // If the sources no longer name a GPU, its rows are removed as well.
    let known = values(&root.join(table), "device")?;
    let mut devices: BTreeMap<String, Vec<R>> = known.into_iter().map(|device| (device, Vec::new())).collect();
    for row in rows {
        devices.entry(of(&row)[0].clone()).or_default().push(row);
    }
    let of_sources = |row: &R| sources.contains(of(row)[1]);
    devices.into_iter().try_for_each(|(device, rows)| replace(&of_device(root, table, &device), rows, of_sources))
}
