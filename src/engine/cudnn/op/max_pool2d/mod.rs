//! Max-pooling, with the bias and the rectifier before it in the same launch.
//!
//! Both keep the order of numbers, so `max(rectify(x + bias))` is `rectify(max(x) + bias)`. The first maximum of a window in
//! row-major order is chosen, and a NaN before all numbers, as in [`crate::engine::candle::op::max_pool2d()`]; padding is
//! never chosen. The gradient is gathered: each input asks the windows over it whether they chose it.

#[cfg(test)]
mod tests;

use super::rectifier::Rectifier;
use crate::engine::cudnn::call::{Arg, Kernel, Launch, Slice};
use crate::engine::cudnn::element::Element;
use crate::engine::cudnn::maps::Maps;
use crate::engine::settings::Layout;
use crate::error::{Error, Result};
use crate::network::{MaxPool2d, Padding};

/// Places of the largest window: an output's place in its window is kept in one byte.
pub const LARGEST_WINDOW: usize = 256;

const THREADS: usize = 256;

/// Whether these kernels can compute it.
///
/// # Errors
/// [`crate::error::Kind::Engine`] where a window has more than [`LARGEST_WINDOW`] places.
pub fn check(pool: &MaxPool2d) -> Result<()> {
    let (height, width) = pool.kernel;
    if height * width <= LARGEST_WINDOW {
        return Ok(());
    }
    let what = format!("the GPU engine pools over at most {LARGEST_WINDOW} places, not over {height} x {width}");
    Err(Error::engine(what).hint("use a smaller pooling window, or run with `--device cpu`"))
}

/// `y`: the maxima over each window of `rectifier(x + bias)`, and where they came from. Input and output have the same
/// batch, channels and layout, and each at most 2^32 - 1 elements; [`check`] accepts the pool.
#[derive(Clone, Copy, Debug)]
pub struct MaxPool2dForward {
    pub element: Element,
    pub input: Maps,
    pub output: Maps,
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
    pub input: Maps,
    pub output: Maps,
    pub pool: MaxPool2d,
    pub rectifier: Rectifier,
    pub dy: Slice,
    /// A second gradient of y, which is added, and the sum rounded to the element type.
    pub dy_other: Option<Slice>,
    /// What the forward pass wrote.
    pub index: Slice,
    /// Needed where there is a rectifier.
    pub y: Option<Slice>,
    /// Another slice than the gradients of y.
    pub dx: Slice,
}

impl MaxPool2dForward {
    /// One launch.
    pub fn launches(&self) -> Vec<Launch> {
        let windows = Windows { input: self.input, output: self.output, pool: self.pool };
        let pairs = windows.outputs_per_thread(self.element);
        let per_thread = pairs.unwrap_or_else(|| windows.channels_per_thread(self.element));
        let count = self.output.count() / per_thread;
        let mut args = vec![
            Arg::Read(self.x),
            self.bias.map_or(Arg::Null, Arg::Read),
            Arg::Write(self.y),
            Arg::Write(self.index),
            Arg::I32(self.rectifier as i32),
            int(per_thread),
            Arg::I64(count as i64),
        ];
        if pairs.is_none() {
            args.extend(windows.sizes());
            return vec![launch(self.element, "forward", count, args)];
        }
        let Maps { channels, height, .. } = self.input;
        args.extend([channels, height, self.output.height, self.output.width].map(int));
        vec![launch(self.element, "forward_2x2", count, args)]
    }
}

impl MaxPool2dBackward {
    /// One launch.
    pub fn launches(&self) -> Vec<Launch> {
        let windows = Windows { input: self.input, output: self.output, pool: self.pool };
        // Rows that no window reaches have to be zeroed, which the kernel for pairs does not.
        let pairs = windows.outputs_per_thread(self.element).filter(|_| self.input.height == 2 * self.output.height);
        let per_thread = pairs.unwrap_or_else(|| windows.channels_per_thread(self.element));
        let threads = if pairs.is_some() { self.output.count() } else { self.input.count() } / per_thread;
        let y = if self.rectifier == Rectifier::Identity { None } else { self.y };
        let mut args = vec![
            Arg::Read(self.dy),
            self.dy_other.map_or(Arg::Null, Arg::Read),
            Arg::Read(self.index),
            y.map_or(Arg::Null, Arg::Read),
            Arg::Write(self.dx),
            Arg::I32(self.rectifier as i32),
            int(per_thread),
            Arg::I64(threads as i64),
        ];
        if pairs.is_none() {
            args.extend(windows.sizes());
            return vec![launch(self.element, "backward", threads, args)];
        }
        args.push(int(self.output.width));
        vec![launch(self.element, "backward_2x2", threads, args)]
    }
}

/// The sizes that decide which kernel it is.
#[derive(Clone, Copy)]
struct Windows {
    input: Maps,
    output: Maps,
    pool: MaxPool2d,
}

impl Windows {
    /// Neighbours along a row that a thread of the kernels for 2 x 2 windows side by side makes; `None`: these kernels are
    /// not for this pool.
    fn outputs_per_thread(&self, element: Element) -> Option<usize> {
        let fits = self.pool == MaxPool2d::square(2)
            && self.input.layout == Layout::Nchw
            && self.input.width == 2 * self.output.width;
        // The inputs of a thread are 16 bytes of a row, or fewer.
        let most = 8 / element.bytes();
        let divides = |outputs: &usize| self.output.width.is_multiple_of(*outputs);
        if fits { [4, 2, 1].into_iter().filter(|outputs| *outputs <= most).find(divides) } else { None }
    }

    /// Channels of a thread of the general kernels.
    fn channels_per_thread(&self, element: Element) -> usize {
        let pack = 16 / element.bytes();
        let packed = self.input.layout == Layout::Nhwc && self.input.channels.is_multiple_of(pack);
        if packed { pack } else { 1 }
    }

    fn sizes(&self) -> [Arg; 12] {
        let Maps { channels, height, width, layout, .. } = self.input;
        let MaxPool2d { kernel, stride, padding: Padding { top, left, .. } } = self.pool;
        let out = (self.output.height, self.output.width);
        let nhwc = usize::from(layout == Layout::Nhwc);
        [channels, height, width, out.0, out.1, kernel.0, kernel.1, stride.0, stride.1, top, left, nhwc].map(int)
    }
}

fn launch(element: Element, name: &'static str, threads: usize, args: Vec<Arg>) -> Launch {
    let kernel = Kernel { operator: "max_pool2d", name, element };
    let blocks = threads.div_ceil(THREADS) as u32;
    Launch { kernel, grid: [blocks, 1, 1], block: [THREADS as u32, 1, 1], shared_bytes: 0, args }
}

fn int(size: usize) -> Arg {
    Arg::I32(size as i32)
}
