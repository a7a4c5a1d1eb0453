//! The sizes of a fully connected layer.

use super::narrow;
use crate::engine::cpu::blocking::Blocking;

/// Batch, features in, features out.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    pub batch: usize,
    pub features: usize,
    pub outputs: usize,
    pub blocking: Blocking,
}

impl Sizes {
    /// Few features and outputs on many examples, which go by in blocks.
    pub fn is_narrow(self) -> bool {
        narrow::suits(self)
    }
}
