//! A run in memory: the same loop without a folder. The simulation studies execute thousands of them.

use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};

use crate::detect::Observation;
use crate::device::Device;
use crate::engine::open::{DeviceChoice, Engines};
use crate::error::Result;
use crate::run::{History, Observer, Outcome, RowContext, RowSink, Sweep};
use crate::spec::Experiment;
use crate::spec::plan::Plan;
use crate::store::{EndOfRun, LayerRow, Status, StepRow};

/// The results of a run in memory.
#[derive(Debug)]
pub struct SimulatedRun {
    /// Every step, as it would be stored in `steps.parquet`.
    pub rows: Vec<StepRow>,
    pub outcome: Outcome,
    /// The warnings that the user would have seen.
    pub warnings: Vec<String>,
}

impl SimulatedRun {
    /// The steps that count, as input of the detector. The experiment must have one axis, that is, one series.
    pub fn observations(&self) -> Vec<Observation> {
        self.rows.iter().filter_map(observation).collect()
    }
}

/// A step that counts.
fn observation(row: &StepRow) -> Option<Observation> {
    let y = row.step_time_s.filter(|_| !row.warmup && row.status == Status::Ok)?;
    Some(Observation {
        order: Some(row.order as f64),
        block: Some(row.block as u32),
        clock_hz: row.sm_clock_hz,
        ..Observation::new(row.batch_size as f64, y)
    })
}

/// Runs an experiment in memory, on the CPU; `device`, if given, replaces the engine's own.
///
/// ```
/// use batchstep::{run::simulation::simulate, spec::Experiment};
/// let spec = "version = 1\nname = \"a\"\n[sweep]\nbatch_size = \"1..=9\"\n[engine]\nname = \"synthetic\"\n[synthetic]\n";
/// let simulated = simulate(&Experiment::parse(spec, "a.toml")?, None)?;
/// assert_eq!(simulated.outcome.cells.len(), 9);
/// # Ok::<(), batchstep::error::Error>(())
/// ```
///
/// # Errors
/// As [`crate::run::check`], and where an engine can't be opened.
pub fn simulate(experiment: &Experiment, device: Option<&mut dyn Device>) -> Result<SimulatedRun> {
    let experiment = &experiment.own_part()?;
    let plan = Plan::new(experiment)?;
    let mut engines = Engines::open(&experiment.engine.name, DeviceChoice::Cpu, experiment.truth().as_ref())?;
    crate::run::check(&plan, &mut engines)?;
    let mut own = engines.open_device();
    let (memory, mut listener) = (InMemoryRows::default(), Listener::default());
    let bench = Sweep {
        plan: &plan,
        measure: &experiment.measure,
        facts: RowContext::new(experiment.name.clone(), &plan, &mut engines)?,
        engines: &mut engines,
        device: device.unwrap_or(own.as_mut()),
        witness: None,
        ledger: &memory,
        observer: &mut listener,
        interrupted: &AtomicBool::new(false),
        hung: &|_| (),
    };
    let outcome = crate::run::run(bench, History::new(&plan))?;
    let mut rows = memory.rows.into_inner().unwrap_or_else(PoisonError::into_inner);
    rows.iter_mut().for_each(|row| outcome.step(row));
    Ok(SimulatedRun { rows, outcome, warnings: listener.warnings })
}

#[derive(Default)]
struct InMemoryRows {
    rows: Mutex<Vec<StepRow>>,
}

impl RowSink for InMemoryRows {
    fn append(&self, visit: &[StepRow]) -> Result<()> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(visit);
        Ok(())
    }

    fn append_layers(&self, _layers: &[LayerRow]) -> Result<()> {
        Ok(())
    }
}

/// Keeps what the user would read.
#[derive(Default)]
pub(in crate::run) struct Listener {
    pub warnings: Vec<String>,
}

impl Observer for Listener {
    fn warn(&mut self, message: &str) {
        self.warnings.push(message.to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::fake::Fake;

    const SPEC: &str = "version = 1\nname = \"a\"\n[sweep]\nbatch_size = \"1..=9\"\n[engine]\nname = \"synthetic\"\n[synthetic]\n[measure]\nblocks = { min = 3, max = 3 }\nsteps_per_visit = 2\n";

    #[test]
    fn a_management_library_that_vanishes_leaves_nulls_and_one_warning() {
        let mut device = Fake::steady(1.98e9).then_throttled(1.2e9, "sw_power_cap").then_vanished("NVML is gone");
        let experiment = Experiment::parse(SPEC, "a.toml").expect("valid");
        let simulated = simulate(&experiment, Some(&mut device)).expect("runs to its end");
        assert_eq!(simulated.warnings.len(), 1, "{:?}", simulated.warnings);
        assert!(simulated.warnings[0].ends_with("3 other readings cannot be read: NVML is gone"));
        let clock = |visit: i64| simulated.rows.iter().find(|row| row.visit == visit).map(|row| row.sm_clock_hz);
        assert_eq!((clock(0), clock(1)), (Some(Some(1.98e9)), Some(Some(1.2e9))));
        let after: Vec<_> = simulated.rows.iter().filter(|row| row.visit >= 2).collect();
        assert!(after.iter().all(|row| row.sm_clock_hz.is_none() && row.throttle_reasons.is_none()));
        assert!(simulated.rows.iter().all(|row| row.status == Status::Ok && row.step_time_s.is_some()));
        assert_eq!(after.last().map(|row| row.visit), Some(26));
    }
}
