//! `environment.json`: what a run ran on, so that its numbers can be judged elsewhere and later.

use std::hint::black_box;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::device::{self, Device};
use crate::engine::open::Engines;
use crate::error::{Error, Result};
use crate::measure::Calibration;

/// The facts of a run, stored beside its steps and in their metadata.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunEnvironment {
    /// Name, start time and process of the run.
    pub run_id: String,
    /// How often it was continued after an interruption.
    pub resumed: u32,
    pub engines: Vec<EngineFacts>,
    /// What measuring costs here; reported, not subtracted.
    pub calibration: Calibration,
    /// What the device does not let be read from the beginning; those columns are null. Only what fails later is a warning.
    pub unreadable: Vec<String>,
    /// The machine.
    pub machine: device::Environment,
}

/// An engine of the run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EngineFacts {
    pub name: String,
    pub device: String,
    pub device_name: String,
    /// Of an engine that is no part of this program.
    pub version: Option<String>,
}

impl RunEnvironment {
    /// Looks at the machine and calibrates; takes some tens of milliseconds.
    pub fn begin(name: &str, engines: &Engines, device: &mut dyn Device) -> Self {
        let machine = device::environment();
        let calibration = Calibration::measure(|| drop(black_box(device.read())), || ());
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        Self {
            run_id: format!("{name}-{seconds}-{}", std::process::id()),
            resumed: 0,
            engines: engines
                .iter()
                .map(|(name, engine)| EngineFacts {
                    name: name.to_string(),
                    device: engine.device().id.clone(),
                    device_name: engine.device().name.clone(),
                    version: engine.version(),
                })
                .collect(),
            calibration,
            unreadable: device.warnings(),
            machine,
        }
    }

    /// The same run, continued; looks once at what the device lets be read now.
    pub fn resumed(mut self, device: &mut dyn Device) -> Self {
        self.resumed += 1;
        drop(device.read());
        self.unreadable = device.warnings();
        self
    }

    /// The document.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// Reads the document again.
    ///
    /// # Errors
    /// [`crate::error::Kind::Data`] where it is damaged.
    pub fn from_json(text: &str) -> Result<Self> {
        serde_json::from_str(text).map_err(|e| Error::data(format!("damaged: {e}")).at("environment.json"))
    }
}
