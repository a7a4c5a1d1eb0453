//! A bias for each channel followed by a rectifier, and its gradient.

#[cfg(test)]
mod tests;

use super::grid::{THREADS, int, kind, line, packs};
use crate::engine::cpu::op::activation::Rectifier;
use crate::engine::cudnn::call::{Arg, Kernel, Launch, Slice};
use crate::engine::cudnn::element::Element;
use crate::engine::cudnn::feature_maps::FeatureMaps;
use crate::settings::Layout;

/// Most blocks that a sum is split over, all channels together: twice those that run at once on the 132 multiprocessors
/// of an H200, so that the last round leaves little idle. Five blocks run on each multiprocessor, or four in the case
/// of columns in 16 bits.
fn most_blocks(element: Element, maps: FeatureMaps) -> usize {
    let at_once = if channels_last(maps) && element != Element::F32 { 4 } else { 5 };
    2 * at_once * 132
}

fn kernel(name: &'static str, element: Element) -> Kernel {
    Kernel { operator: "bias", name, element }
}

/// Whether neighbours in memory belong to neighbouring channels, which is true of flat features in either layout.
fn channels_last(maps: FeatureMaps) -> bool {
    maps.layout == Layout::Nhwc || maps.positions() == 1
}

/// xy = rectifier(xy + bias), in place; the bias is C floats.
pub fn add_and_rectify(element: Element, maps: FeatureMaps, rectifier: Rectifier, bias: Slice, xy: Slice) -> Launch {
    let args = vec![
        Arg::Update(xy),
        Arg::Read(bias),
        Arg::I64(maps.count() as i64),
        int(maps.channels),
        int(maps.positions()),
        Arg::I32(channels_last(maps).into()),
        kind(rectifier),
    ];
    line(kernel("bias_rectify", element), packs(element, maps.count()), args)
}

/// The gradient of a bias: the sum of `dy` over each channel. With a rectifier, `dy` is first set to 0, in place, where
/// the output shows that no gradient passes. A channel has fewer than 2^31 values.
#[derive(Clone, Copy, Debug)]
pub struct BiasGradient {
    pub element: Element,
    pub maps: FeatureMaps,
    pub rectifier: Rectifier,
    /// The rectifier's output; needed unless the rectifier is the identity.
    pub y: Option<Slice>,
    pub dy: Slice,
    /// C floats.
    pub dbias: Slice,
    /// [`BiasGradient::scratch_bytes`].
    pub partials: Slice,
}

/// How the work is laid out.
struct LaunchLayout {
    /// Neighbours that a thread moves at once.
    width: usize,
    /// Threads of a block along x and y.
    block: (usize, usize),
    /// Blocks along x.
    across: usize,
    /// Blocks along y: parts of each channel's sum.
    parts: usize,
}

impl LaunchLayout {
    fn new(element: Element, maps: FeatureMaps) -> Self {
        let pack = 16 / element.bytes();
        let width_for = |length: usize| [pack, 4].into_iter().find(|width| length.is_multiple_of(*width)).unwrap_or(1);
        // A part with fewer than four rounds for each thread costs more in its own sum than it saves.
        let parts = |across: usize, rounds: usize| (most_blocks(element, maps) / across).min(rounds.div_ceil(4)).max(1);
        if channels_last(maps) {
            let width = width_for(maps.channels);
            let columns = maps.channels / width;
            // As many threads across as there are columns, up to a warp; the others go along the rows.
            let x = columns.next_power_of_two().min(32);
            let y = THREADS / x;
            let across = columns.div_ceil(x);
            Self { width, block: (x, y), across, parts: parts(across, maps.per_channel().div_ceil(y)) }
        } else {
            let width = width_for(maps.positions());
            let rounds = (maps.per_channel() / width).div_ceil(THREADS);
            Self { width, block: (THREADS, 1), across: maps.channels, parts: parts(maps.channels, rounds) }
        }
    }
}

impl BiasGradient {
    /// The bytes of `partials`.
    pub fn scratch_bytes(element: Element, maps: FeatureMaps) -> usize {
        let parts = LaunchLayout::new(element, maps).parts;
        if parts == 1 { 0 } else { maps.channels * parts * 4 }
    }

    /// One launch for each part of the batch and one to sum the parts, where there are several.
    pub fn launches(&self) -> Vec<Launch> {
        let Self { element, maps, rectifier, y, dy, dbias, partials } = *self;
        let LaunchLayout { width, block, across, parts } = LaunchLayout::new(element, maps);
        let (dy, y, masked) = match y {
            Some(y) if rectifier != Rectifier::Identity => (Arg::Update(dy), Arg::Read(y), Arg::Update(dy)),
            _ => (Arg::Read(dy), Arg::Null, Arg::Null),
        };
        let sums = if parts == 1 { dbias } else { partials.part(0, Self::scratch_bytes(element, maps)) };
        let mut args = vec![dy, y, masked, Arg::Write(sums)];
        let (name, shared) = if channels_last(maps) {
            args.extend([maps.per_channel(), maps.channels, width].map(int));
            ("columns_gradient", block.0 * block.1 * width * 4)
        } else {
            args.extend([maps.batch, maps.channels, maps.positions(), width].map(int));
            ("planes_gradient", 0)
        };
        args.push(kind(rectifier));
        let first = Launch {
            kernel: kernel(name, element),
            grid: [across as u32, parts as u32, 1],
            block: [block.0 as u32, block.1 as u32, 1],
            shared_bytes: shared as u32,
            args,
        };
        if parts == 1 {
            return vec![first];
        }
        let args = vec![Arg::Read(sums), Arg::Write(dbias), int(maps.channels), int(parts)];
        vec![first, line(kernel("sum_of_parts", element), maps.channels * 32, args)]
    }
}
