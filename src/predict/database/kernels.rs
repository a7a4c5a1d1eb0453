//! Kernels that others measured and published, with source and licence.

use std::path::Path;

use crate::error::{Error, Result};
use crate::predict::published_kernels::{NUMBERS, TEXTS};
use crate::store::{CollectedKernel, Table, dataset};

/// The numbers that the database keeps: all but the size of the cache.
const KEPT: &[&str] = NUMBERS.split_last().expect("columns").1;

/// Reads the table that `scripts/fetch-published` writes.
///
/// # Errors
/// [`crate::error::Kind::Data`] if it is another table, or names no source or no licence.
pub(super) fn read(path: &Path) -> Result<Vec<CollectedKernel>> {
    let here = |error: Error| error.at(path.display().to_string());
    let metadata = dataset::metadata(path)?;
    let (Some(source), Some(licence)) = (metadata.get("source"), metadata.get("licence")) else {
        return Err(here(
            Error::data("this table says neither who measured nor under which licence: its metadata has no `source` and `licence`")
                .hint("collect run directories, or the table that `scripts/fetch-published` writes"),
        ));
    };
    let licence = licence.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim().to_owned();
    rows(path, source, &licence).map_err(|error| {
        error.hint(
            "published numbers come in as the table of `scripts/fetch-published`; its columns are in scripts/README.md",
        )
    })
}

fn rows(path: &Path, source: &str, licence: &str) -> Result<Vec<CollectedKernel>> {
    let table = Table::read(path, &[&TEXTS[..], KEPT].concat())?;
    let texts: Vec<Vec<String>> = TEXTS.iter().map(|name| table.texts(name)).collect::<Result<_>>()?;
    let numbers: Vec<Vec<f64>> = KEPT.iter().map(|name| table.numbers(name)).collect::<Result<_>>()?;
    let row = |row: usize| {
        let text = |column: usize| texts[column][row].clone();
        let whole = |column: usize| numbers[column][row] as i64;
        let number = |column: usize| numbers[column][row];
        CollectedKernel {
            source: source.to_owned(),
            licence: licence.to_owned(),
            device_name: text(0),
            operation: text(1),
            kernel: text(2),
            kernels: text(3),
            multiprocessors: whole(0),
            batch_size: whole(3),
            in_channels: whole(4),
            out_channels: whole(5),
            height: whole(6),
            width: whole(7),
            kernel_size: whole(8),
            stride: whole(9),
            padding: whole(10),
            grid_x: whole(11),
            grid_y: whole(12),
            grid_z: whole(13),
            time_s: number(14),
            flops_per_s: number(1),
            bytes_per_s: number(2),
        }
    };
    Ok((0..table.rows()).map(row).collect())
}
