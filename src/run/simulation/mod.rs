//! Simulation studies: how often the method is right, counted over many simulated runs with a known truth.
//!
//! - [`coverage`]: how often the 95 % interval of a cell's median covers the truth, and how many steps the stop rule takes.
//! - [`decisions`]: how many steps it takes until jumps are shown or ruled out.
//! - [`alarms`]: how often a disturbance of the machine is reported as a jump, in randomised blocks and in ascending order.
//! - [`machines`]: how often machines that differ, and measure one series together, make a jump.
//!
//! Series with exact truth, which test only the detector: [`batchstep_detect::shapes`].
//!
//! The first three execute ordinary specs of the synthetic engine in the same loop as every other run
//! ([`simulate`]), with seeds 0, 1, 2, ... `examples/tables/trust_simulation.rs` and `examples/tables/steps_to_decide.rs` print them.

pub mod alarms;
pub mod coverage;
pub mod decisions;
pub mod machines;

use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};

use crate::detect::Observation;
use crate::device::Device;
use crate::engine::open::{DeviceChoice, Engines};
use crate::error::Result;
use crate::run::{Boundary, History, Knowledge, Observer, Outcome, Progress, RowContext, RowSink, Sweep};
use crate::settings::named;
use crate::spec::Experiment;
use crate::spec::plan::{Cell, Plan};
use crate::store::{EndOfRun, LayerRow, Status, StepRow};

/// Simulates one run.
fn run(spec: &str) -> Result<SimulatedRun> {
    simulate(&Experiment::parse(spec, "simulation")?, None)
}

named! {
    /// The noise of a simulated machine: what is added to the true step time.
    Noise {
        /// Steps scatter by 0.5 %, visits by 1 %.
        Normal = "normal",
        /// The same scales, Student's t with 3 degrees of freedom.
        HeavyTailed = "heavy-tailed",
        /// Normal, and slower by 2 % as it warms up, over about half of the run.
        Drifting = "drifting",
        /// Normal, and slower by 4 % for 30 % of the time, twenty steps at a time.
        TwoState = "two-state",
        /// Steps scatter by 3 %, visits by 4 %, and a factor that all share by 10 % over 150 steps.
        CommonFactor = "common factor",
    }
}

impl Noise {
    /// Those of one scale.
    pub const COMMON: [Self; 4] = [Self::Normal, Self::HeavyTailed, Self::Drifting, Self::TwoState];

    /// The lines of a spec's `[synthetic]`; `steps` is about the number of steps in a run.
    fn lines(self, steps: usize) -> String {
        let scatter = "noise = { sd = \"0.5%\", visits = \"1%\"";
        match self {
            Self::Normal => format!("{scatter} }}\n"),
            Self::HeavyTailed => format!("{scatter}, heavy_tails = \"100%\" }}\n"),
            Self::Drifting => format!("{scatter} }}\ndrift = {{ amplitude = \"2%\", steps = {} }}\n", steps / 4),
            Self::TwoState => format!("{scatter} }}\nboost = {{ share = \"30%\", size = \"4%\", steps = 20 }}\n"),
            Self::CommonFactor => {
                "noise = { sd = \"3%\", visits = \"4%\" }\ncommon = { sd = \"10%\", steps = 150 }\n".to_owned()
            }
        }
    }
}

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
    let (memory, mut listener) = (Mutex::<Vec<StepRow>>::default(), Listener::default());
    let sweep = Sweep {
        plan: &plan,
        measure: &experiment.measure,
        facts: RowContext::new(experiment.name.clone(), &plan, &mut engines)?,
        engines: &mut engines,
        device: device.unwrap_or(own.as_mut()),
        witness: None,
        sink: &memory,
        observer: &mut listener,
        interrupted: &AtomicBool::new(false),
        hung: &|_| (),
    };
    let outcome = crate::run::run(sweep, History::new(&plan))?;
    let mut rows = memory.into_inner().unwrap_or_else(PoisonError::into_inner);
    rows.iter_mut().for_each(|row| outcome.step(row));
    Ok(SimulatedRun { rows, outcome, warnings: listener.warnings })
}

impl RowSink for Mutex<Vec<StepRow>> {
    fn append(&self, visit: &[StepRow]) -> Result<()> {
        self.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(visit);
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
    fn visited(&mut self, _cell: &Cell, _median_s: Option<f64>, _progress: Progress) {}

    fn block_ended(&mut self, _block: usize, _knowledge: Knowledge, _boundaries: &[Boundary]) {}

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
        assert!(simulated.warnings[0].ends_with("NVML is gone"));
        let clock = |visit: i64| simulated.rows.iter().find(|row| row.visit == visit).map(|row| row.sm_clock_hz);
        assert_eq!((clock(0), clock(1)), (Some(Some(1.98e9)), Some(Some(1.2e9))));
        let after: Vec<_> = simulated.rows.iter().filter(|row| row.visit >= 2).collect();
        assert!(after.iter().all(|row| row.sm_clock_hz.is_none() && row.throttle_reasons.is_none()));
        assert!(simulated.rows.iter().all(|row| row.status == Status::Ok && row.step_time_s.is_some()));
        assert_eq!(after.last().map(|row| row.visit), Some(26));
    }
}
