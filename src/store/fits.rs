//! The tables of a study of fits: losses by epoch, and the fitted surfaces.

use std::path::Path;

use super::claim;
use super::directory::{RunDirectory, check_version, sealed};
use super::names::files;
use super::parquet;
use super::record::Record;
use super::schema::{FitRow, SurfaceRow};
use crate::error::{Error, Result};

pub(super) const FITS: &str = "fit-";
const SURFACES: &str = "surface-";

impl RunDirectory {
    /// Stores one fit. Its surface comes first: a fit is there once its epochs are.
    ///
    /// # Errors
    /// [`crate::error::Kind::Io`]; what was stored before stays.
    pub fn append_fit(&self, epochs: &[FitRow], surface: &[SurfaceRow]) -> Result<()> {
        let Some(first) = epochs.first() else { return Ok(()) };
        if !surface.is_empty() {
            self.write_part(SURFACES, first.visit, surface)?;
        }
        self.write_part(FITS, first.visit, epochs)
    }

    /// Every epoch there is, sealed or not, in the order of the run. A part that can't be read is set aside, with a notice.
    ///
    /// # Errors
    /// [`crate::error::Kind::Data`] where the sealed table is damaged or of a newer schema.
    pub fn fits(&self, notices: &mut Vec<String>) -> Result<Vec<FitRow>> {
        let path = self.path().join(files::FIT);
        let mut rows: Vec<FitRow> = if path.is_file() { sealed(&path)? } else { Vec::new() };
        let last = rows.iter().map(|row| row.visit).max().unwrap_or(-1);
        for part in self.parts(FITS)? {
            rows.extend(self.read_part::<FitRow>(&part, notices)?.into_iter().filter(|row| row.visit > last));
        }
        Ok(rows)
    }

    fn surfaces(&self) -> Result<Vec<SurfaceRow>> {
        let path = self.path().join(files::SURFACE);
        let mut rows: Vec<SurfaceRow> = if path.is_file() { sealed(&path)? } else { Vec::new() };
        let last = rows.iter().map(|row| row.visit).max().unwrap_or(-1);
        for part in self.parts(SURFACES)? {
            let part = self.read_part::<SurfaceRow>(&part, &mut Vec::new())?;
            rows.extend(part.into_iter().filter(|row| row.visit > last));
        }
        Ok(rows)
    }

    /// Turns the parts into the single files; `complete` says that nothing is left to resume.
    ///
    /// # Errors
    /// [`crate::error::Kind::Io`]; the parts stay until the sealed files are on the disk.
    pub fn seal_fits(&self, complete: bool) -> Result<()> {
        let mut metadata = self.metadata(complete)?;
        let (fits, mut surfaces) = (self.fits(&mut Vec::new())?, self.surfaces()?);
        surfaces.retain(|point| fits.iter().any(|row| row.visit == point.visit));
        self.write_table::<SurfaceRow>(files::SURFACE, &mut metadata, |put| surfaces.into_iter().try_for_each(put))?;
        self.write_table::<FitRow>(files::FIT, &mut metadata, |put| fits.into_iter().try_for_each(put))?;
        self.clear_parts()
    }

    /// Whether a folder holds a study of fits.
    pub fn is_fit(path: &Path) -> bool {
        path.join(files::FIT).is_file() || claim::parts(path, FITS).is_ok_and(|parts| !parts.is_empty())
    }

    /// The epochs of a study, finished or under way, without opening it for writing.
    ///
    /// # Errors
    /// [`crate::error::Kind::Data`] where there are none, or the table is damaged or of a newer schema.
    pub fn fits_of(path: &Path) -> Result<Vec<FitRow>> {
        let rows = stored(path, files::FIT, FITS)?;
        if rows.is_empty() {
            return Err(
                Error::data("this folder holds no fit.parquet and no parts of one").at(path.display().to_string())
            );
        }
        Ok(rows)
    }

    /// The surfaces of a study, likewise; none where no engine gave one.
    ///
    /// # Errors
    /// As [`RunDirectory::fits_of`], of damaged tables.
    pub fn surfaces_of(path: &Path) -> Result<Vec<SurfaceRow>> {
        stored(path, files::SURFACE, SURFACES)
    }

    /// Checks that a sealed study can be continued by this version.
    ///
    /// # Errors
    /// As [`RunDirectory::fits_of`].
    pub(super) fn check_fits(path: &Path) -> Result<()> {
        let table = path.join(files::FIT);
        if table.is_file() { check_version(&table) } else { Ok(()) }
    }
}

fn stored<R: Record>(path: &Path, name: &str, prefix: &str) -> Result<Vec<R>> {
    let table = path.join(name);
    if table.is_file() {
        return sealed(&table);
    }
    let mut rows = Vec::new();
    for part in claim::parts(path, prefix)? {
        parquet::read(&part, None, |frame| R::rows(frame).map(|more| rows.extend(more)))?;
    }
    Ok(rows)
}
