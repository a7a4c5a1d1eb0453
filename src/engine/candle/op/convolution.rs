//! A convolution with a separate padding for each side and separate strides for height and width, built from candle's,
//! which has one padding and one stride for all.

use candle_core::{Result, Tensor};
use candle_nn::{Conv2d, Conv2dConfig, Module};

use super::window::SlidingWindow;
use crate::network::{self, Extent};

/// A candle-nn convolution, and what comes before and after it.
#[derive(Debug)]
pub struct Convolution {
    convolution: Conv2d,
    windows: [SlidingWindow; 2],
    /// True where zeros are put around the input beforehand.
    pads: bool,
    /// True where the convolution runs with stride 1 and some of its rows and columns are kept.
    thins: bool,
}

impl Convolution {
    /// A convolution of such maps.
    pub fn new(p: &network::Conv2d, maps: Extent, weight: Tensor, bias: Option<Tensor>) -> Self {
        let (around, stride) = (p.padding, p.stride);
        let windows = SlidingWindow::both(maps, p.kernel, stride, around);
        // candle's backward pass assumes that height and width leave the same number of elements unread (`out_padding`
        // in its backprop.rs), and fails where they differ.
        let even = around.top == around.bottom && around.left == around.right && around.top == around.left;
        let pads = !even || windows[0].unread() != windows[1].unread();
        let thins = stride.height != stride.width;
        let config = Conv2dConfig {
            padding: if pads || thins { 0 } else { around.top },
            stride: if thins { 1 } else { stride.height },
            groups: p.groups,
            ..Conv2dConfig::default()
        };
        let convolution = Conv2d::new(weight, bias, config);
        Self { convolution, windows, pads: pads || thins, thins }
    }

    /// Applies it to N x C x H x W.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let [vertical, horizontal] = self.windows;
        let mut x = x.clone();
        if self.pads {
            x = covered(&covered(&x, vertical, 2)?, horizontal, 3)?;
        }
        let y = self.convolution.forward(&x)?;
        if !self.thins {
            return Ok(y);
        }
        let keep = |window: SlidingWindow| {
            Tensor::from_iter((0..window.outputs()).map(|at| (at * window.stride) as u32), y.device())
        };
        y.index_select(&keep(vertical)?, 2)?.contiguous()?.index_select(&keep(horizontal)?, 3)
    }
}

/// The dimension padded with zeros, without the elements that no window reads.
fn covered(x: &Tensor, window: SlidingWindow, dim: usize) -> Result<Tensor> {
    let unread = window.unread();
    let x = x.pad_with_zeros(dim, window.before, window.after.saturating_sub(unread))?;
    if unread > window.after { x.narrow(dim, 0, window.padded() - unread) } else { Ok(x) }
}
