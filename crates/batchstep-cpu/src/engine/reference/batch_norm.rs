//! Batch normalisation in training: Ioffe and Szegedy, <https://arxiv.org/abs/1502.03167>, algorithm 1.

use super::array::Array;
use crate::network::BatchNorm;

/// `y = gamma (x - mean) / sqrt(variance + epsilon) + beta`, with the mean and the biased variance of each channel.
pub fn forward(x: &Array, gamma: &[f64], beta: &[f64], norm: &BatchNorm) -> Array {
    let mut y = normalised(x, norm).0;
    y.for_each_plane(|_, c, y| y.iter_mut().for_each(|y| *y = gamma[c] * *y + beta[c]));
    y
}

/// The gradients of `x`, `gamma` and `beta`; with z the normalised x, and means over the channel:
/// `dx = gamma / sqrt(variance + epsilon) (dy - mean(dy) - z mean(dy z))`.
pub fn backward(x: &Array, gamma: &[f64], dy: &Array, norm: &BatchNorm) -> (Array, Vec<f64>, Vec<f64>) {
    let (z, deviations) = normalised(x, norm);
    let count = (x.batch * x.height * x.width) as f64;
    let sum = |term: &dyn Fn(usize) -> f64| -> Vec<f64> {
        let size = x.height * x.width;
        let of_channel = |c| (0..x.batch).flat_map(move |n| (0..size).map(move |at| (n * x.channels + c) * size + at));
        (0..x.channels).map(|c| of_channel(c).map(term).sum()).collect()
    };
    let d_gamma = sum(&|at| dy.values[at] * z.values[at]);
    let d_beta = sum(&|at| dy.values[at]);
    let mut dx = x.zeros_like();
    dx.for_each_plane(|n, c, dx| {
        for (dx, (dy, z)) in dx.iter_mut().zip(dy.plane(n, c).iter().zip(z.plane(n, c))) {
            *dx = gamma[c] / deviations[c] * (dy - d_beta[c] / count - z * d_gamma[c] / count);
        }
    });
    (dx, d_gamma, d_beta)
}

/// `(x - mean) / sqrt(variance + epsilon)`, and the value of this root for each channel.
fn normalised(x: &Array, norm: &BatchNorm) -> (Array, Vec<f64>) {
    let count = (x.batch * x.height * x.width) as f64;
    let mean_of = |c: usize, term: &dyn Fn(f64) -> f64| {
        (0..x.batch).map(|n| x.plane(n, c).iter().map(|x| term(*x)).sum::<f64>()).sum::<f64>() / count
    };
    let means: Vec<f64> = (0..x.channels).map(|c| mean_of(c, &|x| x)).collect();
    let variance = |c: usize| mean_of(c, &|x| (x - means[c]).powi(2));
    let deviations: Vec<f64> = (0..x.channels).map(|c| (variance(c) + norm.epsilon).sqrt()).collect();
    let mut z = x.clone();
    z.for_each_plane(|_, c, z| z.iter_mut().for_each(|z| *z = (*z - means[c]) / deviations[c]));
    (z, deviations)
}
