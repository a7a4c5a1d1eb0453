//! One prepared step: run it and time it.

use std::sync::Arc;
use std::time::Instant;

use candle_core::{DType, Tensor};
use rayon::ThreadPool;

use super::batch::Batch;
use super::failed;
use super::forward::{self, Masks};
use super::model::Model;
use super::optimizer::{Optimizer, optimizer};
use crate::engine::train::{self, Score, Trainer};
use crate::engine::{Computed, LayerExecution, Step, StepTimes, Workload, work};
use crate::error::Result;

/// A model in training, its batch, and the threads on which it runs.
pub struct CandleStep {
    workload: Workload,
    pool: Arc<ThreadPool>,
    batch: Batch,
    model: Model,
    optimizer: Optimizer,
    /// Steps done; selects the dropout masks of the next one.
    steps: u64,
    last: Option<Last>,
}

/// The parts of a step that are kept until the next.
struct Last {
    output: Tensor,
    /// One for each variable; `None` where the loss does not depend on it.
    gradients: Vec<Option<Tensor>>,
}

impl CandleStep {
    /// A model at its initial parameters, with its batch.
    ///
    /// # Errors
    /// [`crate::error::Kind::Engine`] where memory cannot be had.
    pub fn new(workload: Workload, dtype: DType, pool: Arc<ThreadPool>) -> Result<Self> {
        let batch = pool.install(|| Batch::new(&workload, dtype)).map_err(failed)?;
        let (model, optimizer) = untrained(&workload, dtype, &pool).map_err(failed)?;
        Ok(Self { workload, pool, batch, model, optimizer, steps: 0, last: None })
    }

    /// The work of a user's training loop on one batch, which began at `start`.
    fn train(&mut self, start: Instant) -> Result<StepTimes> {
        let mut from = start;
        let mut lap = || {
            let begun = std::mem::replace(&mut from, Instant::now());
            from.duration_since(begun).as_secs_f64()
        };
        // A loop drops its gradients when an iteration ends; these were kept for `computed`.
        self.last = None;
        let h2d_s = self.batch.upload().map_err(failed)?.then(&mut lap);
        let masks = Masks { seed: self.workload.settings.seed, step: self.steps };
        let output = forward::forward(&self.model, &self.batch.inputs, Some(masks))?;
        let loss = forward::loss(self.workload.settings.loss, &output, &self.batch.targets).map_err(failed)?;
        let forward_s = Some(lap());
        let mut gradients = loss.backward().map_err(failed)?;
        let backward_s = Some(lap());
        (self.optimizer)(&gradients).map_err(failed)?;
        let optimizer_s = Some(lap());

        // Detached, or they would keep the whole graph: a weight's gradient is a product with its layer's input.
        let gradients =
            self.model.vars.iter().map(|var| gradients.remove(var).map(|gradient| gradient.detach())).collect();
        self.last = Some(Last { output: output.detach(), gradients });
        self.steps += 1;
        let loss = Some(loss.to_dtype(DType::F64).and_then(|loss| loss.to_scalar()).map_err(failed)?);
        Ok(StepTimes { h2d_s, forward_s, backward_s, optimizer_s, loss, ..StepTimes::default() })
    }
}

/// The model at its initial parameters, and its optimizer.
fn untrained(
    Workload { network, settings, .. }: &Workload,
    dtype: DType,
    pool: &ThreadPool,
) -> candle_core::Result<(Model, Optimizer)> {
    let model = pool.install(|| Model::new(network.clone(), settings.seed, dtype))?;
    let optimizer = optimizer(settings.optimizer, model.vars.clone(), settings.learning_rate)?;
    Ok((model, optimizer))
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
        let output = self.pool.install(|| forward::forward(&self.model, &self.batch.inputs, None))?;
        Ok(Score::of(&values(&output).map_err(failed)?, batch.labels))
    }

    /// Starts again from the initial parameters.
    fn reset(&mut self) -> Result<()> {
        let dtype = self.batch.inputs.dtype();
        (self.model, self.optimizer) = untrained(&self.workload, dtype, &self.pool).map_err(failed)?;
        (self.steps, self.last) = (0, None);
        Ok(())
    }
}

impl Step for CandleStep {
    fn run(&mut self) -> Result<StepTimes> {
        let start = Instant::now();
        let times = self.pool.clone().install(|| self.train(start))?;
        Ok(StepTimes { step_s: start.elapsed().as_secs_f64(), ..times })
    }

    /// candle does not report the algorithm of a layer.
    fn layers(&self) -> Vec<LayerExecution> {
        work::layers(&self.workload)
    }

    fn computed(&self) -> Result<Option<Computed>> {
        let vars = &self.model.vars;
        let parameters = vars.iter().map(|var| values(var)).collect::<candle_core::Result<_>>().map_err(failed)?;
        let Some(Last { output, gradients }) = &self.last else {
            return Ok(Some(Computed { parameters, ..Computed::default() }));
        };
        let pairs = vars.iter().zip(gradients);
        let gradients = pairs.map(|(var, gradient)| gradient.as_ref().map_or(Ok(vec![0.0; var.elem_count()]), values));
        let gradients = gradients.collect::<candle_core::Result<_>>().map_err(failed)?;
        Ok(Some(Computed { output: values(output).map_err(failed)?, parameters, gradients }))
    }
}

/// The numbers of a tensor, row by row.
fn values(tensor: &Tensor) -> candle_core::Result<Vec<f64>> {
    tensor.to_dtype(DType::F64)?.flatten_all()?.to_vec1()
}
