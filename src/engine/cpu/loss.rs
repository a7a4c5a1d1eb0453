//! The loss of a batch, and its gradient.

use super::op::scalar::Scalar;
use super::op::{binary_cross_entropy, mean_squared_error, softmax_cross_entropy};
use crate::settings::Loss;

/// The loss of `batch` examples: `output` and `targets` have one length.
pub fn loss<T: Scalar>(loss: Loss, output: &[T], targets: &[T], batch: usize) -> T {
    match loss {
        Loss::CategoricalCrossEntropy => softmax_cross_entropy::forward(output, targets, output.len() / batch),
        Loss::MeanSquaredError => mean_squared_error::forward(output, targets),
        Loss::BinaryCrossEntropy => binary_cross_entropy::forward(output, targets),
    }
}

/// Its gradient, as long as `output`.
pub fn loss_gradient<T: Scalar>(loss: Loss, output: &[T], targets: &[T], batch: usize, dx: &mut [T]) {
    match loss {
        Loss::CategoricalCrossEntropy => softmax_cross_entropy::backward(output, targets, output.len() / batch, dx),
        Loss::MeanSquaredError => mean_squared_error::backward(output, targets, dx),
        Loss::BinaryCrossEntropy => binary_cross_entropy::backward(output, targets, dx),
    }
}
