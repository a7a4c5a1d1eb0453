//! The sizes of a fully connected layer.

use crate::engine::cpu::blocking::Blocking;

/// Batch, features in, features out.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    pub batch: usize,
    pub features: usize,
    pub outputs: usize,
    pub blocking: Blocking,
}
