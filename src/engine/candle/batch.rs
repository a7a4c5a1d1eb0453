//! The batch of a step.

use candle_core::{DType, Device, Result, Tensor};

use crate::engine::{Workload, train};
use crate::network::Network;
use crate::network::data::{self, batch_dims};
use crate::settings::{DataPath, Loss};

/// Inputs and targets, and, if they are copied in each step, their source.
#[derive(Debug)]
pub struct Batch {
    pub inputs: Tensor,
    /// Labels for a cross-entropy, because candle-nn's takes labels; values for a squared error.
    pub targets: Tensor,
    host: Option<(Tensor, Tensor)>,
}

impl Batch {
    /// The batch of a workload, see [`data`].
    pub fn new(workload: &Workload, dtype: DType) -> Result<Self> {
        let Workload { network, batch_size, settings } = workload;
        let tensor =
            |values, shape| Tensor::from_vec(values, batch_dims(*batch_size, shape), &Device::Cpu)?.to_dtype(dtype);
        let inputs = tensor(data::inputs(workload), network.input())?;
        let targets = match settings.loss {
            Loss::CategoricalCrossEntropy => Tensor::from_iter(data::labels(workload), &Device::Cpu)?,
            Loss::MeanSquaredError | Loss::BinaryCrossEntropy => tensor(data::targets(workload), network.output())?,
        };
        let host = (settings.data != DataPath::Resident).then(|| (inputs.clone(), targets.clone()));
        Ok(Self { inputs, targets, host })
    }

    /// Replaces the examples, as a training loop makes tensors of its loader's batches.
    pub fn replace(&mut self, network: &Network, batch: train::Batch<'_>) -> Result<()> {
        let dims = batch_dims(batch.labels.len(), network.input());
        self.inputs = Tensor::from_slice(batch.inputs, dims.as_slice(), &Device::Cpu)?.to_dtype(self.inputs.dtype())?;
        self.targets = Tensor::from_slice(batch.labels, batch.labels.len(), &Device::Cpu)?;
        Ok(())
    }

    /// Copies the batch from its source, if it has one; returns whether it did.
    pub fn upload(&mut self) -> Result<bool> {
        let Some((inputs, targets)) = &self.host else { return Ok(false) };
        (self.inputs, self.targets) = (inputs.copy()?, targets.copy()?);
        Ok(true)
    }
}
