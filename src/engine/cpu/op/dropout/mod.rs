//! Dropout with a mask that depends only on the seed and the position.

pub mod cpu;
#[cfg(test)]
mod tests;

use candle_core::{CpuStorage, CustomOp1, Layout, Result, Shape, Tensor, bail};

use super::operand::{by_dtype, elements, refuse_empty, tensor_like, with_elements};
use crate::engine::dropout::Mask;

/// Zeroes each element with probability `rate` and scales the others by `1 / (1 - rate)`. The same seed gives the same
/// mask, on any number of threads; nothing is stored for the backward pass.
///
/// # Errors
/// Where `rate` is not in [0, 1), or `x` is empty.
pub fn dropout(x: &Tensor, rate: f64, seed: u64) -> Result<Tensor> {
    refuse_empty(x, "dropout")?;
    if !(0.0..1.0).contains(&rate) {
        bail!("dropout: the rate must be at least 0 and below 1, got {rate}");
    }
    x.contiguous()?.apply_op1(Dropout(Mask::new(rate, seed)))
}

struct Dropout(Mask);

impl CustomOp1 for Dropout {
    fn name(&self) -> &'static str {
        "dropout"
    }

    fn cpu_fwd(&self, x: &CpuStorage, lx: &Layout) -> Result<(CpuStorage, Shape)> {
        by_dtype!(candle_core::backend::BackendStorage::dtype(x), "dropout", T => {
            let mut y = elements::<T>(x, lx)?.to_vec();
            cpu::apply(self.0, &mut y);
            Ok((<T as candle_core::WithDType>::to_cpu_storage_owned(y), lx.shape().clone()))
        })
    }

    fn bwd(&self, x: &Tensor, _: &Tensor, dy: &Tensor) -> Result<Option<Tensor>> {
        by_dtype!(x.dtype(), "dropout", T => {
            let mut dx = with_elements::<T, _>(&dy.contiguous()?, |dy| Ok(dy.to_vec()))?;
            cpu::apply(self.0, &mut dx);
            tensor_like(dx, x).map(Some)
        })
    }
}
