//! Max-pooling with any kernel, stride and padding.

pub mod cpu;
#[cfg(test)]
mod tests;

use std::sync::OnceLock;

use candle_core::{CpuStorage, CustomOp1, Layout, Result, Shape, Tensor, bail};

use super::operand::{by_dtype, elements, refuse_empty, tensor_like, with_elements};
use super::scalar::Scalar;
use crate::network::{self, Extent};
use cpu::Windows;

/// The largest value of each window of `x` (N x C x H x W), as `torch.nn.functional.max_pool2d`; padding counts as minus
/// infinity, and a NaN wins. The gradient goes to the first maximum of a window in row-major order.
///
/// # Errors
/// Where a window does not fit on the padded input, or could lie entirely in the padding; where the batch is empty.
pub fn max_pool2d(x: &Tensor, p: &network::MaxPool2d) -> Result<Tensor> {
    refuse_empty(x, "max_pool2d")?;
    let (batch, channels, height, width) = x.dims4()?;
    let windows = Windows::new(Extent { height, width }, p)?;
    x.contiguous()?.apply_op1(Pooling { batch, channels, windows, winners: OnceLock::new() })
}

struct Pooling {
    batch: usize,
    channels: usize,
    windows: Windows,
    /// For each output, the position of its maximum in the plane.
    winners: OnceLock<Vec<u32>>,
}

impl CustomOp1 for Pooling {
    fn name(&self) -> &'static str {
        "max_pool2d"
    }

    fn cpu_fwd(&self, x: &CpuStorage, lx: &Layout) -> Result<(CpuStorage, Shape)> {
        by_dtype!(candle_core::backend::BackendStorage::dtype(x), "max_pool2d", T => {
            let Extent { height, width } = self.windows.output;
            let outputs = self.batch * self.channels * height * width;
            let (mut y, mut winners) = (vec![T::ZERO; outputs], vec![0; outputs]);
            cpu::forward::<T>(&self.windows, elements(x, lx)?, &mut y, &mut winners);
            let _ = self.winners.set(winners);
            let shape = Shape::from((self.batch, self.channels, height, width));
            Ok((<T as candle_core::WithDType>::to_cpu_storage_owned(y), shape))
        })
    }

    fn bwd(&self, x: &Tensor, _: &Tensor, dy: &Tensor) -> Result<Option<Tensor>> {
        let Some(winners) = self.winners.get() else { bail!("max_pool2d: backward came before forward") };
        by_dtype!(x.dtype(), "max_pool2d", T => {
            let mut dx = vec![T::ZERO; x.elem_count()];
            with_elements::<T, _>(&dy.contiguous()?, |dy| { cpu::backward(&self.windows, dy, winners, &mut dx); Ok(()) })?;
            tensor_like(dx, x).map(Some)
        })
    }
}
