//! Rectified linear units.

pub mod cpu;
#[cfg(test)]
mod tests;

use candle_core::{CpuStorage, CustomOp1, Layout, Result, Shape, Tensor};

use super::operand::{by_dtype, elements, refuse_empty, tensor_like, with_elements};
use super::scalar::Scalar;
pub use cpu::{Range, Rectifier};

/// `max(x, 0)`. The gradient at 0 is 0, as in PyTorch (in candle it is 1).
///
/// # Errors
/// Where `x` is empty or of a type other than float32 and float64.
pub fn relu(x: &Tensor) -> Result<Tensor> {
    refuse_empty(x, "relu")?;
    x.contiguous()?.apply_op1(Rectification(Rectifier::Relu))
}

/// `min(max(x, 0), 6)`. The gradient at 0 and at 6 is 0, as in PyTorch.
///
/// # Errors
/// As [`relu`].
pub fn relu6(x: &Tensor) -> Result<Tensor> {
    refuse_empty(x, "relu6")?;
    x.contiguous()?.apply_op1(Rectification(Rectifier::Relu6))
}

struct Rectification(Rectifier);

impl CustomOp1 for Rectification {
    fn name(&self) -> &'static str {
        if self.0 == Rectifier::Relu6 { "relu6" } else { "relu" }
    }

    fn cpu_fwd(&self, x: &CpuStorage, lx: &Layout) -> Result<(CpuStorage, Shape)> {
        by_dtype!(candle_core::backend::BackendStorage::dtype(x), self.name(), T => {
            let x = elements::<T>(x, lx)?;
            let mut y = vec![T::ZERO; x.len()];
            cpu::forward(self.0, x, &mut y);
            Ok((<T as candle_core::WithDType>::to_cpu_storage_owned(y), lx.shape().clone()))
        })
    }

    fn bwd(&self, x: &Tensor, y: &Tensor, dy: &Tensor) -> Result<Option<Tensor>> {
        by_dtype!(x.dtype(), self.name(), T => {
            let mut dx = with_elements::<T, _>(&dy.contiguous()?, |dy| Ok(dy.to_vec()))?;
            with_elements(y, |y| { cpu::backward(self.0, y, &mut dx); Ok(()) })?;
            tensor_like(dx, x).map(Some)
        })
    }
}
