//! Max-pooling, built from `index_select` and `maximum`.
//!
//! candle's own `max_pool2d` refuses its gradient where the kernel differs from the stride, as in the stem of ResNet50.
//! Elsewhere it passes on a wrong gradient: it multiplies by the share of a window's elements that are its maximum. For
//! 2x2 windows with one maximum each this is a quarter of the gradient, and four times as much where all four are
//! equal. Five such layers make the gradients of VGG16's first convolutions a thousand times too small.

use candle_core::{Result, Tensor};

use super::window::SlidingWindow;
use crate::network::{self, Extent};

/// For each element of a window, its place in all windows along the height, and along the width.
pub struct MaxPool([Vec<Vec<u32>>; 2]);

impl MaxPool {
    pub fn new(p: &network::MaxPool2d, maps: Extent) -> Self {
        let windows = SlidingWindow::both(maps, p.kernel, p.stride, p.padding);
        Self(windows.map(|window| (0..window.kernel).map(|offset| window.places(offset)).collect()))
    }

    /// Applies it to N x C x H x W: rows first, then columns, 2k operations instead of k^2.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let [vertical, horizontal] = &self.0;
        maximum(&maximum(x, vertical, 2)?, horizontal, 3)
    }
}

fn maximum(x: &Tensor, places: &[Vec<u32>], dim: usize) -> Result<Tensor> {
    let x = x.contiguous()?;
    let mut places = places.iter().map(|place| x.index_select(&Tensor::new(place.as_slice(), x.device())?, dim));
    let Some(first) = places.next() else { return Ok(x.clone()) };
    // Equal elements share the gradient; PyTorch gives all of it to the first. For rectified maps the two agree:
    // equal maxima are 0 there, where the rectifier's gradient is 0.
    places.try_fold(first?, |largest, place| largest.maximum(&place?))
}
