//! Depthwise convolution: each channel has its own filter, with any padding on each of the four sides.
//!
//! Weights are C x R x S for feature maps in NCHW and R x S x C in NHWC, in the element type, as are their gradients;
//! sums are in float32. Kernels of 3x3 with stride 1 or 2, and of 5x5 with stride 1, have their own code (in NHWC only
//! for an even number of channels); all others take a slower, general path. In NCHW, 3x3 kernels with stride 1 that
//! preserve rows of even length have code that moves 2 or 4 columns at once.

#[cfg(test)]
mod tests;

use super::grid::{blocks, int};
use crate::engine::cudnn::call::{Arg, Kernel, Launch, Slice};
use crate::engine::cudnn::element::Element;
use crate::engine::cudnn::feature_maps::FeatureMaps;
use crate::error::{Error, Result};
use crate::network::{Extent, Padding};
use crate::settings::Layout;

/// The outputs of a thread along each axis of its tile; the kernels have the same numbers.
const NHWC_TILE: usize = 4;
const NCHW_TILE: usize = 7;
const NCHW_STRIDE_2_TILE: usize = 4;
/// Channels of a thread, NHWC.
const NHWC_CHANNELS: usize = 2;
/// Columns of a thread on the wide path, where the length of a row is a multiple; the kernels have the same numbers.
const WIDE_COLUMNS: [usize; 2] = [4, 2];
/// Threads along the channels where weight gradients are summed, NHWC; the kernels have the same number.
const NHWC_LANES: usize = 16;
/// Threads of a block, of the tiled kernels (which have the same number) and of the general ones.
const TILE_THREADS: usize = 128;
const ANY_THREADS: usize = 256;
/// Blocks that fill the largest GPUs with partial sums.
const WEIGHT_BLOCKS: usize = 1056;
/// Outputs that a thread of the general kernel sums at least.
const LEAST_OUTPUTS: usize = 8;

/// The sizes of a depthwise convolution. Input and output have the same batch, channels and layout, and
/// [`DepthwiseConv2d::check`] accepts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DepthwiseConv2d {
    pub element: Element,
    pub input: FeatureMaps,
    pub output: FeatureMaps,
    /// Height, width.
    pub kernel: Extent,
    pub stride: Extent,
    pub padding: Padding,
}

/// The code that computes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Path {
    Three,
    ThreeWide,
    ThreeStrideTwo,
    Five,
    Any,
}

/// How the weight gradient is divided: a block has a group of channels, and one of `splits` parts.
#[derive(Clone, Copy, Debug)]
struct WeightGradientSplit {
    groups: usize,
    splits: usize,
}

/// The area that a kernel's tiles cover, and their height and width.
#[derive(Clone, Copy)]
struct Tiles {
    maps: FeatureMaps,
    tile: Extent,
}

impl DepthwiseConv2d {
    /// y = x * w.
    pub fn forward(&self, x: Slice, w: Slice, y: Slice) -> Launch {
        let names = ["forward_3x3", "forward_3x3_wide", "forward_3x3_stride_2", "forward_5x5", "forward_any"];
        self.tiled(names, self.forward_tiles(), vec![Arg::Read(x), Arg::Read(w), Arg::Write(y)])
    }

    /// dx from dy and w.
    pub fn backward_data(&self, dy: Slice, w: Slice, dx: Slice) -> Launch {
        let names = ["backward_3x3", "backward_3x3_wide", "backward_3x3_stride_2", "backward_5x5", "backward_any"];
        self.tiled(names, self.backward_tiles(), vec![Arg::Read(dy), Arg::Read(w), Arg::Write(dx)])
    }

    /// dw from x and dy; `partials` has [`DepthwiseConv2d::scratch_bytes`]. Two launches: partial sums, and their sums.
    pub fn backward_weights(&self, x: Slice, dy: Slice, dw: Slice, partials: Slice) -> [Launch; 2] {
        let WeightGradientSplit { groups, splits } = self.cut();
        let names = ["weights_3x3", "weights_3x3_wide", "weights_3x3_stride_2", "weights_5x5", "weights_any"];
        let mut args = vec![Arg::Read(x), Arg::Read(dy), Arg::Write(partials)];
        args.extend(self.sizes());
        args.push(int(splits));
        if self.path() == Path::Any {
            args.extend(self.general());
        }
        let sums = self.launch(names[self.path() as usize], groups * splits, TILE_THREADS, args);
        let (channels, taps) = (self.input.channels, self.kernel.area());
        let args = vec![Arg::Read(partials), Arg::Write(dw), int(channels), int(taps), int(splits), self.nhwc()];
        let warps = ANY_THREADS / 32;
        [sums, self.launch("weights_total", (taps * channels).div_ceil(warps), ANY_THREADS, args)]
    }

    /// Whether the kernels' indices suffice for its tiles; [`FeatureMaps::check`] says so for its maps.
    ///
    /// # Errors
    /// [`crate::error::Kind::Engine`] if it has 2^32 tiles (on the general path, elements) or more.
    pub fn check(&self) -> Result<()> {
        if self.threads(self.forward_tiles()).max(self.threads(self.backward_tiles())) <= u32::MAX as usize {
            return Ok(());
        }
        let FeatureMaps { batch, channels, height, width, .. } = self.input;
        Err(Error::engine(format!(
            "the GPU engine's depthwise convolutions have fewer than 2^32 tiles, not feature maps of {batch} x {channels} x {height} x {width}"
        ))
        .hint("use a smaller batch or smaller feature maps, or run with `--device cpu`"))
    }

    /// Bytes of the partial sums of the weights' gradient.
    pub fn scratch_bytes(&self) -> usize {
        4 * self.kernel.area() * self.input.channels * self.cut().splits
    }

    fn path(&self) -> Path {
        if self.input.layout == Layout::Nhwc && !self.input.channels.is_multiple_of(NHWC_CHANNELS) {
            return Path::Any;
        }
        let sides = |Extent { height, width }: Extent| [height, width];
        match (sides(self.kernel), sides(self.stride)) {
            ([3, 3], [1, 1]) if self.columns() > 1 => Path::ThreeWide,
            ([3, 3], [1, 1]) => Path::Three,
            ([3, 3], [2, 2]) => Path::ThreeStrideTwo,
            ([5, 5], [1, 1]) => Path::Five,
            _ => Path::Any,
        }
    }

    /// Columns of a thread's tile on the wide path of NCHW: each output is computed from the input of its column and
    /// one on either side.
    fn columns(&self) -> usize {
        let keeps = self.padding.left == 1 && self.input.width == self.output.width;
        let divides = |columns: &usize| keeps && self.input.width.is_multiple_of(*columns);
        match self.input.layout {
            Layout::Nchw => WIDE_COLUMNS.into_iter().find(divides).unwrap_or(1),
            Layout::Nhwc => 1,
        }
    }

    fn forward_tiles(&self) -> Tiles {
        let tile = match (self.output.layout, self.path()) {
            (Layout::Nchw, Path::ThreeWide) => Extent::new(NCHW_TILE, self.columns()),
            (Layout::Nchw, _) => Extent::new(NCHW_TILE, 1),
            (Layout::Nhwc, _) => Extent::square(NHWC_TILE),
        };
        Tiles { maps: self.output, tile }
    }

    /// The tiles of the input's gradient cover squares of stride x stride inputs; the first square begins at tap 0 of
    /// an output.
    fn backward_tiles(&self) -> Tiles {
        let path = self.path();
        let tile = match (self.input.layout, path) {
            (Layout::Nchw, Path::ThreeStrideTwo) => Extent::new(NCHW_STRIDE_2_TILE, 1),
            (Layout::Nhwc, Path::ThreeStrideTwo) => Extent::square(NHWC_TILE / 2),
            _ => self.forward_tiles().tile,
        };
        let (Padding { top, left, .. }, Extent { height: down, width: right }) =
            (self.padding, if path == Path::Any { Extent::square(1) } else { self.stride });
        let squares = |size: usize, before: usize, stride: usize| (size + before).div_ceil(stride) - before / stride;
        let height = squares(self.input.height, top, down);
        let width = squares(self.input.width, left, right);
        Tiles { maps: FeatureMaps { height, width, ..self.input }, tile }
    }

    fn cut(&self) -> WeightGradientSplit {
        let Tiles { maps: FeatureMaps { batch, channels, height, width, layout }, tile } = self.forward_tiles();
        let (lanes, channels_of_block, tile) = match (self.path(), layout) {
            (Path::Any, _) => (1, 1, Extent::new(1, LEAST_OUTPUTS)),
            (_, Layout::Nchw) => (1, 1, tile),
            (_, Layout::Nhwc) => (NHWC_LANES, NHWC_LANES * NHWC_CHANNELS, tile),
        };
        let groups = channels.div_ceil(channels_of_block);
        let tiles = batch * height.div_ceil(tile.height) * width.div_ceil(tile.width);
        let most = tiles.div_ceil(TILE_THREADS / lanes);
        WeightGradientSplit { groups, splits: (WEIGHT_BLOCKS / groups).clamp(1, most.max(1)) }
    }

    /// One thread for each tile, or, on the general path, for each element.
    fn threads(&self, tiles: Tiles) -> usize {
        let Tiles { maps, tile } = tiles;
        if self.path() == Path::Any {
            return maps.count();
        }
        let channels = match maps.layout {
            Layout::Nchw => maps.channels,
            Layout::Nhwc => maps.channels / NHWC_CHANNELS,
        };
        maps.batch * channels * maps.height.div_ceil(tile.height) * maps.width.div_ceil(tile.width)
    }

    /// By the kernel of its path, of those names.
    fn tiled(&self, names: [&'static str; 5], tiles: Tiles, mut args: Vec<Arg>) -> Launch {
        args.extend(self.sizes());
        let mut block = TILE_THREADS;
        if self.path() == Path::Any {
            args.extend(self.general());
            block = ANY_THREADS;
        }
        self.launch(names[self.path() as usize], self.threads(tiles).div_ceil(block), block, args)
    }

    fn launch(&self, name: &'static str, count: usize, threads: usize, args: Vec<Arg>) -> Launch {
        blocks(Kernel { operator: "depthwise_conv2d", name, element: self.element }, count, threads, args)
    }

    fn nhwc(&self) -> Arg {
        int(usize::from(self.input.layout == Layout::Nhwc))
    }

    fn sizes(&self) -> Vec<Arg> {
        let FeatureMaps { batch, channels, height, width, .. } = self.input;
        let Padding { top, left, .. } = self.padding;
        let sizes = [batch, channels, height, width, self.output.height, self.output.width, top, left];
        sizes.into_iter().map(int).chain([self.nhwc()]).collect()
    }

    /// The further arguments of the general kernels.
    fn general(&self) -> [Arg; 4] {
        [self.kernel.height, self.kernel.width, self.stride.height, self.stride.width].map(int)
    }
}
