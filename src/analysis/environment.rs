//! The part of a run's `environment.json` that analyses read. What a run of an earlier version lacks is empty.

use std::path::Path;

use serde::Deserialize;

use crate::error::{Error, Result};
use crate::os::look;
use crate::store::{MeasuredPeaks, files};

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Environment {
    pub run_id: String,
    pub engines: Vec<EngineFacts>,
    pub peaks: Vec<MeasuredPeaks>,
    pub machine: Machine,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct EngineFacts {
    pub name: String,
    pub device: String,
    pub device_name: String,
    pub version: Option<String>,
    pub l2_bytes: Option<u64>,
    pub workspace_limit_bytes: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Machine {
    pub batchstep: Option<String>,
    pub started: Option<String>,
    pub os: Option<String>,
    pub cpu: Processor,
    pub memory: Memory,
    /// What the process may use of it.
    pub allowance: Allowance,
    pub driver: Driver,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Processor {
    pub logical_cores: Option<usize>,
    pub caches: Vec<CpuCache>,
}

#[derive(Debug, Deserialize)]
pub struct CpuCache {
    pub level: u32,
    pub kind: String,
    pub size_bytes: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Memory {
    pub total_bytes: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Allowance {
    pub cpus: Vec<u64>,
    pub quota_cores: Option<f64>,
    pub memory_limit_bytes: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Driver {
    pub version: Option<String>,
}

impl Environment {
    /// That of the run in `path`, where it has one.
    ///
    /// # Errors
    /// [`crate::error::Kind::Io`] and [`crate::error::Kind::Data`] where the file is there and cannot be read.
    pub fn of_run(path: &Path) -> Result<Option<Self>> {
        let file = path.join(files::ENVIRONMENT);
        let Some(text) = look::text(&file)? else { return Ok(None) };
        serde_json::from_str(&text)
            .map(Some)
            .map_err(|error| Error::data(error.to_string()).at(file.display().to_string()))
    }
}
