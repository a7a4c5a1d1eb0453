//! The mask of dropout, which depends only on the seed and the position and is the same for every engine.

use crate::random::{GOLDEN, Purpose, Stream, mix};

/// Selects the dropout masks of one step.
#[derive(Clone, Copy, Debug)]
pub struct Masks {
    pub seed: u64,
    pub step: u64,
}

impl Masks {
    /// The mask of layer `index`.
    pub fn of(self, index: usize, rate: f64) -> Mask {
        Mask::new(rate, Stream::new(self.seed, Purpose::Dropout, [index as u64, self.step]).key())
    }
}

/// Which elements stay, and the factor by which they are scaled.
#[derive(Clone, Copy, Debug)]
pub struct Mask {
    /// An element stays where its random 53-bit number is not below this.
    threshold: u64,
    /// The factor of the elements that stay.
    pub scale: f64,
    seed: u64,
}

impl Mask {
    pub fn new(rate: f64, seed: u64) -> Self {
        Self { threshold: (rate * (1u64 << 53) as f64) as u64, scale: 1.0 / (1.0 - rate), seed: mix(seed) }
    }

    #[inline(always)]
    pub fn keeps(&self, index: usize) -> bool {
        mix(self.seed.wrapping_add((index as u64).wrapping_mul(GOLDEN))) >> 11 >= self.threshold
    }
}
