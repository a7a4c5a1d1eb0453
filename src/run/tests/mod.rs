//! Whole sweeps through the GPU's engine, its calls recorded ([`crate::engine::cudnn::recorded`]): opened, measured, stored, sealed
//! and resumed as `batchstep run` does.

mod checked;
mod covariates;
mod faults;
mod interference;
mod refused;

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use super::environment::RunEnvironment;
use super::simulation::Listener;
use super::{History, Outcome, RowContext, check, run};
use crate::device::Device;
use crate::engine::cudnn::engine::CudnnEngine;
use crate::engine::cudnn::recorded;
use crate::engine::open::Engines;
use crate::engine::{
    Computed, DeviceName, Engine, LayerExecution, MemoryLimits, Peaks, Settings, Step, StepTimes, Workload,
};
use crate::error::Result;
use crate::settings::EngineName;
use crate::spec::Experiment;
use crate::spec::plan::Plan;
use crate::store::{Begin, RunDirectory, files};

/// What the run is doing, for [`recorded::during`].
pub const OPENING: &str = "opening the GPU";
pub const CALIBRATING: &str = "measuring the peaks";
pub const PREPARING: &str = "preparing a step";
pub const STEP: &str = "a step";
pub const TIMING: &str = "timing its layers";
pub const DESCRIBING: &str = "describing its layers";
pub const LEAVING: &str = "leaving a cell";
pub const CLOSING: &str = "closing the GPU";

/// One process's part of a sweep.
pub struct Ended {
    pub result: Result<Outcome>,
    /// What the user reads while it runs.
    pub said: Vec<String>,
}

/// A sweep with its run directory.
pub struct Recorded {
    pub experiment: Experiment,
    pub path: PathBuf,
    /// What the run is doing, for [`recorded::during`].
    during: fn(&'static str),
}

impl Recorded {
    pub fn new(spec: &str, folder: &Path) -> Self {
        let experiment = Experiment::parse(spec, "recorded.toml").unwrap();
        Self { experiment, path: folder.join("run"), during: |when| _ = recorded::during(when) }
    }

    /// Runs it beside a device that is read after each visit.
    pub fn go(&self, begin: Begin, mut device: Box<dyn Device>) -> Ended {
        recorded::during(OPENING);
        let engine = CudnnEngine::recorded().map(|engine| Engines::of(EngineName::Cudnn, Box::new(Watched(engine))));
        let mut said = Listener::default();
        let result = engine.and_then(|mut engines| self.steps(begin, &mut engines, device.as_mut(), None, &mut said));
        recorded::during(CLOSING);
        Ended { result, said: said.warnings }
    }

    /// The same on engines that are open; `qualified`: what is known of each cell's check.
    fn steps(
        &self,
        begin: Begin,
        engines: &mut Engines,
        device: &mut dyn Device,
        qualified: Option<bool>,
        said: &mut Listener,
    ) -> Result<Outcome> {
        let plan = Plan::new(&self.experiment)?;
        check(&plan, engines)?;
        let opened = RunDirectory::open(&self.path, &self.experiment.to_toml(), begin)?;
        (self.during)(CALIBRATING);
        let environment = match opened.environment.as_deref().map(RunEnvironment::from_json) {
            Some(begun) => begun?.resumed(device),
            None => RunEnvironment::begin("recorded", &plan, engines, device),
        };
        opened.directory.write_text(files::ENVIRONMENT, &environment.to_json())?;
        let mut history = History::new(&plan);
        opened.directory.read(&mut Vec::new(), &mut |visit: Vec<crate::store::StepRow>| {
            history.record(&visit);
            Ok(())
        })?;
        (self.during)(LEAVING);
        let facts = RowContext::new(environment.run_id.clone(), &plan, engines)?;
        let sweep = super::Sweep {
            plan: &plan,
            measure: &self.experiment.measure,
            facts: facts.with_qualified(vec![qualified; plan.cells.len()]),
            engines,
            device,
            witness: None,
            sink: &opened.directory,
            observer: said,
            interrupted: &AtomicBool::new(false),
            hung: &|error| panic!("{error}"),
        };
        let outcome = run(sweep, history)?;
        let sealed = opened.directory.seal(&outcome, &outcome.cells, outcome.complete)?;
        assert_eq!(sealed.complete, outcome.complete);
        (self.during)(CLOSING);
        Ok(outcome)
    }
}

/// The engine, which says to the recording what it is doing.
struct Watched(CudnnEngine);

struct WatchedStep(Option<Box<dyn Step>>);

/// While the peaks are measured, every call counts as that.
fn during(when: &'static str) {
    let before = recorded::during(when);
    if before == CALIBRATING {
        recorded::during(CALIBRATING);
    }
}

impl Engine for Watched {
    fn device(&self) -> &DeviceName {
        self.0.device()
    }

    fn version(&self) -> Option<String> {
        self.0.version()
    }

    fn memory_limits(&self) -> MemoryLimits {
        self.0.memory_limits()
    }

    fn peaks(&mut self, settings: &Settings) -> Result<Option<Peaks>> {
        self.0.peaks(settings)
    }

    fn in_force(&self, asked: &Settings) -> Result<Settings> {
        self.0.in_force(asked)
    }

    fn prepare(&mut self, workload: &Workload) -> Result<Box<dyn Step>> {
        during(PREPARING);
        let prepared = self.0.prepare(workload);
        during(LEAVING);
        Ok(Box::new(WatchedStep(Some(prepared?))))
    }
}

impl WatchedStep {
    fn step(&self) -> &dyn Step {
        self.0.as_deref().unwrap()
    }
}

impl Step for WatchedStep {
    fn run(&mut self) -> Result<StepTimes> {
        during(STEP);
        let times = self.0.as_mut().unwrap().run();
        during(LEAVING);
        times
    }

    fn at_work(&mut self, look: &mut dyn FnMut()) -> Result<()> {
        during(STEP);
        let done = self.0.as_mut().unwrap().at_work(look);
        during(LEAVING);
        done
    }

    fn layers(&self) -> Vec<LayerExecution> {
        during(DESCRIBING);
        let layers = self.step().layers();
        during(LEAVING);
        layers
    }

    fn time_layers(&mut self) -> Result<()> {
        during(TIMING);
        let timed = self.0.as_mut().unwrap().time_layers();
        during(LEAVING);
        timed
    }

    fn computed(&self) -> Result<Option<Computed>> {
        self.step().computed()
    }
}
