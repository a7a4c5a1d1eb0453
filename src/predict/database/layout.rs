//! Where the tables of a database are, and their rows.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::error::Result;
use crate::os::look;
use crate::store::{Record, dataset};

/// The names of the tables; each is a folder of the database.
pub(super) mod tables {
    pub const RUNS: &str = "runs";
    pub const CELLS: &str = "cells";
    pub const LAYERS: &str = "layers";
    pub const KERNELS: &str = "kernels";
    pub const STEPS: &str = "steps";
}

/// The file that marks the folder as a database.
pub(super) const MARK: &str = "database.json";

/// `DIR/<table>/device=<device>/<table>.parquet`.
pub(super) fn of_device(root: &Path, table: &str, device: &str) -> PathBuf {
    device_folder(root, table, device).join(format!("{table}.parquet"))
}

pub(super) fn device_folder(root: &Path, table: &str, device: &str) -> PathBuf {
    root.join(table).join(folder("device", device))
}

/// `DIR/<table>/device=<device>/network=<network>/<table>.parquet`.
pub(super) fn of_network(root: &Path, table: &str, device: &str, network: &str) -> PathBuf {
    device_folder(root, table, device).join(folder("network", network)).join(format!("{table}.parquet"))
}

/// The values of the key `key` among the folders in `path`, ascending.
pub(super) fn values(path: &Path, key: &str) -> Result<Vec<String>> {
    let entries = look::entries(path)?;
    let names = entries.iter().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut values: Vec<String> =
        names.filter_map(|name| Some(decoded(name.strip_prefix(key)?.strip_prefix('=')?))).collect();
    values.sort();
    Ok(values)
}

/// What stays as it is in the name of a folder.
const KEPT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.');

/// `key=value`, with everything but letters, digits, `-`, `_` and `.` in percent signs, as Hive, polars and DuckDB read it.
fn folder(key: &str, value: &str) -> String {
    format!("{key}={}", utf8_percent_encode(value, KEPT))
}

fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_comes_back_from_its_folder() {
        for value in ["Tesla T4", "AMD EPYC (2 cores)", "100% / a=b", "mlp_1_2", "vgg16 at 3x32x32 to 10"] {
            let name = folder("device", value);
            assert!(name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.=%".contains(&b)), "{name}");
            assert_eq!(decoded(name.strip_prefix("device=").unwrap()), value);
        }
        assert_eq!(folder("device", "Tesla T4"), "device=Tesla%20T4");
    }
}
