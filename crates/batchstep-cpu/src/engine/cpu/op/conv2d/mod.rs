//! Two-dimensional convolution (cross-correlation): N x C x H x W and weights O x (C / groups) x kernel give N x O x H' x W'
//! with `H' = (H + top + bottom - kernel) / stride + 1`, rounded down, as `torch.nn.functional.conv2d` does.

mod cpu;
mod cpu_backward;
mod depthwise;
mod few_channels;
mod geometry;
mod implicit;
mod pointwise;
mod shares;
#[cfg(test)]
mod tests;
mod unfold;
mod winograd;

use std::ops::Range;

use super::filters::Filters;
use super::parallel::Shared;
use super::place::ChannelPlanes;
use super::scalar::Scalar;
use crate::engine::cpu::blocking::{Blocking, Factors};
use crate::error::Result;
use crate::network::{Conv2d, Shape};
use crate::settings::Winograd;
pub use cpu_backward::Gradients;
pub use depthwise::Slopes;
use geometry::Geometry;
pub use winograd::switch::Switch;

/// How a convolution is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Algorithm {
    /// Directly, each channel with its own filter.
    Depthwise,
    /// Directly, a few output channels at a time.
    FewChannels,
    /// By transformed tiles.
    Winograd,
    /// As a product with each image as it lies in memory.
    Pointwise,
    /// As a product with parts of each image.
    Implicit,
    /// As a product of matrices.
    Unfolded,
}

impl Algorithm {
    fn of(g: &Geometry, winograd: Winograd, switch: Switch) -> Self {
        if depthwise::suits(g) {
            Self::Depthwise
        } else if few_channels::suits(g) {
            Self::FewChannels
        } else if winograd != Winograd::Never && winograd::suits(g, switch) {
            Self::Winograd
        } else if pointwise::suits(g) {
            Self::Pointwise
        } else if implicit::suits(g) {
            Self::Implicit
        } else {
            Self::Unfolded
        }
    }
}

/// A convolution of known shapes, on slices.
#[derive(Clone, Copy, Debug)]
pub struct Convolution {
    geometry: Geometry,
    algorithm: Algorithm,
}

impl Convolution {
    /// The convolution `p` of a batch of maps, by Winograd's algorithm from `switch` on, where `winograd` allows it.
    ///
    /// # Errors
    /// If the shapes do not fit together, or the batch is empty.
    pub fn new(batch: usize, input: Shape, p: &Conv2d, winograd: Winograd, switch: Switch) -> Result<Self> {
        let geometry = Geometry::new(batch, input, p)?;
        Ok(Self { geometry, algorithm: Algorithm::of(&geometry, winograd, switch) })
    }

    /// The same with its products cut as `blocking` says.
    pub fn cut(mut self, blocking: Blocking) -> Self {
        self.geometry.blocking = blocking;
        self
    }

    /// The same convolution by each algorithm for dense convolutions that can compute it.
    pub fn ways(&self) -> impl Iterator<Item = Self> {
        let g = self.geometry;
        let ways = [
            (Algorithm::Winograd, winograd::fits(&g)),
            (Algorithm::Implicit, implicit::fits(&g)),
            (Algorithm::Unfolded, true),
        ];
        ways.into_iter().filter(|(_, fits)| *fits).map(move |(algorithm, _)| Self { geometry: g, algorithm })
    }

    /// The name of the algorithm: `direct`; `winograd_4x4_3x3`, output tile and filter; `gemm`, a product of matrices as they
    /// lie; `implicit_gemm`, one whose rows are parts of the images; or `im2col_gemm`, where one matrix is first copied
    /// from the images, window by window.
    pub fn algorithm(&self) -> &'static str {
        match self.algorithm {
            Algorithm::Depthwise | Algorithm::FewChannels => "direct",
            Algorithm::Winograd => "winograd_4x4_3x3",
            Algorithm::Pointwise if pointwise::is_wide(&self.geometry) => "gemm",
            Algorithm::Implicit => "implicit_gemm",
            Algorithm::Pointwise | Algorithm::Unfolded => "im2col_gemm",
        }
    }

    /// What its products round their factors to.
    pub fn factors(&self) -> Factors {
        match self.algorithm {
            // Rounding the transformed tiles would cause four times the error of rounding the images (docs/cpu-engine.md).
            Algorithm::Depthwise | Algorithm::FewChannels | Algorithm::Winograd => Factors::Exact,
            Algorithm::Pointwise | Algorithm::Implicit | Algorithm::Unfolded => self.geometry.factors(),
        }
    }

    /// `y = rectifier(w * x + bias)`.
    pub fn forward<T: Scalar>(&self, x: &[T], filters: Filters<'_, T>, y: &mut [T]) {
        debug_assert!(x.len() == self.geometry.input_len() && y.len() == self.geometry.output_len());
        let kernel = match self.algorithm {
            Algorithm::Depthwise => depthwise::forward,
            Algorithm::FewChannels => few_channels::forward,
            Algorithm::Winograd => winograd::forward,
            Algorithm::Pointwise => pointwise::forward,
            Algorithm::Implicit => implicit::forward,
            Algorithm::Unfolded => cpu::forward,
        };
        kernel(&self.geometry, x, filters, y);
    }

    /// The wanted gradients of input and weights.
    pub fn backward<T: Scalar>(&self, x: &[T], weight: &[T], dy: &[T], into: Gradients<'_, T>) {
        let (g, mut into) = (&self.geometry, into);
        match self.algorithm {
            Algorithm::Depthwise => depthwise::backward(g, x, weight, dy, into),
            Algorithm::Winograd => winograd::backward(g, x, weight, dy, into),
            Algorithm::Implicit => implicit::backward(g, x, weight, dy, into),
            Algorithm::Pointwise | Algorithm::Unfolded => cpu_backward::backward(g, x, weight, dy, into),
            Algorithm::FewChannels => {
                if let Some(dw) = into.weight.take() {
                    few_channels::weight_gradient(g, x, dy, dw);
                }
                // The gradient of the images, which no network needs.
                if into.x.is_some() {
                    cpu_backward::backward(g, x, weight, dy, into);
                }
            }
        }
    }

    /// Whether each channel of the output is computed directly from one channel of the input, so that some channels can
    /// be computed without the others.
    pub fn is_by_channels(&self) -> bool {
        self.algorithm == Algorithm::Depthwise
    }

    /// Whether the channels of the input may then lie at other places than the output's.
    pub fn reads_anywhere(&self) -> bool {
        self.is_by_channels() && depthwise::reads_anywhere(&self.geometry)
    }

    /// [`Convolution::forward`] for some channels, where [`Convolution::is_by_channels`]; `place` says where they lie
    /// in `x`.
    ///
    /// # Safety
    /// No other task may write to these channels of `x` meanwhile, or use those of `y`.
    pub unsafe fn forward_channels<T: Scalar>(
        &self,
        channels: Range<usize>,
        x: (&Shared<'_, T>, &ChannelPlanes),
        filters: Filters<'_, T>,
        y: &Shared<'_, T>,
    ) {
        // SAFETY: by the caller's promise.
        unsafe { depthwise::forward_channels(&self.geometry, channels, x, filters, y) };
    }

    /// [`Convolution::backward`] for some channels, where [`Convolution::is_by_channels`]; `place` says where they lie
    /// in `x`.
    ///
    /// # Safety
    /// No other task may write to these channels of `x` and `dy` meanwhile, or use those of `dx` and `dw`.
    pub unsafe fn backward_channels<T: Scalar>(
        &self,
        channels: Range<usize>,
        x: (&Shared<'_, T>, &ChannelPlanes),
        weight: &[T],
        slopes: Slopes<'_, T>,
    ) {
        // SAFETY: by the caller's promise.
        unsafe { depthwise::backward_channels(&self.geometry, channels, x, weight, slopes) };
    }

    /// The gradient of the bias.
    pub fn bias_gradient<T: Scalar>(&self, dy: &[T], db: &mut [T]) {
        cpu_backward::bias_gradient(&self.geometry, dy, db);
    }
}
