//! The losses, means over the batch.

use super::array::Array;
use crate::settings::Loss;

/// The loss, and the gradient of the network's output.
pub fn loss(loss: Loss, output: &Array, targets: &Array) -> (f64, Array) {
    match loss {
        Loss::CategoricalCrossEntropy => cross_entropy(output, targets),
        Loss::MeanSquaredError => squared_error(output, targets),
        Loss::BinaryCrossEntropy => binary_cross_entropy(output, targets),
    }
}

/// `-sum(t ln softmax(x))`, whose gradient is `softmax(x) - t` where the targets sum to 1. The largest x is subtracted
/// first, so that no exponential overflows; the result stays the same.
fn cross_entropy(x: &Array, targets: &Array) -> (f64, Array) {
    let (mut total, mut dx, classes) = (0.0, x.zeros_like(), x.channels);
    for n in 0..x.batch {
        let row = n * classes..(n + 1) * classes;
        let largest = x.values[row.clone()].iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = x.values[row.clone()].iter().map(|x| (x - largest).exp()).sum();
        let mass: f64 = targets.values[row.clone()].iter().sum();
        for at in row {
            let log_probability = x.values[at] - largest - sum.ln();
            if targets.values[at] != 0.0 {
                total -= targets.values[at] * log_probability;
            }
            dx.values[at] = (mass * log_probability.exp() - targets.values[at]) / x.batch as f64;
        }
    }
    (total / x.batch as f64, dx)
}

/// The mean of `(x - t)^2` over batch and features.
fn squared_error(x: &Array, targets: &Array) -> (f64, Array) {
    let (mut total, mut dx, count) = (0.0, x.zeros_like(), x.values.len() as f64);
    for (at, (x, t)) in x.values.iter().zip(&targets.values).enumerate() {
        total += (x - t).powi(2);
        dx.values[at] = 2.0 * (x - t) / count;
    }
    (total / count, dx)
}

/// The mean of `-t ln s(x) - (1 - t) ln(1 - s(x))` over batch and outputs, with the logistic function s; `1 - s(x)` is `s(-x)`.
fn binary_cross_entropy(x: &Array, targets: &Array) -> (f64, Array) {
    let (mut total, mut dx, count) = (0.0, x.zeros_like(), x.values.len() as f64);
    // ln s(x), which is x itself for large -x.
    let log_logistic = |x: f64| x.min(0.0) - (-x.abs()).exp().ln_1p();
    for (at, (&x, &t)) in x.values.iter().zip(&targets.values).enumerate() {
        total -= t * log_logistic(x) + (1.0 - t) * log_logistic(-x);
        dx.values[at] = (log_logistic(x).exp() - t) / count;
    }
    (total / count, dx)
}
