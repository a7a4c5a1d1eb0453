//! The seeds of the dropout masks.

use crate::random::{Purpose, Stream};

/// Selects the dropout masks of one step.
#[derive(Clone, Copy, Debug)]
pub struct Masks {
    pub seed: u64,
    pub step: u64,
}

impl Masks {
    /// The seed of the mask of layer `index`.
    pub fn key(self, index: usize) -> u64 {
        Stream::new(self.seed, Purpose::Dropout, [index as u64, self.step]).key()
    }
}
