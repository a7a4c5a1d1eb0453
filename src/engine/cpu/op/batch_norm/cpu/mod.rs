//! Batch normalisation: two passes for the moments, sums in vectors within a plane and in float64 across planes.

mod flat;
mod vectors;

use std::ops::Range;

use pulp::Arch;
use rayon::prelude::*;

use crate::engine::cpu::op::activation::Rectifier;
use crate::engine::cpu::op::parallel::{Shared, piece};
use crate::engine::cpu::op::scalar::Scalar;
use vectors::{InputGradient, MomentsOf, Normal, SlopeSums};

/// Scalars that are read together, about: a part of the second-level cache, where each of the passes over them finds them.
const TOGETHER: usize = 1 << 16;
/// Channels that are read together, at most: enough to read some kilobytes in a row where planes are small.
const CHANNELS: usize = 16;

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

    /// The planes of some channels, image by image: the channel, counted from the first of them, and where the plane lies.
    fn of(self, channels: &Range<usize>) -> impl Iterator<Item = (usize, Range<usize>)> + use<> {
        let (first, count) = (channels.start, channels.len());
        (0..self.batch * count).map(move |plane| {
            let start = (plane / count * self.channels + first + plane % count) * self.size;
            (plane % count, start..start + self.size)
        })
    }

    /// The channels, cut into pieces for parallel work.
    fn pieces(&self) -> Vec<Range<usize>> {
        cut(0..self.channels, piece(self.channels, self.values()))
    }

    /// Runs `work` for the channels, some at a time, and collects what it makes for each.
    fn collect<R: Send>(self, work: impl Fn(Range<usize>) -> Vec<R> + Sync) -> Vec<R> {
        let together = (TOGETHER / self.values().max(1)).clamp(1, CHANNELS);
        let made: Vec<Vec<R>> = self
            .pieces()
            .into_par_iter()
            .map(|channels| cut(channels, together).into_iter().flat_map(&work).collect())
            .collect();
        made.into_iter().flatten().collect()
    }
}

fn cut(range: Range<usize>, step: usize) -> Vec<Range<usize>> {
    range.clone().step_by(step).map(|start| start..(start + step).min(range.end)).collect()
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

/// What a value of a channel is normalised with: `(x - mean) * slope + beta`.
#[derive(Clone, Copy)]
struct Affine<T> {
    mean: T,
    slope: T,
    beta: T,
}

impl<T: Scalar> Affine<T> {
    #[inline(always)]
    fn value(self, x: T) -> T {
        (x - self.mean) * self.slope + self.beta
    }
}

impl<T: Scalar> Norm<'_, T> {
    fn affine(&self, moments: Moments, channel: usize) -> Affine<T> {
        let slope = self.gamma[channel].to_f64() * inverse_deviation(moments.variance, self.epsilon);
        Affine { mean: T::from_f64(moments.mean), slope: T::from_f64(slope), beta: self.beta[channel] }
    }

    /// Of some channels, whose moments these are.
    fn affines(&self, moments: &[Moments], channels: Range<usize>) -> Vec<Affine<T>> {
        moments.iter().zip(channels).map(|(moments, channel)| self.affine(*moments, channel)).collect()
    }
}

/// `1 / sqrt(variance + epsilon)`
fn inverse_deviation(variance: f64, epsilon: f64) -> f64 {
    (variance + epsilon).sqrt().recip()
}

/// The variance from the mean square of the distances to the mean as T has it: rounding the mean shifts every distance by the
/// same amount, and this takes its square out again.
fn variance<T: Scalar>(mean_square: f64, mean: f64) -> f64 {
    let shift = mean - T::from_f64(mean).to_f64();
    (mean_square - shift * shift).max(0.0)
}

/// Normalises a batch: `y = rectifier(gamma * (x - mean) / sqrt(variance + epsilon) + beta)`, and gives the moments.
///
/// Each channel is read three times in a row, once for each moment and once to be normalised; mostly it is still in the
/// cache.
pub fn forward<T: Scalar>(planes: Planes, x: &[T], norm: Norm<'_, T>, y: &mut [T]) -> Vec<Moments> {
    let range = norm.rectifier.range::<T>();
    if planes.size == 1 {
        let moments = flat::moments(planes, x);
        let affines = norm.affines(&moments, 0..planes.channels);
        flat::map(planes, x, &affines, y, |affine, x, _| range.clamp(affine.value(x)));
        return moments;
    }
    let y = Shared::new(y);
    planes.collect(|channels| {
        let moments = Arch::new().dispatch(MomentsOf { planes, channels: channels.clone(), x });
        let affine = &norm.affines(&moments, channels.clone());
        Arch::new().dispatch(Normal { planes, channels, x, affine, range, y: &y });
        moments
    })
}

/// Normalises a batch with moments that are known, as after training: those of [`super::RunningStats`].
pub fn normalise<T: Scalar>(planes: Planes, x: &[T], norm: Norm<'_, T>, moments: &[Moments], y: &mut [T]) {
    let (range, y) = (norm.rectifier.range::<T>(), Shared::new(y));
    planes.collect::<()>(|channels| {
        let affine = &norm.affines(&moments[channels.clone()], channels.clone());
        Arch::new().dispatch(Normal { planes, channels, x, affine, range, y: &y });
        Vec::new()
    });
}

/// The gradient of x in the place of `dy`, and those of gamma and beta. With `z` the normalised values:
/// `dx = gamma / deviation * (dy - mean(dy) - z * mean(dy * z))`. Where the output was rectified as it was written, `dy` is the
/// gradient of the rectified output; which values the rectifier stopped is computed again from x, by the forward pass's own
/// arithmetic, since that is less to read than the output.
pub fn backward<T: Scalar>(
    planes: Planes,
    x: &[T],
    norm: Norm<'_, T>,
    moments: &[Moments],
    dy: &mut [T],
) -> [Vec<T>; 2] {
    let range = norm.rectifier.range::<T>();
    let sums = |channel: usize, totals: [f64; 2]| Sums::new(planes, moments[channel], norm.epsilon, totals);
    if planes.size == 1 {
        let affines = norm.affines(moments, 0..planes.channels);
        flat::map(planes, x, &affines, dy, |affine, x, dy| range.stopped(affine.value(x), dy));
        let totals = flat::slopes(planes, x, dy, moments);
        let sums: Vec<Sums> = totals.into_iter().enumerate().map(|(channel, totals)| sums(channel, totals)).collect();
        let slopes = sums.iter().zip(norm.gamma).map(|(sums, gamma)| sums.slope(*gamma));
        let constants: Vec<_> = affines.into_iter().zip(slopes).collect();
        flat::map(planes, x, &constants, dy, |(affine, slope), x, dy| slope.of(x - affine.mean, dy));
        return parameters(&sums);
    }
    let dy = &Shared::new(dy);
    let sums = planes.collect(|channels| {
        let affine = &norm.affines(&moments[channels.clone()], channels.clone())[..];
        let totals = Arch::new().dispatch(SlopeSums { planes, channels: channels.clone(), x, affine, range, dy });
        let sums: Vec<Sums> = channels.clone().zip(totals).map(|(channel, totals)| sums(channel, totals)).collect();
        let slopes: Vec<_> =
            channels.clone().zip(&sums).map(|(channel, sums)| sums.slope(norm.gamma[channel])).collect();
        Arch::new().dispatch(InputGradient { planes, channels, x, affine, range, slopes: &slopes, dy });
        sums
    });
    parameters(&sums)
}

/// A channel's gradients, and what its inputs' gradients are made with.
struct Sums {
    inverse: f64,
    mean_dy: f64,
    towards_mean: f64,
    dgamma: f64,
    dbeta: f64,
}

impl Sums {
    /// From the sums of `dy` and of `dy (x - mean)`.
    fn new(planes: Planes, moments: Moments, epsilon: f64, [dbeta, dyx]: [f64; 2]) -> Self {
        let (count, inverse) = (planes.values() as f64, inverse_deviation(moments.variance, epsilon));
        let dgamma = dyx * inverse;
        Self { inverse, mean_dy: dbeta / count, towards_mean: inverse * dgamma / count, dgamma, dbeta }
    }

    fn slope<T: Scalar>(&self, gamma: T) -> Slope<T> {
        let scale = T::from_f64(gamma.to_f64() * self.inverse);
        Slope { scale, mean_dy: T::from_f64(self.mean_dy), towards_mean: T::from_f64(self.towards_mean) }
    }
}

/// What the gradient of a channel's inputs is made with: `scale * (dy - mean_dy - (x - mean) * towards_mean)`.
#[derive(Clone, Copy)]
struct Slope<T> {
    scale: T,
    mean_dy: T,
    towards_mean: T,
}

impl<T: Scalar> Slope<T> {
    #[inline(always)]
    fn of(self, distance: T, dy: T) -> T {
        self.scale * (dy - self.mean_dy - distance * self.towards_mean)
    }
}

/// dgamma, dbeta.
fn parameters<T: Scalar>(sums: &[Sums]) -> [Vec<T>; 2] {
    [
        sums.iter().map(|sums| T::from_f64(sums.dgamma)).collect(),
        sums.iter().map(|sums| T::from_f64(sums.dbeta)).collect(),
    ]
}
