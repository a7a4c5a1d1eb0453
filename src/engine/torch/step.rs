//! A step that is prepared in the PyTorch process, and the times that it reports.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use serde::Deserialize;

use super::Connection;
use crate::engine::worker::{self, AnsweredTimes};
use crate::engine::{KernelTime, LayerExecution, SetupTimes, Step, StepTimes, Workload};
use crate::error::Result;
use crate::network::Direction;

/// A step that is prepared in the PyTorch process.
#[derive(Debug)]
pub(super) struct TorchStep {
    pub id: u64,
    pub setup: SetupTimes,
    pub connection: Rc<RefCell<Connection>>,
    pub workload: Workload,
    pub layers: Vec<LayerExecution>,
    /// The time of its last step, where that ran on a GPU.
    pub on_gpu_s: Option<f64>,
}

/// The times of an answer.
///
/// # Errors
/// [`crate::error::Kind::Engine`] for an answer without times.
pub(super) fn times(answer: serde_json::Value) -> Result<StepTimes> {
    worker::read(answer, "PyTorch answered without the times of the step").map(AnsweredTimes::times)
}

/// The place of a layer in the network, and seconds: forward, backward, and backward without the gradients of its parameters.
#[derive(Clone, Copy, Deserialize)]
struct LayerTimes(usize, Option<f64>, Option<f64>, Option<f64>);

impl LayerTimes {
    /// PyTorch computes both gradients of a layer in one call. The parameters' gradient is counted with the time that
    /// it adds to the other.
    fn seconds(self, direction: &str, passes_on: bool) -> Option<f64> {
        let Self(_, forward, both, data) = self;
        let data = if passes_on { data.zip(both).map(|(data, both)| data.min(both)) } else { None };
        match direction {
            "forward" => forward,
            "backward_data" => data,
            _ if passes_on => Some(both? - data?),
            _ => both,
        }
    }
}

impl Step for TorchStep {
    fn run(&mut self) -> Result<StepTimes> {
        let mut connection = self.connection.borrow_mut();
        let patience = connection.worker.patience.step;
        let answer = connection.ask(&worker::about(self.id, "step"), patience)?;
        let times = times(answer)?;
        self.on_gpu_s = times.gpu_s;
        Ok(times)
    }

    fn at_work(&mut self, look: &mut dyn FnMut()) -> Result<()> {
        let mut connection = self.connection.borrow_mut();
        let answer = connection.worker.at_work(self.id, self.on_gpu_s, look);
        connection.heeding(answer)
    }

    fn setup(&self) -> SetupTimes {
        self.setup
    }

    fn layers(&self) -> Vec<LayerExecution> {
        self.layers.clone()
    }

    fn kernels(&mut self) -> Result<Vec<KernelTime>> {
        let mut connection = self.connection.borrow_mut();
        let patience = connection.worker.patience.prepare;
        let answer = connection.ask(&worker::about(self.id, "kernels"), patience)?;
        worker::read(answer, "no list of kernels was answered")
    }

    fn time_layers(&mut self) -> Result<()> {
        let mut connection = self.connection.borrow_mut();
        let patience = connection.worker.patience.step;
        let answer = connection.ask(&worker::about(self.id, "layers"), patience)?;
        let times: Vec<LayerTimes> = worker::read(answer, "PyTorch answered without the times of the layers")?;
        let names =
            times.iter().filter_map(|times| Some((self.workload.network.layers.get(times.0)?.name.as_str(), *times)));
        let times: BTreeMap<&str, LayerTimes> = names.collect();
        let passed_on = self.layers.iter().filter(|row| row.direction == Direction::BackwardData.name());
        let passed_on: BTreeSet<String> = passed_on.map(|row| row.layer.clone()).collect();
        for row in &mut self.layers {
            let times = times.get(row.layer.as_str());
            row.device_s = times.and_then(|times| times.seconds(row.direction, passed_on.contains(&row.layer)));
        }
        Ok(())
    }
}

impl Drop for TorchStep {
    /// Waits until the memory is released, so that its release does not disturb the steps of the next engine.
    fn drop(&mut self) {
        self.connection.borrow_mut().worker.release(self.id);
    }
}
