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

use super::rectifier::Rectifier;
use crate::engine::cudnn::call::{Arg, Kernel, Launch, Slice};
use crate::engine::cudnn::element::Element;
use crate::engine::cudnn::feature_maps::FeatureMaps;
use crate::error::{Error, Result};
use crate::network::{Extent, MaxPool2d, Padding};
use crate::settings::Layout;

/// Positions of the largest window: the position of a maximum in its window is stored in one byte.
pub const LARGEST_WINDOW: usize = 256;

const THREADS: usize = 256;

/// Whether these kernels can compute it, forward and backward. `input` and `output` pass [`FeatureMaps::check`].
///
/// # Errors
/// [`crate::error::Kind::Engine`] where a window has more than [`LARGEST_WINDOW`] positions, or the work needs
/// 2^32 threads or more.
pub fn check(element: Element, input: FeatureMaps, output: FeatureMaps, pool: &MaxPool2d) -> Result<()> {
    let Extent { height, width } = pool.kernel;
    if height.saturating_mul(width) > LARGEST_WINDOW {
        let what = format!("the GPU engine pools over at most {LARGEST_WINDOW} positions, not over {height} x {width}");
        return Err(Error::engine(what).hint("use a smaller pooling window, or run with `--device cpu`"));
    }
    let windows = Windows { input, output, pool: *pool };
    let threads = windows.forward(element).threads.max(windows.backward(element).threads);
    if u32::try_from(threads).is_err() {
        let what =
            format!("the GPU engine pools with fewer than 2^32 threads, and feature maps of this size need {threads}");
        return Err(Error::engine(what).hint("use a smaller batch, or run with `--device cpu`"));
    }
    Ok(())
}

/// `y`: the maxima over each window of `rectifier(x + bias)`, and their positions. Input and output have the same
/// batch, channels and layout; [`check`] accepts them and the pool.
#[derive(Clone, Copy, Debug)]
pub struct MaxPool2dForward {
    pub element: Element,
    pub input: FeatureMaps,
    pub output: FeatureMaps,
    pub pool: MaxPool2d,
    pub rectifier: Rectifier,
    /// A float for each channel.
    pub bias: Option<Slice>,
    pub x: Slice,
    pub y: Slice,
    /// A byte for each output, for the backward pass: the row in its window times the window's width, and the column.
    pub index: Slice,
}

/// The gradient of x, from that of y.
#[derive(Clone, Copy, Debug)]
pub struct MaxPool2dBackward {
    pub element: Element,
    pub input: FeatureMaps,
    pub output: FeatureMaps,
    pub pool: MaxPool2d,
    pub rectifier: Rectifier,
    pub dy: Slice,
    /// A second gradient of y; it is added, and the sum is rounded to the element type.
    pub dy_other: Option<Slice>,
    /// The positions that the forward pass wrote.
    pub index: Slice,
    /// Needed where there is a rectifier.
    pub y: Option<Slice>,
    /// The result; must not be a slice of the gradients of y.
    pub dx: Slice,
}

impl MaxPool2dForward {
    /// One launch.
    pub fn launches(&self) -> Vec<Launch> {
        let windows = Windows { input: self.input, output: self.output, pool: self.pool };
        let args = vec![
            Arg::Read(self.x),
            self.bias.map_or(Arg::Null, Arg::Read),
            Arg::Write(self.y),
            Arg::Write(self.index),
            Arg::I32(self.rectifier as i32),
        ];
        vec![windows.forward(self.element).launch(self.element, args)]
    }
}

impl MaxPool2dBackward {
    /// One launch.
    pub fn launches(&self) -> Vec<Launch> {
        let windows = Windows { input: self.input, output: self.output, pool: self.pool };
        let y = if self.rectifier == Rectifier::Identity { None } else { self.y };
        let args = vec![
            Arg::Read(self.dy),
            self.dy_other.map_or(Arg::Null, Arg::Read),
            Arg::Read(self.index),
            y.map_or(Arg::Null, Arg::Read),
            Arg::Write(self.dx),
            Arg::I32(self.rectifier as i32),
        ];
        vec![windows.backward(self.element).launch(self.element, args)]
    }
}

/// The sizes that decide which kernel is used.
#[derive(Clone, Copy)]
struct Windows {
    input: FeatureMaps,
    output: FeatureMaps,
    pool: MaxPool2d,
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
        let int = |size: usize| Arg::I32(size as i32);
        args.push(Arg::I64(self.threads as i64));
        args.extend(self.sizes.into_iter().map(int));
        let blocks = self.threads.div_ceil(THREADS) as u32;
        Launch { kernel, grid: [blocks, 1, 1], block: [THREADS as u32, 1, 1], shared_bytes: 0, args }
    }
}

impl Windows {
    fn forward(&self, element: Element) -> Path {
        if let Some((pad, outputs)) = self.stretches(element) {
            let kernel = if self.pool.kernel.height == 2 { "forward_2x2" } else { "forward_3x3" };
            return Path { kernel, threads: self.output.count() / outputs, sizes: self.lines(outputs, pad) };
        }
        let channels = self.channels_per_thread(element);
        Path { kernel: "forward", threads: self.output.count() / channels, sizes: self.sizes(channels) }
    }

    fn backward(&self, element: Element) -> Path {
        let FeatureMaps { batch, channels, height, width, .. } = self.input;
        let (kernel_2x2, pairs) = (self.pool.kernel.height == 2, height.div_ceil(2));
        if let Some((pad, outputs)) = self.stretches(element) {
            let kernel = if kernel_2x2 { "backward_2x2" } else { "backward_3x3" };
            let threads = batch * channels * pairs * self.output.width / outputs;
            return Path { kernel, threads, sizes: self.lines(outputs, pad) };
        }
        let per_thread = self.channels_per_thread(element);
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
    fn stretches(&self, element: Element) -> Option<(usize, usize)> {
        let pad = self.pad_of_pairs()?;
        let fits = self.input.layout == Layout::Nchw && self.input.width == 2 * self.output.width;
        // The inputs of a thread are 16 bytes of a row, or fewer.
        let most = 8 / element.bytes();
        let divides = |outputs: &usize| self.output.width.is_multiple_of(*outputs);
        let outputs = [4, 2, 1].into_iter().filter(|outputs| *outputs <= most).find(divides)?;
        fits.then_some((pad, outputs))
    }

    /// Channels of a thread of the other kernels.
    fn channels_per_thread(&self, element: Element) -> usize {
        let pack = 16 / element.bytes();
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
