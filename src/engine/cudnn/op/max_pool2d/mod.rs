//! Max-pooling, with the bias and the rectifier before it in the same launch.
//!
//! Both preserve the order of numbers, so `max(rectify(x + bias))` is `rectify(max(x) + bias)`. The first maximum of a
//! window in row-major order is chosen, and a NaN before any number, as in [`crate::engine::cpu::op::max_pool2d()`];
//! padding is never chosen. The gradient is gathered: each input adds up the gradients of those windows over it that
//! chose it.
//!
//! Windows of 2 x 2 and 3 x 3 with stride 2, those of nearly all networks, have their own kernels, for feature maps
//! whose rows (NCHW) or channels (NHWC) are a multiple of what a thread takes; the general kernels compute all others.

#[cfg(test)]
mod tests;

use super::grid::{int, kind, line};
use crate::engine::cpu::op::activation::Rectifier;
use crate::engine::cudnn::call::{Arg, Kernel, Launch, Slice};
use crate::engine::cudnn::element::Element;
use crate::engine::cudnn::feature_maps::FeatureMaps;
use crate::error::{Error, Result};
use crate::network::{Extent, MaxPool2d, Padding};
use crate::settings::Layout;

/// Positions of the largest window: the position of a maximum in its window is stored in one byte.
pub const LARGEST_WINDOW: usize = 256;

/// A max-pooling of `rectifier(x + bias)`. Input and output have the same batch, channels and layout.
#[derive(Clone, Copy, Debug)]
pub struct Pooling {
    pub element: Element,
    pub input: FeatureMaps,
    pub output: FeatureMaps,
    pub pool: MaxPool2d,
    pub rectifier: Rectifier,
}

/// A kernel, its threads, and its last arguments.
struct Path {
    kernel: &'static str,
    threads: usize,
    sizes: Vec<usize>,
}

impl Path {
    fn launch(self, element: Element, mut args: Vec<Arg>) -> Launch {
        let kernel = Kernel { operator: "max_pool2d", name: self.kernel, element };
        args.push(Arg::I64(self.threads as i64));
        args.extend(self.sizes.into_iter().map(int));
        line(kernel, self.threads, args)
    }
}

impl Pooling {
    /// Whether these kernels can compute it, forward and backward. Input and output pass [`FeatureMaps::check`].
    ///
    /// # Errors
    /// [`crate::error::Kind::Engine`] where a window has more than [`LARGEST_WINDOW`] positions, or the work needs
    /// 2^32 threads or more.
    pub fn check(&self) -> Result<()> {
        let Extent { height, width } = self.pool.kernel;
        if height.saturating_mul(width) > LARGEST_WINDOW {
            let what =
                format!("the GPU engine pools over at most {LARGEST_WINDOW} positions, not over {height} x {width}");
            return Err(Error::engine(what).hint("use a smaller pooling window, or run with `--device cpu`"));
        }
        let threads = self.forward_path().threads.max(self.backward_path().threads);
        if u32::try_from(threads).is_err() {
            let what = format!(
                "the GPU engine pools with fewer than 2^32 threads, and feature maps of this size need {threads}"
            );
            return Err(Error::engine(what).hint("use a smaller batch, or run with `--device cpu`"));
        }
        Ok(())
    }

    /// `y`: the maximum of each window. `bias` has a float for each channel. `index` gets a byte for each output, for the
    /// backward pass: the row of the maximum in its window times the window's width, and the column.
    pub fn forward(&self, x: Slice, bias: Option<Slice>, y: Slice, index: Slice) -> Launch {
        let bias = bias.map_or(Arg::Null, Arg::Read);
        let args = vec![Arg::Read(x), bias, Arg::Write(y), Arg::Write(index), kind(self.rectifier)];
        self.forward_path().launch(self.element, args)
    }

    /// The gradient of x, from that of y and from the positions that the forward pass wrote. A second gradient of y is
    /// added, and the sum is rounded to the element type. `y` is needed where there is a rectifier; `dx` must not be a
    /// slice of the gradients of y.
    pub fn backward(&self, dy: Slice, other: Option<Slice>, index: Slice, y: Option<Slice>, dx: Slice) -> Launch {
        let read = |slice: Option<Slice>| slice.map_or(Arg::Null, Arg::Read);
        let y = y.filter(|_| self.rectifier != Rectifier::Identity);
        let rectifier = kind(self.rectifier);
        let args = vec![Arg::Read(dy), read(other), Arg::Read(index), read(y), Arg::Write(dx), rectifier];
        self.backward_path().launch(self.element, args)
    }

    fn forward_path(&self) -> Path {
        if let Some((pad, outputs)) = self.stretches() {
            let kernel = if self.pool.kernel.height == 2 { "forward_2x2" } else { "forward_3x3" };
            return Path { kernel, threads: self.output.count() / outputs, sizes: self.lines(outputs, pad) };
        }
        let channels = self.channels_per_thread();
        Path { kernel: "forward", threads: self.output.count() / channels, sizes: self.sizes(channels) }
    }

    fn backward_path(&self) -> Path {
        let FeatureMaps { batch, channels, height, width, .. } = self.input;
        let (kernel_2x2, pairs) = (self.pool.kernel.height == 2, height.div_ceil(2));
        if let Some((pad, outputs)) = self.stretches() {
            let kernel = if kernel_2x2 { "backward_2x2" } else { "backward_3x3" };
            let threads = batch * channels * pairs * self.output.width / outputs;
            return Path { kernel, threads, sizes: self.lines(outputs, pad) };
        }
        let per_thread = self.channels_per_thread();
        if let Some(pad) = self.pad_of_pairs().filter(|_| per_thread > 1) {
            let kernel = if kernel_2x2 { "backward_2x2_cells" } else { "backward_3x3_cells" };
            let sizes = vec![channels, height, width, self.output.height, self.output.width, pad];
            return Path { kernel, threads: batch * pairs * width.div_ceil(2) * channels / per_thread, sizes };
        }
        Path { kernel: "backward", threads: self.input.count() / per_thread, sizes: self.sizes(per_thread) }
    }

    /// The padding above and on the left of windows of 2 x 2 or 3 x 3 with stride 2, where their own kernels support
    /// it: at most one row and one column.
    fn pad_of_pairs(&self) -> Option<usize> {
        let MaxPool2d { kernel, stride, padding } = self.pool;
        let Padding { top, bottom, left, right } = padding;
        let fits = match [kernel.height, kernel.width] {
            [2, 2] => padding == Padding::NONE,
            [3, 3] => top == left && top.max(bottom).max(right) <= 1,
            _ => false,
        };
        (fits && stride == Extent::square(2)).then_some(top)
    }

    /// That padding, and the number of neighbouring outputs in a row that a thread of the NCHW kernels computes; `None`
    /// where these kernels do not compute this pool.
    fn stretches(&self) -> Option<(usize, usize)> {
        let pad = self.pad_of_pairs()?;
        let fits = self.input.layout == Layout::Nchw && self.input.width == 2 * self.output.width;
        // The inputs of a thread are 16 bytes of a row, or fewer.
        let most = 8 / self.element.bytes();
        let divides = |outputs: &usize| self.output.width.is_multiple_of(*outputs);
        let outputs = [4, 2, 1].into_iter().filter(|outputs| *outputs <= most).find(divides)?;
        fits.then_some((pad, outputs))
    }

    /// Channels of a thread of the other kernels.
    fn channels_per_thread(&self) -> usize {
        let pack = 16 / self.element.bytes();
        let packed = self.input.layout == Layout::Nhwc && self.input.channels.is_multiple_of(pack);
        if packed { pack } else { 1 }
    }

    fn lines(&self, outputs: usize, pad: usize) -> Vec<usize> {
        vec![outputs, self.input.channels, self.input.height, self.output.height, self.output.width, pad]
    }

    fn sizes(&self, per_thread: usize) -> Vec<usize> {
        let FeatureMaps { channels, height, width, layout, .. } = self.input;
        let MaxPool2d { kernel, stride, padding: Padding { top, left, .. } } = self.pool;
        let nhwc = usize::from(layout == Layout::Nhwc);
        vec![
            per_thread,
            channels,
            height,
            width,
            self.output.height,
            self.output.width,
            kernel.height,
            kernel.width,
            stride.height,
            stride.width,
            top,
            left,
            nhwc,
        ]
    }
}
