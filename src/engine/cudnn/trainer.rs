//! A step whose batch comes from a loader: each is written into the memory that the step copies from.

use std::time::Instant;

use super::step::CudnnStep;
use crate::engine::train::{Batch, Score, Trainer};
use crate::engine::{Step, StepTimes, Workload};
use crate::error::{Error, Result};
use crate::settings::{DataPath, Layout, Precision};

/// Trains on batches of a loader; all of them have the workload's batch size.
#[derive(Debug)]
pub struct CudnnTrainer {
    step: CudnnStep,
    examples: usize,
    /// Numbers of an example, and classes.
    each: usize,
    classes: usize,
}

/// Refuses what a loader's batches, float32 in the layout `nchw`, cannot be copied to as they are.
///
/// # Errors
/// [`crate::error::Kind::Spec`].
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
        _ => Ok(()),
    }
}

impl CudnnTrainer {
    pub(super) fn new(step: CudnnStep, workload: &Workload) -> Self {
        let network = &workload.network;
        let (each, classes) = (network.input().count(), network.output().count());
        Self { step, examples: workload.batch_size, each, classes }
    }
}

impl Trainer for CudnnTrainer {
    fn step(&mut self, batch: Batch<'_>) -> Result<StepTimes> {
        let start = Instant::now();
        let examples = batch.labels.len();
        if examples != self.examples || batch.inputs.len() != examples * self.each {
            let (wanted, numbers) = (self.examples, batch.inputs.len());
            let what =
                format!("a batch of {examples} examples and {numbers} numbers, where the step has {wanted} examples");
            return Err(Error::engine(what).hint("damaged images make smaller batches: use `on_error = \"fail\"`"));
        }
        let mut targets = vec![0.0; examples * self.classes];
        for (row, &label) in targets.chunks_exact_mut(self.classes.max(1)).zip(batch.labels) {
            match row.get_mut(label as usize) {
                Some(one) => *one = 1.0,
                None => {
                    return Err(Error::engine(format!("the label {label}, where there are {} classes", self.classes)));
                }
            }
        }
        self.step.load(batch.inputs, &targets)?;
        let loaded_s = start.elapsed().as_secs_f64();
        let times = self.step.run()?;
        let h2d_s = times.h2d_s.map(|copy| copy + loaded_s);
        Ok(StepTimes { step_s: times.step_s + loaded_s, h2d_s, ..times })
    }

    fn evaluate(&mut self, _: Batch<'_>) -> Result<Score> {
        Err(Error::engine("the GPU engine's steps do not evaluate").hint("use the engine `cpu` or `candle`"))
    }

    fn reset(&mut self) -> Result<()> {
        Err(Error::engine("the GPU engine's steps do not begin again").hint("use the engine `cpu` or `candle`"))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::network::{Network, Shape};
    use crate::settings::Settings;

    #[test]
    fn what_a_loaders_batch_cannot_be_copied_to_is_refused_with_a_remedy() {
        let network = Arc::new(Network::by_name("mlp", Shape::Flat(2), 3).unwrap());
        let pinned = Settings { data: DataPath::Pinned, ..Settings::default() };
        let workload = |settings| Workload { network: Arc::clone(&network), batch_size: 2, settings };
        check(&workload(pinned.clone())).unwrap();
        for settings in [
            Settings { data: DataPath::Resident, ..pinned.clone() },
            Settings { data: DataPath::Prefetch, ..pinned.clone() },
            Settings { precision: Precision::Bf16, ..pinned.clone() },
            Settings { layout: Layout::Nhwc, ..pinned.clone() },
        ] {
            assert!(check(&workload(settings)).unwrap_err().to_string().contains("help: use "));
        }
    }
}
