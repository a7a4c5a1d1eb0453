//! Kernels that others measured and published, with source and licence.

use std::path::Path;

use crate::error::{Error, Result};
use crate::store::{CollectedKernel, dataset};

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
    let licence = licence.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    dataset::rows_of_others(path, [("source", source), ("licence", licence)]).map_err(|error| {
        error.hint(
            "published numbers come in as the table of `scripts/fetch-published`; its columns are in scripts/README.md",
        )
    })
}
