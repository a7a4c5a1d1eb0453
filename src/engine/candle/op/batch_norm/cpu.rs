//! Batch normalisation: two passes for the moments, sums in vectors within a plane and in float64 across planes.

use std::ops::Range;

use rayon::prelude::*;

use crate::engine::candle::op::parallel::{Shared, for_each_task, piece};
use crate::engine::candle::op::scalar::{Scalar, sum, vectorised};

/// A batch as batch x channels planes of `size` values.
#[derive(Clone, Copy, Debug)]
pub struct Planes {
    pub batch: usize,
    pub channels: usize,
    pub size: usize,
}

impl Planes {
    /// Values per channel.
    pub fn values(&self) -> usize {
        self.batch * self.size
    }

    fn len(&self) -> usize {
        self.channels * self.values()
    }

    /// The channels, cut into pieces for parallel work.
    fn pieces(&self) -> Vec<Range<usize>> {
        let step = piece(self.channels, self.values());
        (0..self.channels).step_by(step).map(|start| start..(start + step).min(self.channels)).collect()
    }
}

/// Mean and biased variance of each channel.
#[derive(Debug)]
pub struct Moments {
    pub mean: Vec<f64>,
    pub variance: Vec<f64>,
}

/// For each channel two sums over the batch of `term(channel, index of the value)`.
fn sums<T: Scalar>(planes: Planes, term: impl Fn(usize, usize) -> (T, T) + Sync) -> Vec<(f64, f64)> {
    let pieces: Vec<_> = planes
        .pieces()
        .into_par_iter()
        .map(|channels| {
            vectorised(
                #[inline(always)]
                || {
                    if planes.size == 1 {
                        flat_sums(planes, channels, &term)
                    } else {
                        plane_sums(planes, channels, &term)
                    }
                },
            )
        })
        .collect();
    pieces.concat()
}

#[inline(always)]
fn plane_sums<T: Scalar>(
    planes: Planes,
    channels: Range<usize>,
    term: impl Fn(usize, usize) -> (T, T),
) -> Vec<(f64, f64)> {
    let mut totals = vec![(0.0, 0.0); channels.len()];
    for (total, channel) in totals.iter_mut().zip(channels) {
        for image in 0..planes.batch {
            let start = (image * planes.channels + channel) * planes.size;
            total.0 += sum(planes.size, |i| term(channel, start + i).0).to_f64();
            total.1 += sum(planes.size, |i| term(channel, start + i).1).to_f64();
        }
    }
    totals
}

/// The same where a plane is one value: the channels are the vector.
#[inline(always)]
fn flat_sums<T: Scalar>(
    planes: Planes,
    channels: Range<usize>,
    term: impl Fn(usize, usize) -> (T, T),
) -> Vec<(f64, f64)> {
    let mut totals = vec![(0.0, 0.0); channels.len()];
    for image in 0..planes.batch {
        let start = image * planes.channels;
        for (total, channel) in totals.iter_mut().zip(channels.clone()) {
            let (first, second) = term(channel, start + channel);
            total.0 += first.to_f64();
            total.1 += second.to_f64();
        }
    }
    totals
}

/// The moments of each channel of `x`.
pub fn moments<T: Scalar>(planes: Planes, x: &[T]) -> Moments {
    let count = planes.values() as f64;
    let mean: Vec<f64> = sums(planes, |_, i| (x[i], T::ZERO)).into_iter().map(|(sum, _)| sum / count).collect();
    let centre: Vec<T> = mean.iter().map(|mean| T::from_f64(*mean)).collect();
    let squares = sums(planes, |channel, i| {
        let deviation = x[i] - centre[channel];
        (deviation * deviation, deviation)
    });
    // The second sum is what rounding of the mean left over (Chan, Golub and LeVeque, 1983, equation 1.7).
    let variance = squares.into_iter().map(|(squares, rest)| (squares - rest * rest / count) / count).collect();
    Moments { mean, variance }
}

/// Writes `value(channel, index)` to every element of a new batch.
fn map<T: Scalar>(planes: Planes, value: impl Fn(usize, usize) -> T + Sync) -> Vec<T> {
    let mut y = vec![T::ZERO; planes.len()];
    let rows = if planes.size == 1 { planes.batch } else { planes.batch * planes.channels };
    let row = planes.len() / rows;
    let step = piece(rows, row);
    let shared = Shared::new(&mut y);
    for_each_task(
        rows.div_ceil(step),
        || (),
        |(), task| {
            vectorised(
                #[inline(always)]
                || {
                    for r in task * step..((task + 1) * step).min(rows) {
                        // SAFETY: this row belongs to this task.
                        let y = unsafe { shared.slice(r * row, row) };
                        for (i, y) in y.iter_mut().enumerate() {
                            *y = value(if planes.size == 1 { i } else { r % planes.channels }, r * row + i);
                        }
                    }
                },
            );
        },
    );
    y
}

/// `1 / sqrt(variance + epsilon)` of each channel.
fn inverse_deviations<T: Scalar>(moments: &Moments, epsilon: f64) -> Vec<T> {
    moments.variance.iter().map(|variance| T::from_f64((variance + epsilon).sqrt().recip())).collect()
}

/// `y = gamma * (x - mean) / sqrt(variance + epsilon) + beta`.
pub fn normalise<T: Scalar>(
    planes: Planes,
    x: &[T],
    (gamma, beta): (&[T], &[T]),
    moments: &Moments,
    epsilon: f64,
) -> Vec<T> {
    let inverse: Vec<T> = inverse_deviations(moments, epsilon);
    let mean: Vec<T> = moments.mean.iter().map(|mean| T::from_f64(*mean)).collect();
    let slope: Vec<T> = gamma.iter().zip(&inverse).map(|(gamma, inverse)| *gamma * *inverse).collect();
    map(planes, |c, i| (x[i] - mean[c]) * slope[c] + beta[c])
}

/// Gradients of x, gamma and beta. With `z` the normalised values:
/// `dx = gamma / deviation * (dy - mean(dy) - z * mean(dy * z))`.
pub fn backward<T: Scalar>(
    planes: Planes,
    (x, gamma, dy): (&[T], &[T], &[T]),
    moments: &Moments,
    epsilon: f64,
) -> (Vec<T>, Vec<T>, Vec<T>) {
    let inverse: Vec<T> = inverse_deviations(moments, epsilon);
    let mean: Vec<T> = moments.mean.iter().map(|mean| T::from_f64(*mean)).collect();
    let (centred, inverse) = (&mean, &inverse);
    let totals = sums(planes, |c, i| (dy[i], dy[i] * ((x[i] - centred[c]) * inverse[c])));
    let count = planes.values() as f64;
    let mean_dy: Vec<T> = totals.iter().map(|(dy, _)| T::from_f64(dy / count)).collect();
    let mean_dyz: Vec<T> = totals.iter().map(|(_, dyz)| T::from_f64(dyz / count)).collect();
    let slope: Vec<T> = gamma.iter().zip(inverse).map(|(gamma, inverse)| *gamma * *inverse).collect();
    let dx = map(planes, |c, i| {
        let z = (x[i] - mean[c]) * inverse[c];
        slope[c] * (dy[i] - mean_dy[c] - z * mean_dyz[c])
    });
    let dgamma = totals.iter().map(|(_, dyz)| T::from_f64(*dyz)).collect();
    let dbeta = totals.iter().map(|(dy, _)| T::from_f64(*dy)).collect();
    (dx, dgamma, dbeta)
}
