//! The mean over height and width.

pub mod cpu;
#[cfg(test)]
mod tests;

use candle_core::{CpuStorage, CustomOp1, Layout, Result, Shape, Tensor};

use super::operand::{by_dtype, elements, refuse_empty, tensor_like, with_elements};
use super::scalar::Scalar;

/// The mean of each feature map: N x C x H x W to N x C, as `torch.mean(x, (2, 3))`.
///
/// # Errors
/// Where `x` does not have four axes, or is empty.
pub fn global_average_pool(x: &Tensor) -> Result<Tensor> {
    refuse_empty(x, "global_average_pool")?;
    let (batch, channels, height, width) = x.dims4()?;
    x.contiguous()?.apply_op1(Average { batch, channels, pixels: height * width })
}

struct Average {
    batch: usize,
    channels: usize,
    pixels: usize,
}

impl CustomOp1 for Average {
    fn name(&self) -> &'static str {
        "global_average_pool"
    }

    fn cpu_fwd(&self, x: &CpuStorage, lx: &Layout) -> Result<(CpuStorage, Shape)> {
        by_dtype!(candle_core::backend::BackendStorage::dtype(x), "global_average_pool", T => {
            let mut y = vec![T::ZERO; self.batch * self.channels];
            cpu::forward::<T>(elements(x, lx)?, self.pixels, &mut y);
            let shape = Shape::from((self.batch, self.channels));
            Ok((<T as candle_core::WithDType>::to_cpu_storage_owned(y), shape))
        })
    }

    fn bwd(&self, x: &Tensor, _: &Tensor, dy: &Tensor) -> Result<Option<Tensor>> {
        by_dtype!(x.dtype(), "global_average_pool", T => {
            let mut dx = vec![T::ZERO; x.elem_count()];
            with_elements::<T, _>(&dy.contiguous()?, |dy| { cpu::backward(dy, self.pixels, &mut dx); Ok(()) })?;
            tensor_like(dx, x).map(Some)
        })
    }
}
