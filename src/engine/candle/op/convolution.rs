//! A convolution with padding on each side and strides of its own for height and width, out of candle's, which has one
//! padding and one stride for all.

use candle_core::{Result, Tensor};
use candle_nn::{Conv2d, Conv2dConfig, Module};

use super::strided;
use crate::network;

/// One axis of the input: how the convolution's windows lie on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Axis {
    length: usize,
    kernel: usize,
    stride: usize,
    before: usize,
    after: usize,
}

impl Axis {
    fn outputs(self) -> usize {
        (self.before + self.length + self.after).saturating_sub(self.kernel) / self.stride + 1
    }

    /// The last elements of the padded axis, which no window reaches.
    fn unread(self) -> usize {
        (self.before + self.length + self.after).saturating_sub((self.outputs() - 1) * self.stride + self.kernel)
    }
}

/// A candle-nn convolution, and what comes before and after it.
#[derive(Debug)]
pub struct Convolution {
    convolution: Conv2d,
    axes: [Axis; 2],
    /// True where zeros are put around the input beforehand.
    pads: bool,
    /// True where the convolution runs with stride 1 and some of its rows and columns are kept.
    thins: bool,
}

impl Convolution {
    /// A convolution of maps of (height, width).
    ///
    /// # Errors
    /// None where the shapes have been checked.
    pub fn new(
        p: &network::Conv2d,
        (height, width): (usize, usize),
        weight: Tensor,
        bias: Option<Tensor>,
    ) -> Result<Self> {
        let (around, kernel, stride) = (p.padding, p.kernel, p.stride);
        let axis = |length, kernel, stride, before, after| Axis { length, kernel, stride, before, after };
        let vertical = axis(height, kernel.0, stride.0, around.top, around.bottom);
        let horizontal = axis(width, kernel.1, stride.1, around.left, around.right);
        // The backward pass of candle takes what the height leaves unread for the width's as well (`out_padding` in its
        // backprop.rs), and fails where they differ.
        let even = around.top == around.bottom && around.left == around.right && around.top == around.left;
        let pads = !even || vertical.unread() != horizontal.unread();
        let thins = stride.0 != stride.1;
        let config = Conv2dConfig {
            padding: if pads || thins { 0 } else { around.top },
            stride: if thins { 1 } else { stride.0 },
            groups: p.groups,
            ..Conv2dConfig::default()
        };
        let convolution = Conv2d::new(weight, bias, config);
        Ok(Self { convolution, axes: [vertical, horizontal], pads: pads || thins, thins })
    }

    /// Applies it to N x C x H x W.
    ///
    /// # Errors
    /// candle's, where memory cannot be had.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let [vertical, horizontal] = self.axes;
        let mut x = x.clone();
        if self.pads {
            x = covered(&covered(&x, vertical, 2)?, horizontal, 3)?;
        }
        let y = self.convolution.forward(&x)?;
        if !self.thins {
            return Ok(y);
        }
        let keep = |axis: Axis| strided(0, axis.stride, axis.outputs(), y.device());
        y.index_select(&keep(vertical)?, 2)?.contiguous()?.index_select(&keep(horizontal)?, 3)
    }
}

/// The axis padded with zeros, without what no window reads.
fn covered(x: &Tensor, axis: Axis, dim: usize) -> Result<Tensor> {
    let (unread, whole) = (axis.unread(), axis.before + axis.length + axis.after);
    let after = axis.after.saturating_sub(unread);
    let x = x.pad_with_zeros(dim, axis.before, after)?;
    if unread > axis.after { x.narrow(dim, 0, whole - unread) } else { Ok(x) }
}
