//! The size of a batch of feature maps, and where each element of it lies.

use crate::error::{Error, Result};
use crate::network::{Extent, Shape};
use crate::settings::Layout;

/// A batch of feature maps: N x C x H x W numbers, in the order that `layout` says. Flat features are maps of 1 x 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FeatureMaps {
    pub batch: usize,
    pub channels: usize,
    pub height: usize,
    pub width: usize,
    pub layout: Layout,
}

/// The kernels' loops run at most 2112 past the last position.
const MOST: usize = (1 << 31) - 4096;

impl FeatureMaps {
    /// A batch of examples of one shape.
    pub fn new(batch: usize, shape: Shape, layout: Layout) -> Self {
        let (channels, Extent { height, width }) = (shape.channels(), shape.extent());
        Self { batch, channels, height, width, layout }
    }

    /// Whether the kernels' indices suffice: 31 bits for a position within one example and for one among all values of
    /// a channel, with room for the stride of a loop past the last.
    ///
    /// # Errors
    /// [`crate::error::Kind::Engine`] where either is more than 2^31 - 4096.
    pub fn check(&self) -> Result<()> {
        let Self { batch, channels, height, width, .. } = *self;
        for (sizes, within, smaller) in [
            ([channels, height, width], "example", "smaller feature maps"),
            ([batch, height, width], "channel", "a smaller batch"),
        ] {
            let count = sizes.iter().try_fold(1_usize, |count, size| count.checked_mul(*size));
            if count.is_none_or(|count| count > MOST) {
                let [first, height, width] = sizes;
                let what = format!(
                    "the GPU engine counts to 2^31 - 4096 in one {within}, which has {first} x {height} x {width}"
                );
                return Err(Error::engine(what).hint(format!("use {smaller}, or run with `--device cpu`")));
            }
        }
        Ok(())
    }

    /// H x W.
    pub fn positions(&self) -> usize {
        self.height * self.width
    }

    /// N x C x H x W.
    pub fn count(&self) -> usize {
        self.batch * self.channels * self.positions()
    }

    /// The number of values that share a channel: N x H x W.
    pub fn per_channel(&self) -> usize {
        self.batch * self.positions()
    }

    /// Elements between neighbours along N, C, H, W, in that order.
    pub fn strides(&self) -> [usize; 4] {
        let Self { channels, height, width, .. } = *self;
        match self.layout {
            Layout::Nchw => [channels * height * width, height * width, width, 1],
            Layout::Nhwc => [channels * height * width, 1, width * channels, channels],
        }
    }
}
