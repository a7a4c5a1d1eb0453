//! Depthwise convolution: a filter of its own for each channel, any padding on each of the four sides.
//!
//! Weights are C x R x S for NCHW maps and R x S x C for NHWC ones, in the element type, as are their gradients; sums are in
//! float32. Kernels of 3x3 with stride 1 or 2, and of 5x5 with stride 1, have code of their own, NHWC if the channels are
//! even in number; all others take a slower, general path.

#[cfg(test)]
mod tests;

use crate::engine::cudnn::call::{Arg, Kernel, Launch, Slice};
use crate::engine::cudnn::element::Element;
use crate::engine::cudnn::maps::Maps;
use crate::engine::settings::Layout;
use crate::network::Padding;

/// The outputs of a thread along each axis it tiles; the kernels have the same numbers.
const NHWC_TILE: usize = 4;
const NCHW_TILE: usize = 7;
const NCHW_STRIDE_2_TILE: usize = 4;
/// Channels of a thread, NHWC.
const NHWC_CHANNELS: usize = 2;
/// Threads side by side along the channels where weights' gradients are summed, NHWC.
const NHWC_LANES: usize = 16;
/// Threads of a block: of the kernels that tile, and of the general ones.
const TILE_THREADS: usize = 128;
const ANY_THREADS: usize = 256;
/// Blocks that fill the largest GPUs with partial sums.
const WEIGHT_BLOCKS: usize = 1056;
/// Outputs that a thread of the general kernel sums at least.
const LEAST_OUTPUTS: usize = 8;

/// The sizes of a depthwise convolution. Input and output have the same batch, channels and layout, and each at most
/// 2^32 - 1 elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DepthwiseConv2d {
    pub element: Element,
    pub input: Maps,
    pub output: Maps,
    /// Height, width.
    pub kernel: (usize, usize),
    pub stride: (usize, usize),
    pub padding: Padding,
}

/// y = x * w.
#[derive(Clone, Copy, Debug)]
pub struct Forward {
    pub conv: DepthwiseConv2d,
    pub x: Slice,
    pub w: Slice,
    pub y: Slice,
}

/// dx from dy and w.
#[derive(Clone, Copy, Debug)]
pub struct BackwardData {
    pub conv: DepthwiseConv2d,
    pub dy: Slice,
    pub w: Slice,
    pub dx: Slice,
}

/// dw from x and dy.
#[derive(Clone, Copy, Debug)]
pub struct BackwardWeights {
    pub conv: DepthwiseConv2d,
    pub x: Slice,
    pub dy: Slice,
    pub dw: Slice,
    /// [`DepthwiseConv2d::scratch_bytes`].
    pub partials: Slice,
}

/// Which code computes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Path {
    Three,
    ThreeStrideTwo,
    Five,
    Any,
}

/// How the weights' gradient is cut: a block has `lanes` threads side by side along the channels, and one of `splits` parts.
#[derive(Clone, Copy, Debug)]
struct Cut {
    groups: usize,
    lanes: usize,
    splits: usize,
}

impl Forward {
    /// One launch.
    pub fn launches(&self) -> Vec<Launch> {
        let (conv, args) = (&self.conv, vec![Arg::Read(self.x), Arg::Read(self.w), Arg::Write(self.y)]);
        let name = conv.path().name(["forward_3x3", "forward_3x3_stride_2", "forward_5x5", "forward_any"]);
        let tile = match conv.output.layout {
            Layout::Nchw => (NCHW_TILE, 1),
            Layout::Nhwc => (NHWC_TILE, NHWC_TILE),
        };
        vec![conv.tiled(name, conv.output, tile, args)]
    }
}

impl BackwardData {
    /// One launch.
    pub fn launches(&self) -> Vec<Launch> {
        let (conv, args) = (&self.conv, vec![Arg::Read(self.dy), Arg::Read(self.w), Arg::Write(self.dx)]);
        let path = conv.path();
        let name = path.name(["backward_3x3", "backward_3x3_stride_2", "backward_5x5", "backward_any"]);
        let tile = match (conv.input.layout, path) {
            (Layout::Nchw, Path::ThreeStrideTwo) => (NCHW_STRIDE_2_TILE, 1),
            (Layout::Nchw, _) => (NCHW_TILE, 1),
            (Layout::Nhwc, Path::ThreeStrideTwo) => (NHWC_TILE / 2, NHWC_TILE / 2),
            (Layout::Nhwc, _) => (NHWC_TILE, NHWC_TILE),
        };
        // Squares of stride x stride inputs, the first of which begins at tap 0 of an output.
        let (Padding { top, left, .. }, (down, right)) =
            (conv.padding, if path == Path::Any { (1, 1) } else { conv.stride });
        let squares = |size: usize, before: usize, stride: usize| (size + before).div_ceil(stride) - before / stride;
        let height = squares(conv.input.height, top, down);
        let width = squares(conv.input.width, left, right);
        vec![conv.tiled(name, Maps { height, width, ..conv.input }, tile, args)]
    }
}

impl BackwardWeights {
    /// Two launches: partial sums, and their sums.
    pub fn launches(&self) -> Vec<Launch> {
        let conv = &self.conv;
        let (path, cut) = (conv.path(), conv.cut());
        let name = path.name(["weights_3x3", "weights_3x3_stride_2", "weights_5x5", "weights_any"]);
        let mut args = vec![Arg::Read(self.x), Arg::Read(self.dy), Arg::Write(self.partials)];
        args.extend(conv.sizes());
        args.extend([int(cut.lanes), int(cut.splits)]);
        if path == Path::Any {
            args.extend(conv.general());
        }
        let sums = conv.launch(name, cut.groups * cut.splits, TILE_THREADS, args);
        let taps = conv.kernel.0 * conv.kernel.1;
        let mut args = vec![Arg::Read(self.partials), Arg::Write(self.dw)];
        args.extend([int(conv.input.channels), int(taps), int(cut.splits), conv.nhwc()]);
        let warps = ANY_THREADS / 32;
        let total = (taps * conv.input.channels).div_ceil(warps);
        vec![sums, conv.launch("weights_total", total, ANY_THREADS, args)]
    }
}

impl DepthwiseConv2d {
    /// Bytes of the partial sums of the weights' gradient.
    pub fn scratch_bytes(&self) -> usize {
        4 * self.kernel.0 * self.kernel.1 * self.input.channels * self.cut().splits
    }

    fn path(&self) -> Path {
        if self.input.layout == Layout::Nhwc && !self.input.channels.is_multiple_of(NHWC_CHANNELS) {
            return Path::Any;
        }
        match (self.kernel, self.stride) {
            ((3, 3), (1, 1)) => Path::Three,
            ((3, 3), (2, 2)) => Path::ThreeStrideTwo,
            ((5, 5), (1, 1)) => Path::Five,
            _ => Path::Any,
        }
    }

    fn cut(&self) -> Cut {
        let Maps { batch, channels, height, width, layout } = self.output;
        let (lanes, channels_of_block, tile) = match (self.path(), layout) {
            (Path::Any, _) => (1, 1, (1, LEAST_OUTPUTS)),
            (_, Layout::Nchw) => (1, 1, (NCHW_TILE, 1)),
            (_, Layout::Nhwc) => (NHWC_LANES, NHWC_LANES * NHWC_CHANNELS, (NHWC_TILE, NHWC_TILE)),
        };
        let groups = channels.div_ceil(channels_of_block);
        let tiles = batch * height.div_ceil(tile.0) * width.div_ceil(tile.1);
        let most = tiles.div_ceil(TILE_THREADS / lanes);
        Cut { groups, lanes, splits: (WEIGHT_BLOCKS / groups).clamp(1, most.max(1)) }
    }

    /// A launch with a thread for each tile of `maps` (for each element, on the general path).
    fn tiled(&self, name: &'static str, maps: Maps, tile: (usize, usize), mut args: Vec<Arg>) -> Launch {
        args.extend(self.sizes());
        if self.path() == Path::Any {
            args.extend(self.general());
            return self.launch(name, maps.count().div_ceil(ANY_THREADS), ANY_THREADS, args);
        }
        let channels = match maps.layout {
            Layout::Nchw => maps.channels,
            Layout::Nhwc => maps.channels / NHWC_CHANNELS,
        };
        let tiles = maps.batch * channels * maps.height.div_ceil(tile.0) * maps.width.div_ceil(tile.1);
        self.launch(name, tiles.div_ceil(TILE_THREADS), TILE_THREADS, args)
    }

    fn launch(&self, name: &'static str, blocks: usize, threads: usize, args: Vec<Arg>) -> Launch {
        let kernel = Kernel { operator: "depthwise_conv2d", name, element: self.element };
        Launch { kernel, grid: [blocks as u32, 1, 1], block: [threads as u32, 1, 1], shared_bytes: 0, args }
    }

    fn nhwc(&self) -> Arg {
        int(usize::from(self.input.layout == Layout::Nhwc))
    }

    fn sizes(&self) -> Vec<Arg> {
        let Maps { batch, channels, height, width, .. } = self.input;
        let Padding { top, left, .. } = self.padding;
        let sizes = [batch, channels, height, width, self.output.height, self.output.width, top, left];
        sizes.into_iter().map(int).chain([self.nhwc()]).collect()
    }

    /// What the general kernels take besides.
    fn general(&self) -> [Arg; 4] {
        [self.kernel.0, self.kernel.1, self.stride.0, self.stride.1].map(int)
    }
}

impl Path {
    fn name(self, names: [&'static str; 4]) -> &'static str {
        names[self as usize]
    }
}

fn int(size: usize) -> Arg {
    Arg::I32(size as i32)
}
