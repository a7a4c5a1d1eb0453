//! Where some channels of a batch lie in memory.

use std::ops::Range;

/// The planes of some neighbouring channels, image by image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Channels of an image there.
    pub all: usize,
    /// Which of them.
    pub channels: Range<usize>,
}

impl Place {
    /// Of the same channels in room for them alone.
    pub fn alone(&self) -> Self {
        let count = self.channels.len();
        Self { all: count, channels: 0..count }
    }

    /// The number of the plane of a channel, counted from the first of them.
    #[inline(always)]
    pub fn plane(&self, image: usize, channel: usize) -> usize {
        image * self.all + self.channels.start + channel
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Channels 4 and 5 of 7: in image 2 planes 18 and 19; alone, two for an image, 4 and 5.
    #[test]
    fn channels_keep_their_order_in_room_of_their_own() {
        let place = Place { all: 7, channels: 4..6 };
        assert_eq!([place.plane(2, 0), place.plane(2, 1)], [18, 19]);
        assert_eq!([place.alone().plane(2, 0), place.alone().plane(2, 1)], [4, 5]);
    }
}
