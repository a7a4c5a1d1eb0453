//! One prepared step: run it and time it.

use std::sync::Arc;
use std::time::Instant;

use candle_core::{DType, Device, Tensor};
use rayon::ThreadPool;

use super::batch::Batch;
use super::failed;
use super::forward::{self, Masks};
use super::model::Model;
use super::optimizer::Optimizer;
use crate::engine::train::{self, Score, Trainer};
use crate::engine::{Computed, LayerExecution, Step, StepTimes, Workload, work};
use crate::error::Result;

/// A model in training, its batch, and the threads on which it runs.
#[derive(Debug)]
pub struct CandleStep {
    workload: Workload,
    device: Device,
    pool: Arc<ThreadPool>,
    batch: Batch,
    pub(super) model: Model,
    optimizer: Optimizer,
    /// Steps done; selects the dropout masks of the next one.
    steps: u64,
    last: Option<Last>,
}

/// The parts of a step that are kept until the next.
#[derive(Debug)]
struct Last {
    output: Tensor,
    /// One for each variable; `None` where the loss does not depend on it.
    gradients: Vec<Option<Tensor>>,
    loss: Tensor,
}

/// The times at which the calls of each part of a step had been made on the host.
struct Ends {
    upload: Option<Instant>,
    forward: Instant,
    backward: Instant,
    optimizer: Instant,
}

impl CandleStep {
    /// A model at its initial parameters, with its batch.
    ///
    /// # Errors
    /// [`crate::error::Kind::Engine`] where memory cannot be had.
    pub fn new(workload: Workload, device: &Device, dtype: DType, pool: Arc<ThreadPool>) -> Result<Self> {
        let settings = &workload.settings;
        let prepared = pool.install(|| -> candle_core::Result<_> {
            let batch = Batch::new(&workload, device, dtype)?;
            Ok((batch, Model::new(workload.network.clone(), settings.seed, device, dtype)?))
        });
        let (batch, model) = prepared.map_err(failed)?;
        let optimizer =
            Optimizer::new(settings.optimizer, model.vars.clone(), settings.learning_rate).map_err(failed)?;
        let device = device.clone();
        Ok(Self { workload, device, pool, batch, model, optimizer, steps: 0, last: None })
    }

    /// The work of a user's training loop on one batch.
    fn train(&mut self) -> Result<Ends> {
        // A loop drops its gradients when an iteration ends; these were kept for `computed`.
        self.last = None;
        let upload = self.batch.upload().map_err(failed)?.then(Instant::now);
        let masks = Masks { seed: self.workload.settings.seed, step: self.steps };
        let output = forward::forward(&self.model, &self.batch.inputs, Some(masks))?;
        let loss = forward::loss(self.workload.settings.loss, &output, &self.batch.targets).map_err(failed)?;
        let forward = Instant::now();
        let mut gradients = loss.backward().map_err(failed)?;
        let backward = Instant::now();
        self.optimizer.step(&gradients).map_err(failed)?;
        let optimizer = Instant::now();

        // Detached, or they would keep the whole graph: a weight's gradient is a product with its layer's input.
        let gradients =
            self.model.vars.iter().map(|var| gradients.remove(var).map(|gradient| gradient.detach())).collect();
        self.last = Some(Last { output: output.detach(), gradients, loss: loss.detach() });
        self.steps += 1;
        Ok(Ends { upload, forward, backward, optimizer })
    }
}

impl Trainer for CandleStep {
    fn step(&mut self, batch: train::Batch<'_>) -> Result<StepTimes> {
        let start = Instant::now();
        self.batch.replace(&self.workload.network, batch).map_err(failed)?;
        let h2d_s = start.elapsed().as_secs_f64();
        let times = self.run()?;
        Ok(StepTimes { step_s: times.step_s + h2d_s, h2d_s: Some(h2d_s), ..times })
    }

    fn evaluate(&mut self, batch: train::Batch<'_>) -> Result<Score> {
        self.batch.replace(&self.workload.network, batch).map_err(failed)?;
        let output = self.pool.clone().install(|| forward::forward(&self.model, &self.batch.inputs, None))?;
        Ok(Score::of(&values(&output).map_err(failed)?, batch.labels))
    }

    /// Starts again from the initial parameters.
    fn reset(&mut self) -> Result<()> {
        let settings = &self.workload.settings;
        let dtype = self.batch.inputs.dtype();
        let network = self.workload.network.clone();
        self.model = self.pool.install(|| Model::new(network, settings.seed, &self.device, dtype)).map_err(failed)?;
        self.optimizer =
            Optimizer::new(settings.optimizer, self.model.vars.clone(), settings.learning_rate).map_err(failed)?;
        (self.steps, self.last) = (0, None);
        Ok(())
    }
}

impl Step for CandleStep {
    fn run(&mut self) -> Result<StepTimes> {
        let pool = self.pool.clone();
        self.device.synchronize().map_err(failed)?;
        let start = Instant::now();
        let ends = pool.install(|| self.train())?;
        self.device.synchronize().map_err(failed)?;
        let step_s = start.elapsed().as_secs_f64();

        // On a GPU the host's clock shows when work was queued, not when it was done.
        let on_host = self.device.is_cpu();
        let seconds = |from: Instant, to: Instant| on_host.then(|| to.duration_since(from).as_secs_f64());
        let loss =
            self.last.as_ref().map(|last| last.loss.to_dtype(DType::F64)?.to_scalar()).transpose().map_err(failed)?;
        Ok(StepTimes {
            step_s,
            h2d_s: ends.upload.and_then(|end| seconds(start, end)),
            forward_s: seconds(ends.upload.unwrap_or(start), ends.forward),
            backward_s: seconds(ends.forward, ends.backward),
            optimizer_s: seconds(ends.backward, ends.optimizer),
            loss,
            ..StepTimes::default()
        })
    }

    /// candle does not report the algorithm of a layer.
    fn layers(&self) -> Vec<LayerExecution> {
        work::layers(&self.workload)
    }

    fn computed(&self) -> Result<Option<Computed>> {
        let parameters =
            self.model.vars.iter().map(|var| values(var)).collect::<candle_core::Result<_>>().map_err(failed)?;
        let Some(Last { output, gradients, .. }) = &self.last else {
            return Ok(Some(Computed { parameters, ..Computed::default() }));
        };
        let gradient = |(var, gradient): (&candle_core::Var, &Option<Tensor>)| match gradient {
            Some(gradient) => values(gradient),
            None => Ok(vec![0.0; var.elem_count()]),
        };
        let gradients =
            self.model.vars.iter().zip(gradients).map(gradient).collect::<candle_core::Result<_>>().map_err(failed)?;
        Ok(Some(Computed { output: values(output).map_err(failed)?, parameters, gradients }))
    }
}

/// The numbers of a tensor, row by row.
fn values(tensor: &Tensor) -> candle_core::Result<Vec<f64>> {
    tensor.to_dtype(DType::F64)?.flatten_all()?.to_vec1()
}
