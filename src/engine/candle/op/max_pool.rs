//! Max-pooling out of `index_select` and `maximum`.
//!
//! candle's own `max_pool2d` refuses its gradient where the kernel is not the stride, as in the stem of ResNet50, and
//! elsewhere passes on the wrong one: the gradient times the share of a window's elements that are its maximum, which is a
//! quarter of it for 2x2 windows with one maximum each, and four times as much where all four are equal. Five such layers
//! make the gradients of VGG16's first convolutions a thousand times too small.

use candle_core::{Result, Tensor};

use crate::network;

/// The windows of one axis.
#[derive(Clone, Debug)]
struct Axis {
    /// For each place in a window, where all windows have it on the axis. A place in the padding stands for the nearest element
    /// of the input, which lies in the same window and does not change its maximum.
    places: Vec<Vec<u32>>,
}

impl Axis {
    fn new(length: usize, kernel: usize, stride: usize, (before, after): (usize, usize)) -> Self {
        let outputs = (before + length + after).saturating_sub(kernel) / stride + 1;
        let place = |offset: usize| {
            (0..outputs)
                .map(move |output: usize| (output * stride + offset).saturating_sub(before).min(length - 1) as u32)
        };
        Self { places: (0..kernel).map(|offset| place(offset).collect()).collect() }
    }

    fn maximum(&self, x: &Tensor, dim: usize) -> Result<Tensor> {
        let x = x.contiguous()?;
        let mut places =
            self.places.iter().map(|place| x.index_select(&Tensor::new(place.as_slice(), x.device())?, dim));
        let Some(first) = places.next() else { return Ok(x.clone()) };
        // Of equal elements, each takes a part of the gradient; PyTorch gives all of it to the first. Between rectified maps
        // the two agree: the rectifier's gradient is 0 where several elements are.
        places.try_fold(first?, |largest, place| largest.maximum(&place?))
    }
}

/// The largest value of each window.
#[derive(Clone, Debug)]
pub struct MaxPool {
    vertical: Axis,
    horizontal: Axis,
}

impl MaxPool {
    /// Windows on maps of (height, width).
    pub fn new(p: &network::MaxPool2d, (height, width): (usize, usize)) -> Self {
        let network::MaxPool2d { kernel, stride, padding } = *p;
        Self {
            vertical: Axis::new(height, kernel.0, stride.0, (padding.top, padding.bottom)),
            horizontal: Axis::new(width, kernel.1, stride.1, (padding.left, padding.right)),
        }
    }

    /// Applies it to N x C x H x W: rows first, then columns, 2k operations in place of k^2.
    ///
    /// # Errors
    /// candle's, where memory cannot be had.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.horizontal.maximum(&self.vertical.maximum(x, 2)?, 3)
    }
}
