//! The batch: random inputs and targets from a seed, and the copy to the memory that the step reads.

use candle_core::{CpuStorage, DType, Device, InplaceOp1, Layout, Result, Tensor, bail};
use rayon::prelude::*;

use crate::engine::Workload;
use crate::network::Shape;
use crate::random::{Purpose, Stream};
use crate::settings::{DataPath, Loss};

/// A batch in the memory that the step reads, and, for data that is copied in each step, the source of the copy.
#[derive(Debug)]
pub struct Batch {
    inputs: Tensor,
    targets: Tensor,
    /// Inputs and targets in ordinary host memory.
    host: Option<(CpuStorage, CpuStorage)>,
}

impl Batch {
    /// Draws the batch of a workload. Inputs are uniform on [0, 1). Targets are one-hot with labels of equal probability
    /// for a cross-entropy, and uniform on [0, 1) for a squared error. Example `n` is the same in every batch size.
    ///
    /// # Errors
    /// candle's, where memory cannot be had.
    pub fn new(workload: &Workload, dtype: DType) -> Result<Self> {
        let Workload { network, batch_size, settings } = workload;
        let inputs = uniform(Stream::new(settings.seed, Purpose::Inputs, (0, 0)), *batch_size, network.input());
        let stream = Stream::new(settings.seed, Purpose::Targets, (0, 0));
        let targets = match settings.loss {
            Loss::CategoricalCrossEntropy => one_hot(stream, *batch_size, network.output()),
            Loss::MeanSquaredError => uniform(stream, *batch_size, network.output()),
        };
        let dims = [network.input(), network.output()].map(|shape| batch_dims(*batch_size, shape));
        let host = match settings.data {
            DataPath::Resident => None,
            _ => Some((storage(&inputs, dtype)?, storage(&targets, dtype)?)),
        };
        let [inputs, targets] = [(inputs, &dims[0]), (targets, &dims[1])]
            .map(|(values, dims)| Tensor::from_vec(values, dims.as_slice(), &Device::Cpu)?.to_dtype(dtype));
        Ok(Self { inputs: inputs?, targets: targets?, host })
    }

    /// Copies the batch from ordinary host memory, if the setting `data` asks for it; returns whether it did.
    ///
    /// # Errors
    /// candle's.
    pub fn upload(&self) -> Result<bool> {
        let Some((inputs, targets)) = &self.host else { return Ok(false) };
        self.inputs.inplace_op1(&Upload(inputs))?;
        self.targets.inplace_op1(&Upload(targets))?;
        Ok(true)
    }

    /// N x the network's input.
    pub fn inputs(&self) -> &Tensor {
        &self.inputs
    }

    /// N x the network's output.
    pub fn targets(&self) -> &Tensor {
        &self.targets
    }
}

/// The dimensions of a batch of `shape`.
pub fn batch_dims(batch_size: usize, shape: Shape) -> Vec<usize> {
    match shape {
        Shape::Maps { channels, height, width } => vec![batch_size, channels, height, width],
        Shape::Flat(features) => vec![batch_size, features],
    }
}

fn uniform(stream: Stream, batch_size: usize, shape: Shape) -> Vec<f32> {
    (0..batch_size * shape.count()).into_par_iter().map(|index| stream.uniform(index as u64)).collect()
}

fn one_hot(stream: Stream, batch_size: usize, shape: Shape) -> Vec<f32> {
    let classes = shape.count();
    let mut targets = vec![0.0; batch_size * classes];
    for (example, row) in (0u64..).zip(targets.chunks_mut(classes)) {
        row[(stream.bits(example) % classes as u64) as usize] = 1.0;
    }
    targets
}

fn storage(values: &[f32], dtype: DType) -> Result<CpuStorage> {
    match dtype {
        DType::F32 => Ok(CpuStorage::F32(values.to_vec())),
        DType::F64 => Ok(CpuStorage::F64(values.iter().copied().map(f64::from).collect())),
        _ => bail!("a batch of {dtype:?}"),
    }
}

/// Overwrites a tensor in place: one copy in one thread, as a data loader makes it.
struct Upload<'a>(&'a CpuStorage);

impl InplaceOp1 for Upload<'_> {
    fn name(&self) -> &'static str {
        "upload"
    }

    fn cpu_fwd(&self, storage: &mut CpuStorage, layout: &Layout) -> Result<()> {
        let Some((start, end)) = layout.contiguous_offsets() else { bail!("upload: the tensor is not contiguous") };
        match (storage, self.0) {
            (CpuStorage::F32(to), CpuStorage::F32(from)) if from.len() == end - start => {
                to[start..end].copy_from_slice(from)
            }
            (CpuStorage::F64(to), CpuStorage::F64(from)) if from.len() == end - start => {
                to[start..end].copy_from_slice(from)
            }
            _ => bail!("upload: the element type or the size differs"),
        }
        Ok(())
    }
}
