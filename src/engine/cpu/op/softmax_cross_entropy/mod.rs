//! Softmax and cross-entropy in one.

pub mod cpu;
#[cfg(test)]
mod tests;

use candle_core::{CpuStorage, CustomOp2, Layout, Result, Shape, Tensor, bail};

use super::operand::{by_dtype, elements, refuse_empty, tensor_like, with_elements};
use super::scalar::Scalar;

/// The mean over the batch of `-sum over classes of target * ln(softmax(logits))`, a scalar, as
/// `torch.nn.functional.cross_entropy` with probabilities for targets. Both are N x K; targets need not sum to 1.
///
/// # Errors
/// Where shapes or types differ, or the batch is empty.
pub fn softmax_cross_entropy(logits: &Tensor, targets: &Tensor) -> Result<Tensor> {
    refuse_empty(logits, "softmax_cross_entropy")?;
    let (_, classes) = logits.dims2()?;
    if logits.dims() != targets.dims() {
        bail!("softmax_cross_entropy: logits of {:?} for targets of {:?}", logits.dims(), targets.dims());
    }
    logits.contiguous()?.apply_op2(&targets.contiguous()?, SoftmaxCrossEntropy { classes })
}

struct SoftmaxCrossEntropy {
    classes: usize,
}

impl CustomOp2 for SoftmaxCrossEntropy {
    fn name(&self) -> &'static str {
        "softmax_cross_entropy"
    }

    fn cpu_fwd(&self, x: &CpuStorage, lx: &Layout, t: &CpuStorage, lt: &Layout) -> Result<(CpuStorage, Shape)> {
        by_dtype!(candle_core::backend::BackendStorage::dtype(x), "softmax_cross_entropy", T => {
            let loss = cpu::forward::<T>(elements(x, lx)?, elements(t, lt)?, self.classes);
            Ok((<T as candle_core::WithDType>::to_cpu_storage_owned(vec![loss]), Shape::from(())))
        })
    }

    fn bwd(&self, x: &Tensor, t: &Tensor, _: &Tensor, dy: &Tensor) -> Result<(Option<Tensor>, Option<Tensor>)> {
        by_dtype!(x.dtype(), "softmax_cross_entropy", T => {
            let dy = dy.to_scalar::<T>()?;
            let dt = if t.track_op() {
                let mut dt = vec![T::ZERO; t.elem_count()];
                with_elements(x, |x| { cpu::target_gradient(x, self.classes, dy, &mut dt); Ok(()) })?;
                Some(tensor_like(dt, t)?)
            } else {
                None
            };
            let mut dx = vec![T::ZERO; x.elem_count()];
            with_elements(x, |x| with_elements(t, |t| { cpu::backward(x, t, self.classes, dy, &mut dx); Ok(()) }))?;
            Ok((if x.track_op() { Some(tensor_like(dx, x)?) } else { None }, dt))
        })
    }
}
