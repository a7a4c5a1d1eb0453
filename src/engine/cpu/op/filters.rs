//! What the outputs of a convolution or of a fully connected layer are made with.

use super::activation::Rectifier;
use super::scalar::Scalar;

/// For each output (channel) its filter and its bias, and the rectifier after both.
#[derive(Clone, Copy)]
pub struct Filters<'a, T> {
    pub weight: &'a [T],
    pub bias: Option<&'a [T]>,
    pub rectifier: Rectifier,
}

impl<'a, T: Scalar> Filters<'a, T> {
    /// With nothing after the products.
    pub fn plain(weight: &'a [T]) -> Self {
        Self { weight, bias: None, rectifier: Rectifier::Identity }
    }

    pub fn bias(&self, output: usize) -> T {
        self.bias.map_or(T::ZERO, |bias| bias[output])
    }
}
