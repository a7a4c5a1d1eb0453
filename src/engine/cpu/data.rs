//! The batch: where the step reads it from, and how it is copied there.

use candle_core::{CpuStorage, DType, Device, InplaceOp1, Layout, Result, Tensor, bail};

use crate::engine::Workload;
use crate::engine::data::{self, batch_dims};
use crate::settings::DataPath;

/// A batch in the memory that the step reads, and, for data that is copied in each step, the source of the copy.
#[derive(Debug)]
pub struct Batch {
    inputs: Tensor,
    targets: Tensor,
    /// Inputs and targets in ordinary host memory.
    host: Option<(CpuStorage, CpuStorage)>,
}

impl Batch {
    /// Draws the batch of a workload, see [`data`].
    ///
    /// # Errors
    /// candle's, where memory cannot be had.
    pub fn new(workload: &Workload, dtype: DType) -> Result<Self> {
        let Workload { network, batch_size, settings } = workload;
        let (inputs, targets) = (data::inputs(workload), data::targets(workload));
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
