//! The sizes of a fully connected layer.

use crate::engine::cpu::blocking::{Blocking, Factors};

/// Batch, features in, features out.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    pub batch: usize,
    pub features: usize,
    pub outputs: usize,
    pub blocking: Blocking,
}

impl Sizes {
    /// What products round their factors to.
    pub fn factors(self) -> Factors {
        self.blocking.factors(self.batch)
    }
}
