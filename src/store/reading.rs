//! The progress of a run that another process may be writing to.

use std::path::Path;

use super::begun::{environment_of, is_complete};
use super::claim::parts;
use super::names::files;
use super::shelf::Shelf;
use crate::error::{Error, Result};
use crate::os::look;

/// How far a run has come, from its files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
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
