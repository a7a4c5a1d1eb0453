//! One epoch, timed.

use std::time::Instant;

use crate::data::DataSet;
use crate::data::loader::{Loader, Options};
use crate::device::counters::{Counts, ProcessTimes, Session};
use crate::engine::train::{Batch, EpochTrainer, OwnEpoch, Score, Trainer};
use crate::engine::{Engine, Workload};
use crate::error::Result;

/// The examples of a batch of the evaluation.
pub(super) const EVALUATED: usize = 500;

/// A network in training with the source of its batches.
pub enum Runner {
    Fed(Box<Fed>),
    Own(Box<dyn EpochTrainer>),
}

/// A network that our loader feeds.
pub struct Fed {
    trainer: Box<dyn Trainer>,
    loader: Loader,
    test: Option<Loader>,
}

/// The measurements of an epoch, or of the warm-up before it.
#[derive(Debug, Default)]
pub(super) struct EpochTimes {
    pub epoch_s: f64,
    /// In training steps, copies of the batch included; `None` for an engine that feeds itself and does not say.
    pub compute_s: Option<f64>,
    /// Seconds of copies, forward passes, backward passes and updates in all steps together; `None` for an engine that feeds itself.
    pub phases: Option<[f64; 4]>,
    pub user_s: Option<f64>,
    pub system_s: Option<f64>,
    pub counts: Counts,
    pub wait_s: f64,
    pub examples: usize,
    /// The mean over the examples.
    pub loss: Option<f64>,
    pub steps: Vec<TimedStep>,
    /// Why examples were left out.
    pub skipped: Vec<String>,
}

/// How the test examples are classified.
#[derive(Debug, Default)]
pub(super) struct Evaluated {
    pub score: Score,
    /// Why test examples were left out; the score covers the others.
    pub skipped: Vec<String>,
}

/// One training step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct TimedStep {
    pub examples: usize,
    pub step_s: Option<f64>,
    pub wait_s: Option<f64>,
    pub loss: Option<f64>,
}

impl Runner {
    /// A runner whose batches come from our loader.
    pub(super) fn fed(engine: &mut dyn Engine, workload: &Workload, data: &DataSet, options: Options) -> Result<Self> {
        let trainer = engine.train(workload)?;
        let loader = Loader::new(data.train.clone(), options)?;
        let evaluation = Options { batch_size: EVALUATED, workers: 0, shuffle: false, drop_last: false, ..options };
        let test = data.test.as_ref().map(|test| Loader::new(test.clone(), evaluation)).transpose()?;
        Ok(Self::Fed(Box::new(Fed { trainer, loader, test })))
    }

    /// Trains for an epoch, or its first `limit` steps. The counters are those of this process.
    pub(super) fn epoch(
        &mut self,
        epoch: usize,
        limit: Option<usize>,
        counters: Option<&Session>,
    ) -> Result<EpochTimes> {
        match self {
            Self::Own(own) => own.epoch(epoch, limit).map(EpochTimes::from),
            Self::Fed(fed) => {
                let before = counters.map(Session::read);
                let processor = ProcessTimes::now();
                let mut timed = fed_epoch(fed.trainer.as_mut(), &mut fed.loader, epoch, limit)?;
                let processor = ProcessTimes::now().since(processor);
                (timed.user_s, timed.system_s) = (Some(processor.user_s), Some(processor.system_s));
                if let (Some(counters), Some(before)) = (counters, before) {
                    timed.counts = counters.between(&before, &counters.read());
                }
                Ok(timed)
            }
        }
    }

    /// Classifies the test examples; `None` where there are none.
    pub(super) fn evaluate(&mut self) -> Result<Option<Evaluated>> {
        match self {
            Self::Own(own) => Ok(Some(Evaluated { score: own.evaluate()?, skipped: Vec::new() })),
            Self::Fed(fed) => {
                let Fed { trainer, test, .. } = &mut **fed;
                let Some(test) = test else { return Ok(None) };
                let mut evaluated = Evaluated::default();
                test.begin(0);
                while let Some(batch) = test.next_batch()? {
                    evaluated.skipped.extend_from_slice(&batch.skipped);
                    if !batch.labels.is_empty() {
                        let batch = Batch { inputs: &batch.inputs, labels: &batch.labels };
                        evaluated.score = evaluated.score.and(trainer.evaluate(batch)?);
                    }
                }
                Ok(Some(evaluated))
            }
        }
    }

    /// Back to the initial parameters.
    pub(super) fn reset(&mut self) -> Result<()> {
        match self {
            Self::Own(own) => own.reset(),
            Self::Fed(fed) => fed.trainer.reset(),
        }
    }
}

fn fed_epoch(trainer: &mut dyn Trainer, loader: &mut Loader, epoch: usize, limit: Option<usize>) -> Result<EpochTimes> {
    let mut timed = EpochTimes::default();
    let mut phases = [0.0; 4];
    let (mut loss, mut compute_s) = (0.0, 0.0);
    let start = Instant::now();
    loader.begin(epoch);
    timed.steps.reserve(loader.batch_count());
    while limit.is_none_or(|limit| timed.steps.len() < limit) {
        let asked = Instant::now();
        let Some(batch) = loader.next_batch()? else { break };
        let wait_s = asked.elapsed().as_secs_f64();
        timed.wait_s += wait_s;
        timed.skipped.extend_from_slice(&batch.skipped);
        if batch.labels.is_empty() {
            continue;
        }
        let times = trainer.step(Batch { inputs: &batch.inputs, labels: &batch.labels })?;
        let examples = batch.labels.len();
        let own = [times.h2d_s, times.forward_s, times.backward_s, times.optimizer_s];
        phases.iter_mut().zip(own).for_each(|(sum, phase)| *sum += phase.unwrap_or(0.0));
        compute_s += times.step_s;
        timed.examples += examples;
        loss += times.loss.unwrap_or(f64::NAN) * examples as f64;
        timed.steps.push(TimedStep { examples, step_s: Some(times.step_s), wait_s: Some(wait_s), loss: times.loss });
    }
    timed.epoch_s = start.elapsed().as_secs_f64();
    (timed.compute_s, timed.phases) = (Some(compute_s), Some(phases));
    timed.loss = (timed.examples > 0).then(|| loss / timed.examples as f64);
    Ok(timed)
}

impl From<OwnEpoch> for EpochTimes {
    fn from(own: OwnEpoch) -> Self {
        let steps = own.losses.len().max(1);
        let each = own.examples.div_ceil(steps);
        // All batches but the last are whole.
        let sizes = (0..own.losses.len()).map(|step| each.min(own.examples.saturating_sub(step * each)));
        let weighted: f64 = own.losses.iter().zip(sizes.clone()).map(|(loss, size)| loss * size as f64).sum();
        let step =
            |(examples, loss): (usize, &f64)| TimedStep { examples, step_s: None, wait_s: None, loss: Some(*loss) };
        Self {
            epoch_s: own.epoch_s,
            wait_s: own.wait_s,
            compute_s: own.compute_s,
            user_s: own.user_s,
            system_s: own.system_s,
            examples: own.examples,
            loss: (own.examples > 0).then(|| weighted / own.examples as f64),
            steps: sizes.zip(&own.losses).map(step).collect(),
            ..Self::default()
        }
    }
}
