//! Batch normalisation: two passes for the moments, sums in vectors within a plane and in float64 across planes.

mod flat;

use std::ops::Range;

use rayon::prelude::*;

use crate::engine::cpu::op::activation::{self, Rectifier};
use crate::engine::cpu::op::parallel::{Shared, piece};
use crate::engine::cpu::op::scalar::{Scalar, sum, sum_of_pairs, vectorised};

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

    /// Where the planes of a channel lie.
    fn of(self, channel: usize) -> impl Iterator<Item = Range<usize>> {
        (0..self.batch).map(move |image| {
            let start = (image * self.channels + channel) * self.size;
            start..start + self.size
        })
    }

    /// The channels, cut into pieces for parallel work.
    fn pieces(&self) -> Vec<Range<usize>> {
        let step = piece(self.channels, self.values());
        (0..self.channels).step_by(step).map(|start| start..(start + step).min(self.channels)).collect()
    }
}

/// Mean and biased variance of a channel.
#[derive(Clone, Copy, Debug)]
pub struct Moments {
    pub mean: f64,
    pub variance: f64,
}

/// What a batch is normalised with, apart from its moments: for each channel scale and shift.
#[derive(Clone, Copy)]
pub struct Norm<'a, T> {
    pub gamma: &'a [T],
    pub beta: &'a [T],
    pub epsilon: f64,
    /// Applied to the output as it is written.
    pub rectifier: Rectifier,
}

/// What the backward pass needs of the forward pass.
pub struct Normalised<'a, T> {
    pub x: &'a [T],
    pub gamma: &'a [T],
    pub moments: &'a [Moments],
    pub epsilon: f64,
    /// Where the output was rectified as it was written: how, and what came out.
    pub rectified: Option<Rectified<'a, T>>,
}

/// A rectifier and its output.
#[derive(Clone, Copy)]
pub struct Rectified<'a, T> {
    pub rectifier: Rectifier,
    pub y: &'a [T],
}

/// Runs `work` for every channel, and collects what it makes.
fn for_each_channel<R: Send>(planes: Planes, work: impl Fn(usize) -> R + Sync) -> Vec<R> {
    let made: Vec<Vec<R>> = planes.pieces().into_par_iter().map(|channels| channels.map(&work).collect()).collect();
    made.into_iter().flatten().collect()
}

/// Normalises a batch: `y = rectifier(gamma * (x - mean) / sqrt(variance + epsilon) + beta)`, and gives the moments.
///
/// Each channel is read three times in a row, once for each moment and once to be normalised; mostly it is still in the
/// cache.
pub fn forward<T: Scalar>(planes: Planes, x: &[T], norm: Norm<'_, T>, y: &mut [T]) -> Vec<Moments> {
    let range = norm.rectifier.range::<T>();
    let normal = |[mean, slope, beta]: [T; 3], x: T| range.clamp((x - mean) * slope + beta);
    if planes.size == 1 {
        let moments = flat::moments(planes, x);
        let constants: Vec<_> = moments.iter().enumerate().map(|(c, moments)| norm.constants(*moments, c)).collect();
        flat::map(planes, x, &constants, y, |constants, x, _| normal(constants, x));
        return moments;
    }
    let shared = Shared::new(y);
    for_each_channel(planes, |channel| {
        vectorised(
            #[inline(always)]
            || {
                let moments = moments_of(planes, channel, x);
                let constants = norm.constants(moments, channel);
                for range in planes.of(channel) {
                    // SAFETY: a channel's planes belong to its task.
                    let y = unsafe { shared.slice(range.start, range.len()) };
                    y.iter_mut().zip(&x[range]).for_each(|(y, x)| *y = normal(constants, *x));
                }
                moments
            },
        )
    })
}

/// Normalises a batch with moments that are known, as after training: those of [`super::RunningStats`].
pub fn normalise<T: Scalar>(planes: Planes, x: &[T], norm: Norm<'_, T>, moments: &[Moments], y: &mut [T]) {
    let range = norm.rectifier.range::<T>();
    let shared = Shared::new(y);
    for_each_channel(planes, |channel| {
        let [mean, slope, beta] = norm.constants(moments[channel], channel);
        vectorised(
            #[inline(always)]
            || {
                for range_of in planes.of(channel) {
                    // SAFETY: a channel's planes belong to its task.
                    let y = unsafe { shared.slice(range_of.start, range_of.len()) };
                    y.iter_mut().zip(&x[range_of]).for_each(|(y, x)| *y = range.clamp((*x - mean) * slope + beta));
                }
            },
        );
    });
}

impl<T: Scalar> Norm<'_, T> {
    /// What a value of a channel is normalised with: mean, slope, beta.
    fn constants(&self, moments: Moments, channel: usize) -> [T; 3] {
        let slope = self.gamma[channel].to_f64() * inverse_deviation(moments.variance, self.epsilon);
        [T::from_f64(moments.mean), T::from_f64(slope), self.beta[channel]]
    }
}

/// `1 / sqrt(variance + epsilon)`
fn inverse_deviation(variance: f64, epsilon: f64) -> f64 {
    (variance + epsilon).sqrt().recip()
}

/// The moments of a channel.
#[inline(always)]
fn moments_of<T: Scalar>(planes: Planes, channel: usize, x: &[T]) -> Moments {
    let count = planes.values() as f64;
    let mut total = 0.0;
    for range in planes.of(channel) {
        total += sum(&x[range]).to_f64();
    }
    let mean = total / count;
    let centre = T::from_f64(mean);
    let mut squares = 0.0;
    for range in planes.of(channel) {
        let x = &x[range];
        squares += sum_of_pairs(x, x, |x, _| (x - centre) * (x - centre)).to_f64();
    }
    Moments { mean, variance: variance(squares / count, mean, centre) }
}

/// Rounding the mean to T shifts every deviation by the same amount; this takes its square out again.
fn variance<T: Scalar>(mean_square: f64, mean: f64, centre: T) -> f64 {
    let shift = mean - centre.to_f64();
    (mean_square - shift * shift).max(0.0)
}

/// The gradient of x in the place of `dy`, and those of gamma and beta. With `z` the normalised values:
/// `dx = gamma / deviation * (dy - mean(dy) - z * mean(dy * z))`. Where the output was rectified, `dy` is the gradient
/// of the rectified output.
pub fn backward<T: Scalar>(planes: Planes, of: &Normalised<'_, T>, slope: &mut [T]) -> [Vec<T>; 2] {
    let Normalised { x, gamma, moments, epsilon, rectified } = *of;
    let sums = |channel: usize, totals: [f64; 2]| Sums::new(planes, moments[channel], epsilon, totals);
    if planes.size == 1 {
        if let Some(Rectified { rectifier, y }) = rectified {
            activation::cpu::backward(rectifier, y, slope);
        }
        let sums: Vec<Sums> = flat::slopes(planes, x, slope, moments)
            .into_iter()
            .enumerate()
            .map(|(c, totals)| sums(c, totals))
            .collect();
        let constants: Vec<[T; 4]> = sums.iter().zip(gamma).map(|(sums, gamma)| sums.constants(*gamma)).collect();
        flat::map(planes, x, &constants, slope, slope_of);
        return parameters(&sums);
    }
    let shared = Shared::new(slope);
    let rectified = rectified.map(|Rectified { rectifier, y }| (rectifier.range::<T>(), y));
    let sums = for_each_channel(planes, |channel| {
        vectorised(
            #[inline(always)]
            || {
                let mean = T::from_f64(moments[channel].mean);
                let (mut dbeta, mut dyx) = (0.0, 0.0);
                for range in planes.of(channel) {
                    // SAFETY: a channel's planes belong to its task.
                    let (dy, x) = (unsafe { shared.slice(range.start, range.len()) }, &x[range.clone()]);
                    if let Some((values, y)) = rectified {
                        values.stop(&y[range], dy);
                    }
                    dbeta += sum(dy).to_f64();
                    dyx += sum_of_pairs(dy, x, |dy, x| dy * (x - mean)).to_f64();
                }
                let sums = sums(channel, [dbeta, dyx]);
                let constants = sums.constants(gamma[channel]);
                for range in planes.of(channel) {
                    // SAFETY: as above.
                    let dy = unsafe { shared.slice(range.start, range.len()) };
                    dy.iter_mut().zip(&x[range]).for_each(|(dy, x)| *dy = slope_of(constants, *x, *dy));
                }
                sums
            },
        )
    });
    parameters(&sums)
}

/// A channel's gradients, and what its inputs' gradients are made with.
struct Sums {
    mean: f64,
    inverse: f64,
    mean_dy: f64,
    towards_mean: f64,
    dgamma: f64,
    dbeta: f64,
}

impl Sums {
    /// From the sums of `dy` and of `dy (x - mean)`.
    fn new(planes: Planes, moments: Moments, epsilon: f64, [dbeta, dyx]: [f64; 2]) -> Self {
        let Moments { mean, variance } = moments;
        let (count, inverse) = (planes.values() as f64, inverse_deviation(variance, epsilon));
        let dgamma = dyx * inverse;
        Self { mean, inverse, mean_dy: dbeta / count, towards_mean: inverse * dgamma / count, dgamma, dbeta }
    }

    fn constants<T: Scalar>(&self, gamma: T) -> [T; 4] {
        [self.mean, gamma.to_f64() * self.inverse, self.mean_dy, self.towards_mean].map(T::from_f64)
    }
}

#[inline(always)]
fn slope_of<T: Scalar>([mean, slope, mean_dy, towards_mean]: [T; 4], x: T, dy: T) -> T {
    slope * (dy - mean_dy - (x - mean) * towards_mean)
}

/// dgamma, dbeta.
fn parameters<T: Scalar>(sums: &[Sums]) -> [Vec<T>; 2] {
    [
        sums.iter().map(|sums| T::from_f64(sums.dgamma)).collect(),
        sums.iter().map(|sums| T::from_f64(sums.dbeta)).collect(),
    ]
}
