//! The operands from which a convolution or a fully connected layer computes its outputs.

use super::activation::Rectifier;
use super::scalar::Scalar;

/// The filter and the bias of each output (channel), and the rectifier that is applied after both.
#[derive(Clone, Copy)]
pub struct Filters<'a, T> {
    pub weight: &'a [T],
    pub bias: Option<&'a [T]>,
    pub rectifier: Rectifier,
}

impl<'a, T: Scalar> Filters<'a, T> {
    /// Without bias and rectifier.
    pub fn plain(weight: &'a [T]) -> Self {
        Self { weight, bias: None, rectifier: Rectifier::Identity }
    }

    pub fn bias(&self, output: usize) -> T {
        self.bias.map_or(T::ZERO, |bias| bias[output])
    }
}
