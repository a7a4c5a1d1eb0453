//! How the windows of a convolution or a pooling lie along the height or the width of a map.

use crate::network::{Extent, Padding};

/// The windows along one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlidingWindow {
    /// Elements of the map, without padding.
    pub length: usize,
    pub kernel: usize,
    pub stride: usize,
    /// Padding in front of the first element and after the last.
    pub before: usize,
    pub after: usize,
}

impl SlidingWindow {
    /// Along the height, and along the width.
    pub fn both(map: Extent, kernel: Extent, stride: Extent, around: Padding) -> [Self; 2] {
        let Padding { top, bottom, left, right } = around;
        [
            Self { length: map.height, kernel: kernel.height, stride: stride.height, before: top, after: bottom },
            Self { length: map.width, kernel: kernel.width, stride: stride.width, before: left, after: right },
        ]
    }

    pub fn padded(self) -> usize {
        self.before + self.length + self.after
    }

    pub fn outputs(self) -> usize {
        self.padded().saturating_sub(self.kernel) / self.stride + 1
    }

    /// The last elements of the padded dimension, which no window reads.
    pub fn unread(self) -> usize {
        self.padded().saturating_sub((self.outputs() - 1) * self.stride + self.kernel)
    }

    /// The place of element `offset` of each window. A place in the padding is replaced by the nearest element of the
    /// map, which lies in the same window and does not change its maximum.
    pub fn places(self, offset: usize) -> Vec<u32> {
        let place = |output: usize| (output * self.stride + offset).saturating_sub(self.before).min(self.length - 1);
        (0..self.outputs()).map(|output| place(output) as u32).collect()
    }
}
