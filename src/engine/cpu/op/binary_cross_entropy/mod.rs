//! Binary cross-entropy of logits.

pub mod cpu;
#[cfg(test)]
mod tests;

use candle_core::{CpuStorage, CustomOp2, Layout, Result, Shape, Tensor, bail};

use super::operand::{by_dtype, elements, refuse_empty, tensor_like, with_elements};
use super::scalar::Scalar;

/// The mean over batch and outputs of the cross-entropy between `target` and the logistic function of `logits`, a scalar, as
/// `torch.nn.functional.binary_cross_entropy_with_logits`. A gradient of the target is not computed.
///
/// # Errors
/// Where shapes or types differ, or the batch is empty.
pub fn binary_cross_entropy(logits: &Tensor, target: &Tensor) -> Result<Tensor> {
    refuse_empty(logits, "binary_cross_entropy")?;
    if logits.dims() != target.dims() {
        bail!("binary_cross_entropy: logits of {:?} for a target of {:?}", logits.dims(), target.dims());
    }
    logits.contiguous()?.apply_op2(&target.contiguous()?, BinaryCrossEntropy)
}

struct BinaryCrossEntropy;

impl CustomOp2 for BinaryCrossEntropy {
    fn name(&self) -> &'static str {
        "binary_cross_entropy"
    }

    fn cpu_fwd(&self, x: &CpuStorage, lx: &Layout, t: &CpuStorage, lt: &Layout) -> Result<(CpuStorage, Shape)> {
        by_dtype!(candle_core::backend::BackendStorage::dtype(x), "binary_cross_entropy", T => {
            let loss = cpu::forward::<T>(elements(x, lx)?, elements(t, lt)?);
            Ok((<T as candle_core::WithDType>::to_cpu_storage_owned(vec![loss]), Shape::from(())))
        })
    }

    fn bwd(&self, x: &Tensor, t: &Tensor, _: &Tensor, dy: &Tensor) -> Result<(Option<Tensor>, Option<Tensor>)> {
        by_dtype!(x.dtype(), "binary_cross_entropy", T => {
            let dy = dy.to_scalar::<T>()?;
            let mut dx = vec![T::ZERO; x.elem_count()];
            with_elements(x, |x| with_elements(t, |t| { cpu::backward(x, t, dy, &mut dx); Ok(()) }))?;
            Ok((Some(tensor_like(dx, x)?), None))
        })
    }
}
