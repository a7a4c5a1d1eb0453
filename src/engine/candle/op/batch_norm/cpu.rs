//! Batch normalisation: two passes for the moments, sums in vectors within a plane and in float64 across planes.

use std::ops::Range;

use rayon::prelude::*;

use crate::engine::candle::op::activation::Rectifier;
use crate::engine::candle::op::parallel::piece;
use crate::engine::candle::op::scalar::{Scalar, sum_of_pairs, vectorised};

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

/// For each channel the sum over the batch of `term(channel's constant, a, b)`.
fn sums<T: Scalar, C: Copy + Sync>(
    planes: Planes,
    (a, b): (&[T], &[T]),
    constants: &[C],
    term: impl Fn(C, T, T) -> T + Sync,
) -> Vec<f64> {
    let pieces: Vec<_> = planes
        .pieces()
        .into_par_iter()
        .map(|channels| {
            vectorised(
                #[inline(always)]
                || match planes.size {
                    1 => flat_sums(planes, channels, (a, b), constants, &term),
                    _ => plane_sums(planes, channels, (a, b), constants, &term),
                },
            )
        })
        .collect();
    pieces.concat()
}

#[inline(always)]
fn plane_sums<T: Scalar, C: Copy>(
    planes: Planes,
    channels: Range<usize>,
    (a, b): (&[T], &[T]),
    constants: &[C],
    term: impl Fn(C, T, T) -> T,
) -> Vec<f64> {
    let mut totals = vec![0.0; channels.len()];
    for (total, channel) in totals.iter_mut().zip(channels) {
        let constant = constants[channel];
        for image in 0..planes.batch {
            let start = (image * planes.channels + channel) * planes.size;
            let (a, b) = (&a[start..start + planes.size], &b[start..start + planes.size]);
            *total += sum_of_pairs(a, b, |a, b| term(constant, a, b)).to_f64();
        }
    }
    totals
}

/// The same where a plane is one value: the channels are the vector.
#[inline(always)]
fn flat_sums<T: Scalar, C: Copy>(
    planes: Planes,
    channels: Range<usize>,
    (a, b): (&[T], &[T]),
    constants: &[C],
    term: impl Fn(C, T, T) -> T,
) -> Vec<f64> {
    let mut totals = vec![0.0; channels.len()];
    let constants = &constants[channels.clone()];
    for image in 0..planes.batch {
        let row = image * planes.channels + channels.start..image * planes.channels + channels.end;
        let values = a[row.clone()].iter().zip(&b[row]);
        for ((total, constant), (a, b)) in totals.iter_mut().zip(constants).zip(values) {
            *total += term(*constant, *a, *b).to_f64();
        }
    }
    totals
}

/// The moments of each channel of `x`.
pub fn moments<T: Scalar>(planes: Planes, x: &[T]) -> Moments {
    let count = planes.values() as f64;
    let nothing = vec![(); planes.channels];
    let mean: Vec<f64> = sums(planes, (x, x), &nothing, |(), x, _| x).into_iter().map(|sum| sum / count).collect();
    let centre: Vec<T> = scalars(&mean);
    let squares = sums(planes, (x, x), &centre, |centre, x, _| (x - centre) * (x - centre));
    // Rounding the mean to T shifts every deviation by the same amount; take its square out again.
    let shift = mean.iter().zip(&centre).map(|(mean, centre)| mean - centre.to_f64());
    let variance = squares.iter().zip(shift).map(|(squares, shift)| (squares / count - shift * shift).max(0.0));
    Moments { variance: variance.collect(), mean }
}

fn scalars<T: Scalar>(values: &[f64]) -> Vec<T> {
    values.iter().map(|value| T::from_f64(*value)).collect()
}

/// Sets each `y` to `value(channel's constant, a, y)`.
fn map<T: Scalar, C: Copy + Sync>(
    planes: Planes,
    a: &[T],
    constants: &[C],
    y: &mut [T],
    value: impl Fn(C, T, T) -> T + Sync,
) {
    let row = if planes.size == 1 { planes.channels } else { planes.size };
    let rows = piece(planes.len() / row, row);
    y.par_chunks_mut(rows * row).zip(a.par_chunks(rows * row)).enumerate().for_each(|(i, (y, a))| {
        vectorised(
            #[inline(always)]
            || {
                for (at, (y, a)) in y.chunks_exact_mut(row).zip(a.chunks_exact(row)).enumerate() {
                    let values = y.iter_mut().zip(a);
                    if planes.size == 1 {
                        values.zip(constants).for_each(|((y, a), constant)| *y = value(*constant, *a, *y));
                    } else {
                        let constant = constants[(i * rows + at) % planes.channels];
                        values.for_each(|(y, a)| *y = value(constant, *a, *y));
                    }
                }
            },
        );
    });
}

/// `1 / sqrt(variance + epsilon)` of each channel.
fn inverse_deviations(moments: &Moments, epsilon: f64) -> Vec<f64> {
    moments.variance.iter().map(|variance| (variance + epsilon).sqrt().recip()).collect()
}

/// `y = rectifier(gamma * (x - mean) / sqrt(variance + epsilon) + beta)`.
pub fn normalise<T: Scalar>(
    planes: Planes,
    x: &[T],
    (gamma, beta): (&[T], &[T]),
    (moments, epsilon): (&Moments, f64),
    rectifier: Rectifier,
    y: &mut [T],
) {
    let inverse = inverse_deviations(moments, epsilon);
    let range = rectifier.range();
    let constants: Vec<[T; 3]> = (0..planes.channels)
        .map(|c| [T::from_f64(moments.mean[c]), T::from_f64(gamma[c].to_f64() * inverse[c]), beta[c]])
        .collect();
    map(planes, x, &constants, y, |[mean, slope, beta], x, _| range.clamp((x - mean) * slope + beta));
}

/// The gradient of x in the place of `dy`, and those of gamma and beta. With `z` the normalised values:
/// `dx = gamma / deviation * (dy - mean(dy) - z * mean(dy * z))`.
pub fn backward<T: Scalar>(
    planes: Planes,
    (x, gamma): (&[T], &[T]),
    (moments, epsilon): (&Moments, f64),
    slope: &mut [T],
) -> [Vec<T>; 2] {
    let dy = &*slope;
    let inverse = inverse_deviations(moments, epsilon);
    let mean: Vec<T> = scalars(&moments.mean);
    let nothing = vec![(); planes.channels];
    let dbeta = sums(planes, (dy, dy), &nothing, |(), dy, _| dy);
    let dyx = sums(planes, (dy, x), &mean, |mean, dy, x| dy * (x - mean));
    let dgamma: Vec<f64> = dyx.iter().zip(&inverse).map(|(dyx, inverse)| dyx * inverse).collect();
    let count = planes.values() as f64;
    let constants: Vec<[T; 4]> = (0..planes.channels)
        .map(|c| {
            let slope = T::from_f64(gamma[c].to_f64() * inverse[c]);
            let (mean_dy, towards_mean) = (T::from_f64(dbeta[c] / count), inverse[c] * dgamma[c] / count);
            [mean[c], slope, mean_dy, T::from_f64(towards_mean)]
        })
        .collect();
    map(planes, x, &constants, slope, |[mean, slope, mean_dy, towards_mean], x, dy| {
        slope * (dy - mean_dy - (x - mean) * towards_mean)
    });
    [scalars(&dgamma), scalars(&dbeta)]
}
