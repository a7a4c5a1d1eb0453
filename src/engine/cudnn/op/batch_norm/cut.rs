//! How the work of batch norm is divided among blocks and threads.

use crate::engine::cudnn::call::Arg;
use crate::engine::cudnn::element::Element;
use crate::engine::cudnn::feature_maps::FeatureMaps;
use crate::settings::Layout;

/// Numbers of blocks for the largest GPUs (132 multiprocessors of 2048 threads): blocks of 256 threads fill them twice,
/// blocks of 512 threads half. They are few enough that reading the partial sums stays cheap.
const PLANE_BLOCKS: usize = 2112;
const ROW_BLOCKS: usize = 264;
const PLANE_THREADS: usize = 256;
const ROW_THREADS: usize = 512;
const HELD_PLANE_THREADS: usize = 1024;
const HELD_ROW_THREADS: usize = 512;
/// Bundles that a thread keeps in registers; the kernels have the same number.
const HELD_IN_ROWS: usize = 8;
/// A block has at least this many values of a channel (planes), or rows for each thread.
const LEAST_VALUES: usize = 8192;
const LEAST_ROWS: usize = 4;

/// The layout of a channel's values, and whether one block has them all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelLayout {
    /// NCHW; a block keeps a channel's values in registers, and one launch computes everything.
    HeldPlanes,
    /// NCHW; `splits` blocks have `per` bundles each.
    Planes { per: usize, splits: usize },
    /// NHWC and flat features; a block keeps all rows of `lanes` bundles of channels.
    HeldRows { lanes: usize },
    /// NHWC and flat features; `splits` blocks have `per` rows each.
    Rows { per: usize, splits: usize, lanes: usize },
}

/// The cut for one batch of feature maps.
#[derive(Clone, Copy, Debug)]
pub struct Cut {
    pub kind: ChannelLayout,
    /// Threads of a block.
    pub threads: usize,
    /// Elements that a thread moves at once.
    pub width: usize,
    maps: FeatureMaps,
}

impl Cut {
    /// The cut for these sizes.
    pub fn new(element: Element, maps: FeatureMaps) -> Self {
        match maps.layout {
            Layout::Nchw if maps.positions() > 1 => Self::planes(element, maps),
            _ => Self::rows(element, maps),
        }
    }

    fn planes(element: Element, maps: FeatureMaps) -> Self {
        let pack = 16 / element.bytes();
        let width = [pack, 4].into_iter().find(|width| maps.positions().is_multiple_of(*width)).unwrap_or(1);
        let units = maps.per_channel() / width;
        let held = held_in_plane(width);
        if units <= HELD_PLANE_THREADS * held {
            let threads = units.min(256).max(units.div_ceil(held)).next_multiple_of(32);
            return Self { kind: ChannelLayout::HeldPlanes, threads, maps, width };
        }
        let most = maps.per_channel().div_ceil(LEAST_VALUES);
        let per = units.div_ceil(PLANE_BLOCKS.div_ceil(maps.channels).min(most));
        Self { kind: ChannelLayout::Planes { per, splits: units.div_ceil(per) }, threads: PLANE_THREADS, maps, width }
    }

    fn rows(element: Element, maps: FeatureMaps) -> Self {
        let width = if maps.channels.is_multiple_of(4) { 4 } else { 1 };
        let rows = maps.per_channel();
        let lanes = if width > 1 { 4 } else { 32 };
        if rows <= HELD_ROW_THREADS / lanes * HELD_IN_ROWS {
            let threads = (rows * lanes).next_multiple_of(32).min(HELD_ROW_THREADS);
            return Self { kind: ChannelLayout::HeldRows { lanes }, threads, maps, width };
        }
        // 128 contiguous bytes, which is a cache line.
        let lanes = if width > 1 { 32 / element.bytes() } else { 32 };
        let tiles = maps.channels.div_ceil(lanes * width);
        let most = rows.div_ceil(ROW_THREADS / lanes * LEAST_ROWS);
        let per = rows.div_ceil((ROW_BLOCKS / tiles).clamp(1, most));
        Self { kind: ChannelLayout::Rows { per, splits: rows.div_ceil(per), lanes }, threads: ROW_THREADS, maps, width }
    }

    /// Two sums for each channel and split.
    pub fn partial_bytes(&self) -> usize {
        let (ChannelLayout::Planes { splits, .. } | ChannelLayout::Rows { splits, .. }) = self.kind else { return 0 };
        2 * 4 * self.maps.channels * splits
    }

    /// Blocks along x, y, z.
    pub fn grid(&self) -> [u32; 3] {
        let channels = self.maps.channels;
        match self.kind {
            ChannelLayout::HeldPlanes => [channels as u32, 1, 1],
            ChannelLayout::Planes { splits, .. } => [(channels * splits) as u32, 1, 1],
            ChannelLayout::HeldRows { lanes } => [channels.div_ceil(lanes * self.width) as u32, 1, 1],
            ChannelLayout::Rows { splits, lanes, .. } => {
                [channels.div_ceil(lanes * self.width) as u32, splits as u32, 1]
            }
        }
    }

    /// The kernels' last arguments.
    pub fn sizes(&self) -> Vec<Arg> {
        let FeatureMaps { channels, .. } = self.maps;
        let (positions, rows) = (self.maps.positions(), self.maps.per_channel());
        let units = rows / self.width;
        let sizes = match self.kind {
            ChannelLayout::HeldPlanes => vec![channels, positions, units],
            ChannelLayout::Planes { per, splits } => vec![channels, positions, units, per, splits],
            ChannelLayout::HeldRows { lanes } => vec![channels, rows, lanes],
            ChannelLayout::Rows { per, lanes, .. } => vec![channels, rows, per, lanes],
        };
        sizes.into_iter().chain([self.width]).map(|size| Arg::I32(size as i32)).collect()
    }
}

/// Bundles that a thread keeps in registers on planes.
fn held_in_plane(width: usize) -> usize {
    if width == 8 { 2 } else { 4 }
}
