//! candle as its users train with it: its tensors, its autograd, and candle-nn's layers, losses and optimizers, in float32.
//! Its steps use nothing of [`crate::engine::cpu`]. Parameters, data and dropout masks are the same numbers, so that
//! losses and gradients can be compared.
//!
//! Where candle 0.11 lacks an operation or computes a wrong gradient, the operation is built from candle's own
//! differentiable operations, as a user would have to do:
//! - max-pooling (`op::max_pool`): candle refuses the gradient where windows overlap, and scales it wrongly elsewhere;
//! - momentum and RMSprop (`optimizer`): candle-nn has neither. Adam is its AdamW without decay;
//! - convolutions whose padding or stride differs between sides (`op::convolution`).
//!
//! Some things stay as they are in candle: a convolution in groups is a loop over the groups, so a depthwise one is
//! slow; the gradient of a ReLU at 0 is 1 (PyTorch: 0); batch norm is a chain of small operations and, with one value
//! for each channel, gives a running variance of NaN; the gradient of the batch is computed too.

mod batch;
mod forward;
mod memory;
mod model;
mod op;
mod optimizer;
mod step;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use candle_core::DType;
use rayon::ThreadPool;

use super::threads;
use super::train::{self, Trainer};
use super::{DeviceName, Engine, Step, Workload, check_shapes, processor, refuse};
use crate::error::{Error, Result};
use crate::settings::{Algorithms, DataPath, EngineName, Launch, Layout, Precision, Settings};
use step::CandleStep;

#[derive(Debug)]
pub struct CandleEngine {
    name: DeviceName,
    dtype: DType,
    /// By the number of their threads.
    pools: BTreeMap<usize, Arc<ThreadPool>>,
}

impl CandleEngine {
    pub fn cpu() -> Self {
        Self { name: processor::device_name(), dtype: DType::F32, pools: BTreeMap::new() }
    }

    fn step(&mut self, workload: &Workload, check: fn(&Workload) -> Result<()>) -> Result<CandleStep> {
        let settings = self.in_force(&workload.settings)?;
        let workload = Workload { settings, ..workload.clone() };
        check(&workload)?;
        memory::check(&workload, self.dtype.size_in_bytes() as u64)?;
        // candle's parallel operations run in the pool that they are called from, so its size bounds their threads.
        let pool = threads::of(&mut self.pools, workload.settings.threads, threads::pool)?;
        CandleStep::new(workload, self.dtype, pool)
    }

    /// The same engine with all arithmetic in float64, to compare formulas without rounding.
    #[cfg(test)]
    fn in_double_precision(self) -> Self {
        Self { dtype: DType::F64, ..self }
    }
}

impl Engine for CandleEngine {
    fn device(&self) -> &DeviceName {
        &self.name
    }

    /// `tf32` becomes `fp32`: a processor has no such mode.
    fn in_force(&self, asked: &Settings) -> Result<Settings> {
        let mixes = matches!(asked.precision, Precision::Bf16 | Precision::Fp16);
        let what = "candle has no mixed precision: its optimizers would update parameters of 16 bits";
        refuse(mixes, what, "use `fp32`")?;
        let what = "candle's convolutions support only the layout `nchw`";
        refuse(asked.layout != Layout::Nchw, what, "use `nchw`")?;
        let is_of_gpus = matches!(asked.data, DataPath::Pinned | DataPath::Prefetch);
        let what = "candle copies a batch from ordinary host memory, before the step computes";
        refuse(is_of_gpus, what, "use `resident` or `pageable`")?;
        let chooses = asked.algorithms != Algorithms::Heuristic;
        refuse(chooses, "candle offers no choice of algorithms", "use `heuristic`")?;
        refuse(asked.launch != Launch::Eager, "candle executes its operations one by one", "use `eager`")?;
        let hint = "leave `threads` out to use all cores";
        refuse(asked.threads == Some(0), "a step cannot run on 0 threads", hint)?;
        Ok(Settings { precision: Precision::Fp32, ..asked.of(EngineName::Candle) })
    }

    fn prepare(&mut self, workload: &Workload) -> Result<Box<dyn Step>> {
        Ok(Box::new(self.step(workload, check_shapes)?))
    }

    fn trains(&self) -> bool {
        true
    }

    fn train(&mut self, workload: &Workload) -> Result<Box<dyn Trainer>> {
        Ok(Box::new(self.step(workload, train::check)?))
    }
}

/// An error of candle is a failed step: its first line says what happened, the rest is a backtrace.
fn failed(error: candle_core::Error) -> Error {
    let text = error.to_string();
    Error::engine(text.lines().next().unwrap_or("candle failed without a message"))
}
