//! The sizes of a fully connected layer.

use super::narrow;
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

    /// Few features and outputs on many examples, which are processed in blocks.
    pub fn is_narrow(self) -> bool {
        narrow::suits(self)
    }
}
