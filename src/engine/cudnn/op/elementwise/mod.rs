//! Elementwise operators, and copies into another order or another window.

#[cfg(test)]
mod tests;

use super::grid::{in_and_out, int, kind, line, packs};
use crate::engine::cpu::op::activation::Rectifier;
use crate::engine::cudnn::call::{Arg, Kernel, Launch, Slice};
use crate::engine::cudnn::element::Element;
use crate::engine::cudnn::feature_maps::FeatureMaps;
use crate::network::Padding;
use crate::settings::Layout;

fn kernel(name: &'static str, element: Element) -> Kernel {
    Kernel { operator: "elementwise", name, element }
}

/// y = a + b; `y` may be `a`, or `b`.
pub fn add(element: Element, a: Slice, b: Slice, y: Slice) -> Launch {
    let operand = |slice| in_and_out(slice, y).0;
    let result = if y == a || y == b { Arg::Update(y) } else { Arg::Write(y) };
    let count = y.bytes / element.bytes();
    let args = vec![operand(a), operand(b), result, Arg::I64(count as i64)];
    line(kernel("add", element), packs(element, count), args)
}

/// y = rectifier(x); `y` may be `x`.
pub fn rectify(element: Element, rectifier: Rectifier, x: Slice, y: Slice) -> Launch {
    let ((from, to), count) = (in_and_out(x, y), y.bytes / element.bytes());
    let args = vec![from, to, kind(rectifier), Arg::I64(count as i64)];
    line(kernel("rectify_forward", element), packs(element, count), args)
}

/// dx = dy where the output `y` shows that a gradient passes, and 0 elsewhere; `dx` may be `dy`.
pub fn rectify_backward(element: Element, rectifier: Rectifier, y: Slice, dy: Slice, dx: Slice) -> Launch {
    let ((from, to), count) = (in_and_out(dy, dx), dx.bytes / element.bytes());
    let args = vec![from, Arg::Read(y), to, kind(rectifier), Arg::I64(count as i64)];
    line(kernel("rectify_backward", element), packs(element, count), args)
}

/// Zeroes each element with probability `rate` and scales the others by 1 / (1 - rate): forward of `x`, and backward of a
/// gradient. `y` may be `x`. The mask is that of the CPU engine, a function of `seed`, `layer`, the step and the
/// element's index in N x C x H x W.
#[derive(Clone, Copy, Debug)]
pub struct Dropout {
    pub element: Element,
    pub maps: FeatureMaps,
    pub x: Slice,
    pub y: Slice,
    /// At least 0, and below 1.
    pub rate: f64,
    pub seed: u64,
    pub layer: u64,
    /// One u64: the number of this step.
    pub step: Slice,
}

impl Dropout {
    pub fn launch(&self) -> Launch {
        let Self { element, maps, x, y, rate, seed, layer, step } = *self;
        let (from, to) = in_and_out(x, y);
        // As engine/cpu/op/dropout/cpu.rs: 53 random bits are compared.
        let threshold = (rate * (1u64 << 53) as f64) as u64;
        let channels_last = maps.layout == Layout::Nhwc && maps.positions() > 1;
        let args = vec![
            from,
            to,
            Arg::I64(maps.count() as i64),
            int(maps.channels),
            int(maps.positions()),
            Arg::I32(channels_last.into()),
            Arg::U64(seed),
            Arg::U64(layer),
            Arg::Read(step),
            Arg::U64(threshold),
            Arg::F32((1.0 / (1.0 - rate)) as f32),
        ];
        line(kernel("dropout", element), packs(element, maps.count()), args)
    }
}

/// `y`: the feature maps `x` in the other layout.
pub fn transpose(element: Element, from: FeatureMaps, x: Slice, y: Slice) -> Launch {
    let (rows, columns) = match from.layout {
        Layout::Nchw => (from.channels, from.positions()),
        Layout::Nhwc => (from.positions(), from.channels),
    };
    let (down, across) = (rows.div_ceil(32), columns.div_ceil(32));
    let [rows, columns, tiles_down, tiles_across] = [rows, columns, down, across].map(int);
    let args = vec![Arg::Read(x), Arg::Write(y), rows, columns, tiles_down, tiles_across];
    let grid = [(from.batch * down * across) as u32, 1, 1];
    Launch { kernel: kernel("transpose", element), grid, block: [32, 8, 1], shared_bytes: 0, args }
}

/// The size of feature maps with their padding.
pub fn padded(maps: FeatureMaps, Padding { top, bottom, left, right }: Padding) -> FeatureMaps {
    FeatureMaps { height: maps.height + top + bottom, width: maps.width + left + right, ..maps }
}

/// `y`: the feature maps `x` of that size, with zeros around them. [`crop`] is its gradient.
pub fn pad(element: Element, maps: FeatureMaps, padding: Padding, x: Slice, y: Slice) -> Launch {
    let moved = [padding.top, padding.left].map(|by| -(by as i32));
    window(element, [(x, maps), (y, padded(maps, padding))], moved)
}

/// `y`: feature maps of that size, taken out of the padded ones in `x`.
pub fn crop(element: Element, maps: FeatureMaps, padding: Padding, x: Slice, y: Slice) -> Launch {
    let moved = [padding.top, padding.left].map(|by| by as i32);
    window(element, [(x, padded(maps, padding)), (y, maps)], moved)
}

/// Rows of the second feature maps from rows of the first that lie `down` below and `right` of them.
fn window(element: Element, [(x, input), (y, output)]: [(Slice, FeatureMaps); 2], [down, right]: [i32; 2]) -> Launch {
    // A row in NHWC is contiguous as in NCHW, and a shift to the right is one by whole pixels of all channels.
    let (planes, inner) = match input.layout {
        Layout::Nchw => (input.batch * input.channels, 1),
        Layout::Nhwc => (input.batch, input.channels),
    };
    let pack = 16 / element.bytes();
    let packed = inner % pack == 0;
    let inner = if packed { inner / pack } else { inner };
    let (rows, length) = (planes * output.height, output.width * inner);
    Launch {
        kernel: kernel("window", element),
        grid: [rows.div_ceil(8) as u32, length.div_ceil(128) as u32, 1],
        block: [32, 8, 1],
        shared_bytes: 0,
        args: vec![
            Arg::Read(x),
            Arg::Write(y),
            Arg::I64(rows as i64),
            int(input.height),
            int(output.height),
            int(input.width * inner),
            int(length),
            Arg::I32(down),
            Arg::I32(right * inner as i32),
            Arg::I32(packed.into()),
        ],
    }
}
