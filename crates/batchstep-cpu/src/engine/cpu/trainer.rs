//! A network that is trained on batches from outside.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use super::CpuEngine;
use super::data;
use super::thread_team::Team;
use super::training::Training;
use crate::engine::train::{Batch, Learnt, Score, Trainer};
use crate::engine::{StepTimes, Workload};
use crate::error::{Error, Result};
use crate::network::Network;
use crate::settings::{Optimizer, Precision, Settings};

/// The number of batch sizes whose memory is kept: the full batch, the last batch of an epoch, and the batch of the
/// evaluation.
const KEPT: usize = 3;

type Memory = data::Batch<f32>;

/// A training, its threads, and the memory into which batches are copied.
#[derive(Debug)]
pub struct CpuTrainer {
    workload: Workload,
    training: Rc<RefCell<Training<f32>>>,
    team: Rc<Team>,
    /// With the targets one-hot. Ordered by last use; the most recent is last.
    memory: Vec<Memory>,
}

/// Copies a batch into memory of its size, which is then the last.
fn load<'m>(memory: &'m mut Vec<Memory>, network: &Network, batch: Batch<'_>) -> Result<&'m Memory> {
    let (examples, pixels) = (batch.labels.len(), network.input().count());
    if examples == 0 || batch.inputs.len() != examples * pixels {
        let what = format!("a batch of {examples} labels and {} inputs, {pixels} for each", batch.inputs.len());
        return Err(Error::engine(what));
    }
    let place = memory.iter().position(|held| held.inputs.len() == batch.inputs.len());
    if place.is_none() && memory.len() == KEPT {
        memory.remove(0);
    }
    let mut held = place.map_or_else(|| Memory::zeros(network, examples), |place| memory.remove(place));
    held.inputs.copy_from_slice(batch.inputs);
    write_one_hot(&mut held.targets, batch.labels)?;
    memory.push(held);
    Ok(&memory[memory.len() - 1])
}

impl CpuTrainer {
    /// A trainer for batches of up to the workload's batch size; the memory for that size is allocated here.
    pub fn new(workload: Workload, training: Rc<RefCell<Training<f32>>>, team: Rc<Team>) -> Self {
        let memory = vec![Memory::zeros(&workload.network, workload.batch_size)];
        Self { workload, training, team, memory }
    }

    /// One that only evaluates with parameters that were trained elsewhere, on all cores that the process may use. Batches may
    /// have any size; memory is allocated for batches of `examples`.
    ///
    /// # Errors
    /// [`crate::error::Kind::OutOfMemory`] where it does not fit.
    pub fn evaluating(network: &Arc<Network>, examples: usize) -> Result<Self> {
        // SGD, because it keeps no state.
        let settings = Settings { optimizer: Optimizer::Sgd, precision: Precision::Fp32, ..Settings::default() };
        let workload = Workload { network: Arc::clone(network), batch_size: examples.max(1), settings };
        CpuEngine::cpu(None).trainer(&workload)
    }

    /// Takes over parameters that were trained elsewhere; the optimizer's state stays as it is.
    ///
    /// # Errors
    /// [`crate::error::Kind::Engine`] where they belong to another network.
    pub fn take_over(&mut self, learnt: &Learnt) -> Result<()> {
        self.training.borrow_mut().parameters.take_over(learnt)
    }
}

impl Trainer for CpuTrainer {
    fn step(&mut self, batch: Batch<'_>) -> Result<StepTimes> {
        let start = Instant::now();
        let held = load(&mut self.memory, &self.workload.network, batch)?;
        let h2d_s = Some(start.elapsed().as_secs_f64());
        let training = &mut *self.training.borrow_mut();
        let phases = self.team.install(|| training.step(&held.inputs, &held.targets))?;
        Ok(StepTimes { step_s: start.elapsed().as_secs_f64(), h2d_s, ..phases })
    }

    fn evaluate(&mut self, batch: Batch<'_>) -> Result<Score> {
        let held = load(&mut self.memory, &self.workload.network, batch)?;
        let training = &mut *self.training.borrow_mut();
        let output = self.team.install(|| training.evaluate(&held.inputs, &held.targets))?;
        Ok(Score::of(&output, batch.labels))
    }

    fn reset(&mut self) -> Result<()> {
        let training = &mut *self.training.borrow_mut();
        self.team.install(|| training.reset(&self.workload.settings));
        Ok(())
    }
}

/// Writes N x classes: ones at the labels, zeros elsewhere.
///
/// # Errors
/// [`crate::error::Kind::Engine`] where a label is none of the classes.
pub fn write_one_hot(to: &mut [f32], labels: &[u32]) -> Result<()> {
    let classes = to.len() / labels.len().max(1);
    for (row, &label) in to.chunks_exact_mut(classes.max(1)).zip(labels) {
        row.fill(0.0);
        match row.get_mut(label as usize) {
            Some(one) => *one = 1.0,
            None => return Err(Error::engine(format!("the label {label}, where there are {classes} classes"))),
        }
    }
    Ok(())
}
