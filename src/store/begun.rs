//! How a run was begun, and how far it has come. It goes on with the same spec only, since its rows name their cells by the numbers in its plan.

use std::path::Path;

use super::claim::parts;
use super::digest::digest;
use super::names::{files, keys};
use super::parquet;
use crate::error::{Error, Kind, Result};
use crate::kinds::Shelf;
use crate::os::look;

/// Whether two specs differ only in their time limit.
///
/// # Errors
/// [`Kind::Conflict`] where they differ in anything else, or `begun` is not the spec that the run in `path` was begun with.
pub(super) fn has_more_time(path: &Path, begun: &str, spec: &str) -> Result<bool> {
    if kept_digest(path)?.is_some_and(|kept| kept != spec_digest(begun)) {
        return Err(Error::new(Kind::Conflict, "its spec.toml is not the one that this run was begun with")
            .at(path.display().to_string())
            .hint("put spec.toml back as it was, or choose another folder with `--out DIR`"));
    }
    if begun != spec && without_limit(begun) != without_limit(spec) {
        return Err(Error::new(Kind::Conflict, format!("the spec has changed:\n{}", difference(begun, spec)))
            .at(path.display().to_string())
            .hint("resume with the spec it was begun with, or choose another folder with `--out DIR`"));
    }
    Ok(begun != spec)
}

/// A spec without its time limit, which ends a run and decides nothing else.
pub(super) fn without_limit(spec: &str) -> String {
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

/// A digest of what a spec asks for, apart from the time limit.
pub(super) fn spec_digest(spec: &str) -> String {
    digest([without_limit(spec).as_bytes()])
}

/// The digest that the environment of the run keeps; `None` in runs of earlier versions.
fn kept_digest(path: &Path) -> Result<Option<String>> {
    let kept = |text: String| -> Option<String> {
        let environment: serde_json::Value = serde_json::from_str(&text).ok()?;
        environment["spec_digest"].as_str().map(str::to_owned)
    };
    Ok(environment_of(path)?.and_then(kept))
}

/// The environment of the run in `path`: its file, or if that is missing what a sealed table says.
pub(super) fn environment_of(path: &Path) -> Result<Option<String>> {
    if let Some(text) = look::text(&path.join(files::ENVIRONMENT))? {
        return Ok(Some(text));
    }
    for shelf in Shelf::main() {
        let table = path.join(shelf.table);
        if look::is_file(&table)? {
            return Ok(parquet::describe(&table)?.1.remove(keys::ENVIRONMENT));
        }
    }
    Ok(None)
}

/// Whether a sealed table says that the run has finished. A run that went on with more time has another limit in its spec than in its table, until it is
/// sealed again.
pub(super) fn is_complete(path: &Path) -> Result<bool> {
    for shelf in Shelf::main() {
        let table = path.join(shelf.table);
        if !look::is_file(&table)? {
            continue;
        }
        let metadata = parquet::describe(&table)?.1;
        if metadata.get(keys::COMPLETE).is_some_and(|value| value == "true") {
            let sealed = metadata.get(keys::SPEC);
            let spec = look::text(&path.join(files::SPEC))?;
            let went_on =
                |(sealed, spec): (&String, String)| *sealed != spec && without_limit(sealed) == without_limit(&spec);
            return Ok(!sealed.zip(spec).is_some_and(went_on));
        }
    }
    Ok(false)
}

/// How far a run has come, from its files; another process may be writing to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// The number of the first visit that is not stored yet; what an earlier claim stored too late does not count.
    pub visits: i64,
    /// Whether nothing is left to resume.
    pub complete: bool,
    /// Whether visits are there that are not sealed.
    pub has_parts: bool,
}

impl Extent {
    /// The extent of the run in `path`, of any kind; empty if none has begun.
    ///
    /// # Errors
    /// [`crate::error::Kind::Data`] where the sealed table is damaged; [`crate::error::Kind::Io`].
    pub fn of(path: &Path) -> Result<Self> {
        let mut extent = Self { complete: is_complete(path)?, ..Self::default() };
        for shelf in Shelf::main() {
            let last = parts(path, shelf)?.last().map_or(-1, |part| part.number);
            let sealed = shelf.sealed_numbers(path)?.last().copied().unwrap_or(-1);
            extent.visits = extent.visits.max(sealed.max(last) + 1);
            extent.has_parts |= last > sealed;
        }
        Ok(extent)
    }
}

/// The texts that a run directory begins with.
#[derive(Clone, Debug)]
pub struct Beginning {
    pub spec: String,
    /// `None` where the run has not come so far.
    pub environment: Option<String>,
}

impl Beginning {
    /// Reads how the run in `path` began.
    ///
    /// # Errors
    /// [`crate::error::Kind::Data`] where there is no run; [`crate::error::Kind::Io`].
    pub fn of(path: &Path) -> Result<Self> {
        let none = || Error::data("this folder contains no run").at(path.display().to_string());
        let spec = look::text(&path.join(files::SPEC))?
            .ok_or_else(|| none().hint("give run directories, such as results/vgg16.shard-1-of-8"))?;
        Ok(Self { spec, environment: environment_of(path)? })
    }
}
