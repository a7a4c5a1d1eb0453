//! One prepared step: run it and time it.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Instant;

use super::data::Batch;
use super::pass::Watch;
use super::thread_team::Team;
use super::training::Training;
use crate::engine::{Computed, LayerExecution, Step, StepTimes, TeamTime, Workload, work};
use crate::error::Result;
use crate::stats::quantile::median;

/// The number of steps whose layers are timed; the median is reported.
const WATCHED_STEPS: usize = 3;

/// A training, its batch, and the threads that it runs on.
#[derive(Debug)]
pub struct CpuStep {
    workload: Workload,
    training: Rc<RefCell<Training<f32>>>,
    batch: Batch<f32>,
    team: Rc<Team>,
    layers: Vec<LayerExecution>,
}

impl CpuStep {
    pub fn new(workload: Workload, training: Rc<RefCell<Training<f32>>>, team: Rc<Team>) -> Self {
        let (batch, layers) = (Batch::new(&workload), layers(&workload, &training.borrow(), &[]));
        Self { workload, training, batch, team, layers }
    }
}

/// Every layer of a workload in each of its directions, with the median of its times in `watches`, if any.
fn layers(workload: &Workload, training: &Training<f32>, watches: &[Watch]) -> Vec<LayerExecution> {
    let seconds = |index, direction| {
        let mut times: Vec<f64> = watches.iter().filter_map(|watch| watch.seconds(index, direction)).collect();
        (!times.is_empty()).then(|| median(&mut times))
    };
    work::layers_with(workload, size_of::<f32>(), |index, direction, layer| LayerExecution {
        algorithm: Some(training.pass.kernel(index).algorithm().to_owned()),
        math_mode: Some(training.pass.kernel(index).precision().name().to_owned()),
        device_s: seconds(index, direction),
        ..layer
    })
}

impl Step for CpuStep {
    fn rest(&mut self) {
        self.team.gather();
    }

    fn run(&mut self) -> Result<StepTimes> {
        let training = &mut *self.training.borrow_mut();
        let batch = &mut self.batch;
        let start = Instant::now();
        let (h2d_s, phases) = self.team.install(|| {
            let h2d_s = batch.upload().then(|| start.elapsed().as_secs_f64());
            training.step(&batch.inputs, &batch.targets).map(|phases| (h2d_s, phases))
        })?;
        Ok(StepTimes { step_s: start.elapsed().as_secs_f64(), h2d_s, ..phases })
    }

    fn team(&self) -> Option<TeamTime> {
        Some(TeamTime { threads: self.team.threads(), polled_s: self.team.polled_s() })
    }

    fn layers(&self) -> Vec<LayerExecution> {
        self.layers.clone()
    }

    /// On the host's clock, since the processor is the device. The timed steps train the network like any other.
    fn time_layers(&mut self) -> Result<()> {
        let training = &mut *self.training.borrow_mut();
        let mut watches = Vec::with_capacity(WATCHED_STEPS);
        for _ in 0..WATCHED_STEPS {
            let layers = self.workload.network.layers.len();
            watches.push(self.team.install(|| {
                let watch = Watch::new(layers);
                training.watched_step(&self.batch.inputs, &self.batch.targets, Some(&watch)).map(|_| watch)
            })?);
        }
        self.layers = layers(&self.workload, training, &watches);
        Ok(())
    }

    fn computed(&self) -> Result<Option<Computed>> {
        Ok(Some(self.training.borrow().computed()))
    }
}
