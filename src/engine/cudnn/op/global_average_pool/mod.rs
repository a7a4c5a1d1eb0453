//! The mean over height and width, and its gradient.

#[cfg(test)]
mod tests;

use crate::engine::cudnn::call::{Arg, Kernel, Launch, Slice};
use crate::engine::cudnn::element::Element;
use crate::engine::cudnn::feature_maps::FeatureMaps;
use crate::settings::Layout;

const THREADS: usize = 256;
/// Bundles of channels of a block, NHWC; the kernel has the same number.
const LANES: usize = 8;

/// `y` (N x C): the mean of each feature map of `x`.
#[derive(Clone, Copy, Debug)]
pub struct GlobalAveragePoolForward {
    pub element: Element,
    /// The size of x.
    pub maps: FeatureMaps,
    pub x: Slice,
    pub y: Slice,
}

/// `dx`: the gradient `dy` (N x C) divided equally among the positions.
#[derive(Clone, Copy, Debug)]
pub struct GlobalAveragePoolBackward {
    pub element: Element,
    /// The size of dx.
    pub maps: FeatureMaps,
    pub dy: Slice,
    pub dx: Slice,
}

impl GlobalAveragePoolForward {
    /// One launch.
    pub fn launches(&self) -> Vec<Launch> {
        let FeatureMaps { batch, channels, layout, .. } = self.maps;
        let positions = self.maps.positions();
        let mut args = vec![Arg::Read(self.x), Arg::Write(self.y)];
        let (name, blocks) = match layout {
            Layout::Nchw => {
                args.extend([Arg::I64((batch * channels) as i64), int(positions)]);
                ("forward_planes", (batch * channels).div_ceil(THREADS / 32))
            }
            Layout::Nhwc => {
                let width = width(self.element, channels);
                args.extend([channels, positions, width].map(int));
                ("forward_rows", batch * channels.div_ceil(LANES * width))
            }
        };
        vec![launch(self.element, name, blocks, args)]
    }
}

impl GlobalAveragePoolBackward {
    /// One launch.
    pub fn launches(&self) -> Vec<Launch> {
        let FeatureMaps { channels, layout, .. } = self.maps;
        let (count, positions) = (self.maps.count(), self.maps.positions());
        let mut args = vec![Arg::Read(self.dy), Arg::Write(self.dx), Arg::I64(count as i64)];
        let (name, width) = match layout {
            Layout::Nchw => {
                args.push(int(positions));
                ("backward_planes", 16 / self.element.bytes())
            }
            Layout::Nhwc => {
                let width = width(self.element, channels);
                args.extend([channels, positions, width].map(int));
                ("backward_rows", width)
            }
        };
        vec![launch(self.element, name, count.div_ceil(width * THREADS), args)]
    }
}

/// Channels that a thread moves at once, NHWC.
fn width(element: Element, channels: usize) -> usize {
    let pack = 16 / element.bytes();
    if channels.is_multiple_of(pack) { pack } else { 1 }
}

fn launch(element: Element, name: &'static str, blocks: usize, args: Vec<Arg>) -> Launch {
    let kernel = Kernel { operator: "global_average_pool", name, element };
    Launch { kernel, grid: [blocks as u32, 1, 1], block: [THREADS as u32, 1, 1], shared_bytes: 0, args }
}

fn int(size: usize) -> Arg {
    Arg::I32(size as i32)
}
