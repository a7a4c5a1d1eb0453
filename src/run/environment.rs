//! `environment.json`: what a run ran on, so that its numbers can be judged elsewhere and later.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::hint::black_box;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::device::{self, Device};
use crate::engine::Peaks;
use crate::engine::SourceFile;
use crate::engine::open::Engines;
use crate::error::{Error, Result};
use crate::measure::Calibration;
use crate::spec::plan::Plan;
use crate::store::MeasuredPeaks;

/// The facts of a run, stored beside its steps and in their metadata.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunEnvironment {
    /// Name, start time and process of the run, and a random number: in containers all processes have the same number.
    pub run_id: String,
    /// See [`crate::store::RunDirectory::spec_digest`]; `None` in runs of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec_digest: Option<String>,
    /// How often it was continued after an interruption.
    pub resumed: u32,
    pub engines: Vec<EngineFacts>,
    /// What the devices reached, the better of the beginning of the run and its end.
    #[serde(default)]
    pub peaks: Vec<MeasuredPeaks>,
    /// What measuring costs here; reported, not subtracted.
    pub calibration: Calibration,
    /// What the device does not let be read from the beginning; those columns are null. Only what fails later is a warning.
    pub unreadable: Vec<String>,
    /// A number that changes with the data set of a training; `None` in a sweep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
    /// The machine.
    pub machine: device::Environment,
}

/// An engine of the run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EngineFacts {
    pub name: String,
    pub device: String,
    pub device_name: String,
    /// The version of an engine that is not part of this program.
    pub version: Option<String>,
    /// The time of a step with next to nothing in it: what no batch size can be faster than. See
    /// [`crate::engine::Engine::smallest_step_s`].
    #[serde(default)]
    pub smallest_step_s: Option<f64>,
    /// The second-level cache of a GPU; see [`crate::engine::MemoryLimits`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub l2_bytes: Option<u64>,
    /// The files of Python that its steps came from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<SourceFile>,
    /// The engine's own limit of a convolution's scratch memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_limit_bytes: Option<u64>,
}

/// Measures the peaks once for every engine, precision and number of threads. A peak that cannot be measured is left out: peaks
/// explain results and are not results themselves.
fn peaks(plan: &Plan, engines: &mut Engines) -> Vec<MeasuredPeaks> {
    let mut seen = Vec::new();
    let mut measured = Vec::new();
    for cell in &plan.cells {
        let name = engines.resolve(cell.engine);
        let Ok(engine) = engines.get(cell.engine) else { continue };
        let Ok(settings) = engine.in_force(&cell.workload.settings) else { continue };
        let key = (name, settings.precision, settings.threads);
        if seen.contains(&key) {
            continue;
        }
        seen.push(key);
        if let Ok(Some(Peaks { flops_per_s, bytes_per_s })) = engine.peaks(&settings) {
            measured.push(MeasuredPeaks {
                engine: name.to_string(),
                precision: settings.precision.to_string(),
                threads: settings.threads.map(|threads| threads as u64),
                flops_per_s,
                bytes_per_s,
            });
        }
    }
    measured
}

impl RunEnvironment {
    /// Looks at the machine and calibrates; takes some tens of milliseconds, and for each engine and precision of the plan
    /// the fraction of a second in which its peaks are measured.
    pub fn begin(name: &str, plan: &Plan, engines: &mut Engines, device: &mut dyn Device) -> Self {
        let peaks = peaks(plan, engines);
        let smallest = engines.smallest_steps();
        let machine = device::environment();
        let calibration = Calibration::measure(|| drop(black_box(device.read())));
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        // The keys of Rust's own hashes come from the system's source of random numbers.
        let random = RandomState::new().build_hasher().finish() as u32;
        Self {
            run_id: format!("{name}-{seconds}-{}-{random:08x}", std::process::id()),
            spec_digest: None,
            resumed: 0,
            engines: engines
                .iter()
                .map(|(name, engine)| EngineFacts {
                    name: name.to_string(),
                    device: engine.device().id.clone(),
                    device_name: engine.device().name.clone(),
                    version: engine.version(),
                    smallest_step_s: smallest.get(&name).copied(),
                    files: engine.files().to_vec(),
                    l2_bytes: engine.memory_limits().l2_bytes,
                    workspace_limit_bytes: engine.memory_limits().workspace_limit_bytes,
                })
                .collect(),
            peaks,
            calibration,
            unreadable: device.warnings(),
            data: None,
            machine,
        }
    }

    /// Measures the peaks again and keeps the better ones: other programs may have had a share of the machine at the beginning.
    pub fn measure_peaks_again(&mut self, plan: &Plan, engines: &mut Engines) {
        for again in peaks(plan, engines) {
            let same = |known: &&mut MeasuredPeaks| {
                known.engine == again.engine && known.precision == again.precision && known.threads == again.threads
            };
            match self.peaks.iter_mut().find(same) {
                Some(known) => {
                    known.flops_per_s = known.flops_per_s.max(again.flops_per_s);
                    known.bytes_per_s = known.bytes_per_s.max(again.bytes_per_s);
                }
                None => self.peaks.push(again),
            }
        }
    }

    /// The same, with the digest of the spec that it began with, unless it has one.
    pub fn with_spec(self, digest: String) -> Self {
        Self { spec_digest: self.spec_digest.or(Some(digest)), ..self }
    }

    /// Whether the files that the steps come from are those that the run began with.
    ///
    /// # Errors
    /// [`crate::error::Kind::Spec`] with the first that is another.
    pub fn check_files(&self, engines: &Engines) -> Result<()> {
        for (name, engine) in engines.iter() {
            let begun = self.engines.iter().find(|facts| facts.name == name.name());
            let Some(begun) = begun.filter(|begun| begun.files != engine.files()) else { continue };
            let changed = engine.files().iter().find(|file| !begun.files.contains(file)).or(begun.files.first());
            let changed = changed.map_or("a file", |file| &file.name);
            return Err(Error::spec(format!("{changed} is not the one that this run began with"))
                .hint("`--out` begins another run; to go on with this one, put the file back"));
        }
        Ok(())
    }

    /// The same run, continued; checks once which values the device allows to be read now.
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
        serde_json::from_str(text).map_err(|e| {
            Error::data(format!("damaged: {e}"))
                .at("environment.json")
                .hint("put it back from a copy, or measure again into another folder with `--out DIR`")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::open::DeviceChoice;
    use crate::spec::Experiment;

    /// What a busy moment made low is raised, and what was better at the beginning stays.
    #[test]
    fn of_two_measurements_of_the_peaks_the_better_counts() {
        let spec = "version = 1\nname = \"a\"\n[model]\nname = \"mlp\"\n[sweep]\nbatch_size = [1]\n[train]\n\
                    precision = \"fp32\"\n[engine]\nname = \"cpu\"\n";
        let experiment = Experiment::parse(spec, "a.toml").expect("valid");
        let plan = Plan::new(&experiment).expect("plans");
        let mut engines = Engines::open(&experiment.engine.name, DeviceChoice::Cpu, None).expect("opens");
        let mut device = engines.open_device();
        let mut environment = RunEnvironment::begin("a", &plan, &mut engines, device.as_mut());
        assert_eq!(environment.peaks.len(), 1);
        (environment.peaks[0].flops_per_s, environment.peaks[0].bytes_per_s) = (1.0, 1e30);
        environment.measure_peaks_again(&plan, &mut engines);
        let [MeasuredPeaks { flops_per_s, bytes_per_s, .. }] = environment.peaks[..] else { panic!("one engine") };
        assert!(flops_per_s > 1e6 && bytes_per_s == 1e30, "{flops_per_s} {bytes_per_s}");
    }
}
