//! A network that is trained on batches from outside.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Instant;

use candle_core::{CpuStorage, Device, InplaceOp1, Layout, Tensor, bail};

use super::thread_team::Team;
use super::training::Training;
use crate::engine::data::batch_dims;
use crate::engine::train::{Batch, Learnt, Score, Trainer};
use crate::engine::{StepTimes, Workload};
use crate::error::{Error, Result};

/// The number of batch sizes whose memory is kept: the full batch, the last batch of an epoch, and the batch of the
/// evaluation.
const KEPT: usize = 3;

/// A training, its threads, and the memory into which batches are copied.
#[derive(Debug)]
pub struct CpuTrainer {
    workload: Workload,
    training: Rc<RefCell<Training>>,
    team: Rc<Team>,
    /// Ordered by last use; the most recent is last.
    memory: Vec<Held>,
}

/// The memory of batches of one size.
#[derive(Debug)]
struct Held {
    examples: usize,
    inputs: Tensor,
    /// The targets, one-hot.
    targets: Tensor,
}

impl CpuTrainer {
    /// A trainer for batches of up to the workload's batch size; the memory for that size is allocated here.
    ///
    /// # Errors
    /// [`crate::error::Kind::Engine`] where memory cannot be had.
    pub fn new(workload: Workload, training: Rc<RefCell<Training>>, team: Rc<Team>) -> Result<Self> {
        let mut trainer = Self { workload, training, team, memory: Vec::new() };
        trainer.memory.push(trainer.allocate(trainer.workload.batch_size)?);
        Ok(trainer)
    }

    fn allocate(&self, examples: usize) -> Result<Held> {
        let network = &self.workload.network;
        let tensor = |shape| -> candle_core::Result<Tensor> {
            let dims = batch_dims(examples, shape);
            // Written here, so that the pages exist before the first step.
            let values: Vec<f32> = std::iter::repeat_n(0.0, dims.iter().product()).collect();
            Tensor::from_vec(values, dims.as_slice(), &Device::Cpu)
        };
        Ok(Held { examples, inputs: tensor(network.input())?, targets: tensor(network.output())? })
    }

    /// Copies a batch into memory of its size.
    fn load(&mut self, batch: Batch<'_>) -> Result<()> {
        let (examples, pixels) = (batch.labels.len(), self.workload.network.input().count());
        if examples == 0 || batch.inputs.len() != examples * pixels {
            let what = format!("a batch of {examples} labels and {} inputs, {pixels} for each", batch.inputs.len());
            return Err(Error::engine(what));
        }
        let place = match self.memory.iter().position(|held| held.examples == examples) {
            Some(place) => place,
            None => {
                if self.memory.len() == KEPT {
                    self.memory.remove(0);
                }
                let held = self.allocate(examples)?;
                self.memory.push(held);
                self.memory.len() - 1
            }
        };
        let held = self.memory.remove(place);
        held.inputs.inplace_op1(&Overwrite(batch.inputs))?;
        held.targets.inplace_op1(&OneHot(batch.labels))?;
        self.memory.push(held);
        Ok(())
    }

    /// Takes over parameters that were trained elsewhere.
    ///
    /// # Errors
    /// [`crate::error::Kind::Engine`] where they belong to another network.
    pub fn take_over(&mut self, learnt: &Learnt) -> Result<()> {
        self.training.borrow_mut().take_over(learnt)
    }

    fn loaded(&self) -> Result<&Held> {
        self.memory.last().ok_or_else(|| Error::engine("no batch is loaded"))
    }
}

impl Trainer for CpuTrainer {
    fn step(&mut self, batch: Batch<'_>) -> Result<StepTimes> {
        let start = Instant::now();
        self.load(batch)?;
        let h2d_s = start.elapsed().as_secs_f64();
        let held = self.loaded()?;
        let training = &mut *self.training.borrow_mut();
        let phases = self.team.install(|| training.step(&held.inputs, &held.targets))?;
        let step_s = start.elapsed().as_secs_f64();
        Ok(StepTimes {
            step_s,
            h2d_s: Some(h2d_s),
            forward_s: Some(phases.forward_s),
            backward_s: Some(phases.backward_s),
            optimizer_s: Some(phases.optimizer_s),
            loss: Some(phases.loss),
            ..StepTimes::default()
        })
    }

    fn evaluate(&mut self, batch: Batch<'_>) -> Result<Score> {
        self.load(batch)?;
        let held = self.loaded()?;
        let training = &mut *self.training.borrow_mut();
        let output = self.team.install(|| training.evaluate(&held.inputs, &held.targets))?;
        Ok(Score::of(&output, batch.labels))
    }

    fn reset(&mut self) -> Result<()> {
        let training = &mut *self.training.borrow_mut();
        self.team.install(|| training.reset(&self.workload.settings))
    }
}

/// Overwrites a tensor with numbers: one copy in one thread.
struct Overwrite<'a>(&'a [f32]);

impl InplaceOp1 for Overwrite<'_> {
    fn name(&self) -> &'static str {
        "copy"
    }

    fn cpu_fwd(&self, storage: &mut CpuStorage, layout: &Layout) -> candle_core::Result<()> {
        match (storage, layout.contiguous_offsets()) {
            (CpuStorage::F32(to), Some((start, end))) if end - start == self.0.len() => {
                to[start..end].copy_from_slice(self.0);
                Ok(())
            }
            _ => bail!("copy: the tensor is not {} contiguous numbers of f32", self.0.len()),
        }
    }
}

/// Overwrites a tensor of N x classes with ones at the labels and zeros elsewhere.
struct OneHot<'a>(&'a [u32]);

impl InplaceOp1 for OneHot<'_> {
    fn name(&self) -> &'static str {
        "one_hot"
    }

    fn cpu_fwd(&self, storage: &mut CpuStorage, layout: &Layout) -> candle_core::Result<()> {
        let (CpuStorage::F32(to), Some((start, end))) = (storage, layout.contiguous_offsets()) else {
            bail!("one_hot: the tensor is not of contiguous f32")
        };
        let classes = (end - start) / self.0.len().max(1);
        for (row, &label) in to[start..end].chunks_exact_mut(classes.max(1)).zip(self.0) {
            row.fill(0.0);
            match row.get_mut(label as usize) {
                Some(one) => *one = 1.0,
                None => bail!("one_hot: the label {label}, where there are {classes} classes"),
            }
        }
        Ok(())
    }
}
