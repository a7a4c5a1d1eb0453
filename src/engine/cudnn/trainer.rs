//! A step whose batches come from a loader. Each batch is written into the memory from which the step copies, which is
//! page-locked with `data = "pinned"`. The test examples are classified on the processor, outside the time of an epoch,
//! with the parameters and running statistics read back from the GPU.

use std::sync::Arc;
use std::time::Instant;

use crate::engine::cpu::trainer::{CpuTrainer, write_one_hot};
use crate::engine::train::{Batch, Learnt, Score, Trainer};
use crate::engine::{Step, StepTimes, Workload};
use crate::error::{Error, Result};
use crate::network::Network;
use crate::settings::{DataPath, Layout, Loss, Precision};

/// A step that copies a batch given by its caller.
pub trait FedStep: Step {
    /// Sets another batch, which the next step copies: inputs and one-hot targets, as many as it reads.
    fn load(&mut self, inputs: &[f32], targets: &[f32]);

    /// The parameters and statistics that the network has learnt so far.
    fn learnt(&self) -> Result<Learnt>;

    /// Back to the initial parameters, in the same memory.
    fn begin_again(&mut self) -> Result<()>;
}

/// Trains on batches of a loader; all of them have the workload's batch size.
pub struct CudnnTrainer {
    step: Box<dyn FedStep>,
    network: Arc<Network>,
    examples: usize,
    /// The targets of the current batch, one-hot.
    targets: Vec<f32>,
    evaluator: Option<CpuTrainer>,
    /// Whether the evaluator has the network's current parameters and statistics.
    is_current: bool,
}

/// Refuses workloads to which a loader's batches, float32 in the layout `nchw`, cannot be copied unchanged.
pub fn check(workload: &Workload) -> Result<()> {
    let settings = &workload.settings;
    let refuse = |what: &str, hint: &str| Err(Error::spec(what).hint(hint));
    match (settings.data, settings.precision, settings.layout) {
        (DataPath::Resident, ..) => refuse(
            "a loader's batch is copied to the GPU in each step",
            "use `data = [\"pageable\", \"pinned\"]` in [train]",
        ),
        (DataPath::Prefetch, ..) => {
            refuse("a loader's batch is copied for the step that follows", "use `data = \"pageable\"` or \"pinned\"")
        }
        (_, Precision::Bf16 | Precision::Fp16, _) => {
            refuse("a loader's batch is float32, and is copied as it is", "use `precision = \"fp32\"` or \"tf32\"")
        }
        (_, _, Layout::Nhwc) => {
            refuse("a loader's batch has the layout nchw, and is copied as it is", "use `layout = \"nchw\"`")
        }
        _ if settings.loss != Loss::CategoricalCrossEntropy => refuse(
            "a training on labelled examples needs a cross-entropy",
            "use `loss = \"categorical_cross_entropy\"`",
        ),
        _ => Ok(()),
    }
}

impl CudnnTrainer {
    /// `step` must be the step of the workload.
    pub(super) fn new(step: Box<dyn FedStep>, workload: &Workload) -> Self {
        let network = Arc::clone(&workload.network);
        let targets = vec![0.0; workload.batch_size * network.output().count()];
        Self { step, network, examples: workload.batch_size, targets, evaluator: None, is_current: false }
    }
}

impl Trainer for CudnnTrainer {
    fn step(&mut self, batch: Batch<'_>) -> Result<StepTimes> {
        let start = Instant::now();
        let examples = batch.labels.len();
        if examples != self.examples || batch.inputs.len() != examples * self.network.input().count() {
            let (wanted, numbers) = (self.examples, batch.inputs.len());
            let what =
                format!("a batch of {examples} examples and {numbers} numbers, where the step has {wanted} examples");
            return Err(Error::engine(what).hint("damaged images make smaller batches: use `on_error = \"fail\"`"));
        }
        write_one_hot(&mut self.targets, batch.labels)?;
        self.is_current = false;
        self.step.load(batch.inputs, &self.targets);
        let loaded_s = start.elapsed().as_secs_f64();
        let times = self.step.run()?;
        let h2d_s = times.h2d_s.map(|copy| copy + loaded_s);
        Ok(StepTimes { step_s: times.step_s + loaded_s, h2d_s, ..times })
    }

    fn evaluate(&mut self, batch: Batch<'_>) -> Result<Score> {
        let mut evaluator = match self.evaluator.take() {
            Some(evaluator) => evaluator,
            None => CpuTrainer::evaluating(&self.network, batch.labels.len())?,
        };
        if !self.is_current {
            evaluator.take_over(&self.step.learnt()?)?;
            self.is_current = true;
        }
        let score = evaluator.evaluate(batch);
        self.evaluator = Some(evaluator);
        score
    }

    fn reset(&mut self) -> Result<()> {
        self.is_current = false;
        self.step.begin_again()
    }
}

#[cfg(test)]
mod tests;
