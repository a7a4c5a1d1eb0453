//! The mean over height and width, and its gradient.

#[cfg(test)]
mod tests;

use super::grid::{THREADS, int, line};
use crate::engine::cudnn::call::{Arg, Kernel, Launch, Slice};
use crate::engine::cudnn::element::Element;
use crate::engine::cudnn::feature_maps::FeatureMaps;
use crate::settings::Layout;

/// Bundles of channels of a block, NHWC; the kernel has the same number.
const LANES: usize = 8;

/// `y` (N x C): the mean of each feature map of `x`, which has that size.
pub fn forward(element: Element, maps: FeatureMaps, x: Slice, y: Slice) -> Launch {
    let FeatureMaps { batch, channels, layout, .. } = maps;
    let positions = maps.positions();
    let mut args = vec![Arg::Read(x), Arg::Write(y)];
    let (name, blocks) = match layout {
        Layout::Nchw => {
            args.extend([Arg::I64((batch * channels) as i64), int(positions)]);
            ("forward_planes", (batch * channels).div_ceil(THREADS / 32))
        }
        Layout::Nhwc => {
            let width = width(element, channels);
            args.extend([channels, positions, width].map(int));
            ("forward_rows", batch * channels.div_ceil(LANES * width))
        }
    };
    launch(element, name, blocks, args)
}

/// `dx`, of that size: the gradient `dy` (N x C) divided equally among the positions.
pub fn backward(element: Element, maps: FeatureMaps, dy: Slice, dx: Slice) -> Launch {
    let FeatureMaps { channels, layout, .. } = maps;
    let (count, positions) = (maps.count(), maps.positions());
    let mut args = vec![Arg::Read(dy), Arg::Write(dx), Arg::I64(count as i64)];
    let (name, width) = match layout {
        Layout::Nchw => {
            args.push(int(positions));
            ("backward_planes", 16 / element.bytes())
        }
        Layout::Nhwc => {
            let width = width(element, channels);
            args.extend([channels, positions, width].map(int));
            ("backward_rows", width)
        }
    };
    launch(element, name, count.div_ceil(width * THREADS), args)
}

/// Channels that a thread moves at once, NHWC.
fn width(element: Element, channels: usize) -> usize {
    let pack = 16 / element.bytes();
    if channels.is_multiple_of(pack) { pack } else { 1 }
}

fn launch(element: Element, name: &'static str, blocks: usize, args: Vec<Arg>) -> Launch {
    line(Kernel { operator: "global_average_pool", name, element }, blocks * THREADS, args)
}
