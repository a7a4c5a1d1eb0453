//! Two-dimensional convolution (cross-correlation): N x C x H x W and weights O x (C / groups) x kernel give N x O x H' x W'
//! with `H' = (H + top + bottom - kernel) / stride + 1`, rounded down, as `torch.nn.functional.conv2d` does.

mod cpu;
mod cpu_backward;
pub mod depthwise;
mod few_channels;
mod geometry;
mod implicit;
mod pointwise;
mod shares;
#[cfg(test)]
mod tests;
mod unfold;
mod winograd;

use super::filters::Filters;
use super::scalar::Scalar;
use crate::engine::cpu::blocking::{Blocking, Factors};
use crate::error::Result;
use crate::network::{Conv2d, Shape};
use crate::settings::Winograd;
pub use cpu_backward::Gradients;
use geometry::Geometry;

/// From which size on Winograd's algorithm is taken: the least saving of multiplications that pays for the transforms, summed over the tiles of all images, in units of
/// the multiplications of one tile. The first number applies where the transformed filters fit in the third-level
/// cache, the second where they do not. Infinite where the algorithm never pays.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WinogradThreshold(pub [f64; 2]);

impl Default for WinogradThreshold {
    /// Measured for ten convolutions on one and on two threads of an EPYC (docs/cpu-engine.md).
    fn default() -> Self {
        Self([28.0, 40.0])
    }
}

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
    fn of(g: &Geometry, winograd: Winograd, threshold: WinogradThreshold) -> Self {
        if depthwise::suits(g) {
            Self::Depthwise
        } else if few_channels::suits(g) {
            Self::FewChannels
        } else if winograd != Winograd::Never && winograd::suits(g, threshold) {
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

/// Computes a gradient from the weights or the input, and from the gradient of the output.
type Gradient<T> = fn(&Geometry, &[T], &[T], &mut [T]);

/// A convolution of known shapes, on slices.
#[derive(Clone, Copy, Debug)]
pub struct Convolution {
    geometry: Geometry,
    algorithm: Algorithm,
}

impl Convolution {
    /// The convolution `p` of a batch of maps, by Winograd's algorithm from `threshold` on, where `winograd` allows it.
    ///
    /// # Errors
    /// If the shapes do not fit together, or the batch is empty.
    pub fn new(
        batch: usize,
        input: Shape,
        p: &Conv2d,
        winograd: Winograd,
        threshold: WinogradThreshold,
    ) -> Result<Self> {
        let geometry = Geometry::new(batch, input, p)?;
        Ok(Self { geometry, algorithm: Algorithm::of(&geometry, winograd, threshold) })
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
            (Algorithm::Implicit, g.is_dense()),
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
        let g = &self.geometry;
        let (input_gradient, weight_gradient): (Gradient<T>, Gradient<T>) = match self.algorithm {
            Algorithm::Depthwise => return depthwise::backward(g, x, weight, dy, into),
            Algorithm::Pointwise | Algorithm::Unfolded => return cpu_backward::backward(g, x, weight, dy, into),
            Algorithm::Winograd => (winograd::input_gradient, winograd::weight_gradient),
            Algorithm::Implicit => (implicit::input_gradient, implicit::weight_gradient),
            // The gradient of the images, which no network needs, is computed like that of an unfolded convolution.
            Algorithm::FewChannels => (
                |g, weight, dy, dx| cpu_backward::backward(g, &[], weight, dy, Gradients { x: Some(dx), weight: None }),
                few_channels::weight_gradient,
            ),
        };
        into.x.into_iter().for_each(|dx| input_gradient(g, weight, dy, dx));
        into.weight.into_iter().for_each(|dw| weight_gradient(g, x, dy, dw));
    }

    /// Its sizes, where each channel of the output is computed directly from one channel of the input, so that
    /// [`depthwise`] can compute some channels without the others.
    pub fn by_channels(&self) -> Option<&Geometry> {
        (self.algorithm == Algorithm::Depthwise).then_some(&self.geometry)
    }

    /// The gradient of the bias.
    pub fn bias_gradient<T: Scalar>(&self, dy: &[T], db: &mut [T]) {
        cpu_backward::bias_gradient(&self.geometry, dy, db);
    }
}
