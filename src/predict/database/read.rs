//! The read side of a database.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::collect::check;
use super::layout::{all, device_folder, of_device, of_network, tables, values};
use crate::error::{Error, Result, nearest};
use crate::store::{CollectedCell, CollectedKernel, CollectedLayer, CollectedRun, CollectedStep};

/// A database of runs, open for reading.
#[derive(Clone, Debug)]
pub struct Database {
    root: PathBuf,
    /// Devices with measured steps, ascending.
    pub devices: Vec<String>,
}

impl Database {
    /// Opens the database in `root`.
    ///
    /// # Errors
    /// [`crate::error::Kind::Data`] if there is no database, or it has another version.
    pub fn open(root: &Path) -> Result<Self> {
        check(root)?;
        Ok(Self { root: root.to_path_buf(), devices: values(&root.join(tables::CELLS), "device")? })
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The measured device that `asked` names, by its full name or by a part that is unique; upper and lower case are
    /// the same.
    ///
    /// # Errors
    /// [`crate::error::Kind::Spec`] if none or several match, with the existing devices.
    pub fn device(&self, asked: &str) -> Result<&str> {
        let wanted = asked.to_lowercase();
        if let Some(device) = self.devices.iter().find(|device| device.to_lowercase() == wanted) {
            return Ok(device);
        }
        let found: Vec<&str> =
            self.devices.iter().map(String::as_str).filter(|device| device.to_lowercase().contains(&wanted)).collect();
        if let [one] = found[..] {
            return Ok(one);
        }
        let names: Vec<&str> = self.devices.iter().map(String::as_str).collect();
        let what = if found.is_empty() { "no measured device" } else { "more than one measured device" };
        let there = if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
        let error = Error::spec(format!("{what} is called `{asked}`; the database has steps of: {there}"))
            .at(self.root.display().to_string());
        Err(match nearest(asked, &names) {
            Some(near) => error.hint(format!("did you mean `{near}`?")),
            None => error.hint("measure on it and collect the run: `batchstep collect RUN --into DIR`"),
        })
    }

    /// The networks that were measured on a device, ascending.
    ///
    /// # Errors
    /// [`crate::error::Kind::Io`].
    pub fn networks(&self, device: &str) -> Result<Vec<String>> {
        values(&device_folder(&self.root, tables::CELLS, device), "network")
    }

    /// The cells of a network on a device, from runs that were collected completely.
    ///
    /// # Errors
    /// [`crate::error::Kind::Data`] where a table is damaged or of another version.
    pub fn cells(&self, device: &str, network: &str) -> Result<Vec<CollectedCell>> {
        let mut cells: Vec<CollectedCell> = all(&of_network(&self.root, tables::CELLS, device, network))?;
        let whole: BTreeSet<String> = self.runs(device)?.into_iter().map(|run| run.run_id).collect();
        cells.retain(|cell| whole.contains(&cell.run_id));
        Ok(cells)
    }

    /// The layers of a network on a device.
    ///
    /// # Errors
    /// As [`Database::cells`].
    pub fn layers(&self, device: &str, network: &str) -> Result<Vec<CollectedLayer>> {
        all(&of_network(&self.root, tables::LAYERS, device, network))
    }

    /// The runs on a device.
    ///
    /// # Errors
    /// As [`Database::cells`].
    pub fn runs(&self, device: &str) -> Result<Vec<CollectedRun>> {
        all(&of_device(&self.root, tables::RUNS, device))
    }

    /// The devices with published kernels, ascending.
    ///
    /// # Errors
    /// [`crate::error::Kind::Io`].
    pub fn published_devices(&self) -> Result<Vec<String>> {
        values(&self.root.join(tables::KERNELS), "device")
    }

    /// The published kernels of one device.
    ///
    /// # Errors
    /// As [`Database::cells`].
    pub fn kernels(&self, device: &str) -> Result<Vec<CollectedKernel>> {
        all(&of_device(&self.root, tables::KERNELS, device))
    }

    /// The training steps that others published, device by device.
    ///
    /// # Errors
    /// As [`Database::cells`].
    pub fn published_steps(&self) -> Result<Vec<CollectedStep>> {
        let devices = values(&self.root.join(tables::STEPS), "device")?;
        let of = |device: &String| all(&of_device(&self.root, tables::STEPS, device));
        Ok(devices.iter().map(of).collect::<Result<Vec<_>>>()?.concat())
    }
}
