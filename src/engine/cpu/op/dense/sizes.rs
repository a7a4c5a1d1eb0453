//! The sizes of a fully connected layer.

/// Batch, features in, features out.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    pub batch: usize,
    pub features: usize,
    pub outputs: usize,
}
