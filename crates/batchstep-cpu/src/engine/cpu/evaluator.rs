//! Classifies with parameters that were trained elsewhere.

use std::sync::Arc;

use super::CpuEngine;
use super::trainer::CpuTrainer;
use crate::engine::train::{Batch, Learnt, Score, Trainer};
use crate::engine::{Settings, Workload};
use crate::error::Result;
use crate::network::Network;
use crate::settings::{Optimizer, Precision};

/// A network that runs on the processor but was trained elsewhere.
#[derive(Debug)]
pub struct Evaluator(CpuTrainer);

impl Evaluator {
    /// Uses all cores that the process may use. Batches may have any size; memory is allocated for batches of
    /// `examples`.
    ///
    /// # Errors
    /// [`crate::error::Kind::OutOfMemory`] where it does not fit.
    pub fn new(network: &Arc<Network>, examples: usize) -> Result<Self> {
        // SGD, because it keeps no state.
        let settings = Settings { optimizer: Optimizer::Sgd, precision: Precision::Fp32, ..Settings::default() };
        let workload = Workload { network: Arc::clone(network), batch_size: examples.max(1), settings };
        CpuEngine::cpu(None).trainer(&workload).map(Self)
    }

    /// Takes over trained parameters.
    ///
    /// # Errors
    /// [`crate::error::Kind::Engine`] where they belong to another network.
    pub fn load(&mut self, learnt: &Learnt) -> Result<()> {
        self.0.take_over(learnt)
    }

    /// As [`Trainer::evaluate`].
    ///
    /// # Errors
    /// As [`Trainer::evaluate`].
    pub fn evaluate(&mut self, batch: Batch<'_>) -> Result<Score> {
        self.0.evaluate(batch)
    }
}
