//! Where some channels of a batch lie in memory.

use std::ops::Range;

/// The planes of some neighbouring channels, image by image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelPlanes {
    /// Channels of an image in this memory.
    pub all: usize,
    /// Which of these channels are meant.
    pub channels: Range<usize>,
}

impl ChannelPlanes {
    /// The place of the same channels in memory that holds only them.
    pub fn alone(&self) -> Self {
        let count = self.channels.len();
        Self { all: count, channels: 0..count }
    }

    /// The number of a channel's plane; `channel` counts from the first of the place's channels.
    #[inline(always)]
    pub fn plane(&self, image: usize, channel: usize) -> usize {
        image * self.all + self.channels.start + channel
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Channels 4 and 5 of 7: in image 2 they are planes 18 and 19; in memory of their own, with two planes for each
    // image, 4 and 5.
    #[test]
    fn channels_keep_their_order_in_room_of_their_own() {
        let place = ChannelPlanes { all: 7, channels: 4..6 };
        assert_eq!([place.plane(2, 0), place.plane(2, 1)], [18, 19]);
        assert_eq!([place.alone().plane(2, 0), place.alone().plane(2, 1)], [4, 5]);
    }
}
