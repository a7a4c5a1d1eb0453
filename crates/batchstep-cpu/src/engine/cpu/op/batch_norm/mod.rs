//! Batch normalisation in training mode.
//!
//! Ioffe and Szegedy, "Batch Normalization: Accelerating Deep Network Training by Reducing Internal Covariate Shift",
//! 2015, algorithm 1: `y = gamma * (x - mean) / sqrt(variance + epsilon) + beta`, with the mean and the biased variance
//! of the batch. One value per channel gives `beta` and no gradient, as in TensorFlow; PyTorch refuses it.
//!
//! A batch is normalised in two passes over a channel, for the moments and for the output, with sums in vectors within a
//! plane and in float64 across planes.

mod flat;
mod narrow;
#[cfg(test)]
mod tests;
mod vectors;

use std::ops::Range;

use pulp::Arch;

use crate::engine::cpu::op::activation::{self, Rectifier};
use crate::engine::cpu::op::filters::Filters;
use crate::engine::cpu::op::parallel::{ChannelPlanes, Shared, for_each_channels};
use crate::engine::cpu::op::scalar::Scalar;
use crate::engine::cpu::op::scratch::List;
use crate::engine::train::Running;
use crate::error::{Error, Result};
use crate::network::BatchNorm;
use vectors::{InputGradient, MomentsOf, Normal, SlopeSums};

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
}

/// Mean and biased variance of a channel.
#[derive(Clone, Copy, Debug, Default)]
pub struct Moments {
    pub mean: f64,
    pub variance: f64,
}

impl Moments {
    /// From the means of the distances to `centre` and of their squares.
    fn about(centre: f64, [distance, square]: [f64; 2]) -> Self {
        Self { mean: centre + distance, variance: (square - distance * distance).max(0.0) }
    }
}

/// The scale and shift of each channel; a batch is normalised with these and its moments.
#[derive(Clone, Copy)]
pub struct Norm<'a, T> {
    pub gamma: &'a [T],
    pub beta: &'a [T],
    pub epsilon: f64,
    /// Applied while the output is written.
    pub rectifier: Rectifier,
}

/// Some channels of a batch, to which no task writes.
pub struct Input<'a, T> {
    pub planes: Planes,
    pub channels: Range<usize>,
    pub x: &'a Shared<'a, T>,
}

impl<T> Input<'_, T> {
    fn values(&self, places: &Range<usize>) -> &[T] {
        // SAFETY: no task writes to the channels.
        unsafe { self.x.get(places.start, places.len()) }
    }
}

/// How they are normalised: each by its map, and limited to a range.
#[derive(Clone, Copy)]
struct Normaliser<'a, T> {
    affine: &'a [Affine<T>],
    range: activation::Range<T>,
}

/// How a channel's values are normalised: `(x - mean) * slope + beta`.
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

impl<'a, T: Scalar> Norm<'a, T> {
    /// A batch norm with gamma for its weight and beta for its bias.
    pub fn new(filters: Filters<'a, T>, p: BatchNorm) -> Self {
        let Filters { weight: gamma, bias, rectifier } = filters;
        Self { gamma, beta: bias.unwrap_or_default(), epsilon: p.epsilon, rectifier }
    }

    fn affine(&self, moments: Moments, channel: usize) -> Affine<T> {
        let slope = self.gamma[channel].to_f64() * inverse_deviation(moments.variance, self.epsilon);
        Affine { mean: T::from_f64(moments.mean), slope: T::from_f64(slope), beta: self.beta[channel] }
    }

    /// The maps of some channels, given their moments.
    fn affines(&self, moments: &[Moments], channels: Range<usize>) -> List<Affine<T>> {
        moments.iter().zip(channels).map(|(moments, channel)| self.affine(*moments, channel)).collect()
    }
}

/// `1 / sqrt(variance + epsilon)`
fn inverse_deviation(variance: f64, epsilon: f64) -> f64 {
    (variance + epsilon).sqrt().recip()
}

/// Normalises a batch: `y = rectifier(gamma * (x - mean) / sqrt(variance + epsilon) + beta)`. The moments go to `made`, one for each channel.
///
/// Each channel is read twice in a row, once for its moments and once to be normalised; the second time it is mostly
/// still in the cache.
pub fn forward<T: Scalar>(planes: Planes, x: &[T], norm: Norm<'_, T>, y: &mut [T], made: &mut [Moments]) {
    let range = norm.rectifier.range::<T>();
    if planes.size == 1 {
        flat::moments(planes, x, made);
        let affines = norm.affines(made, 0..planes.channels);
        return flat::map(planes, x, &affines, y, |affine, x, _| range.clamp(affine.value(x)));
    }
    let (x, y, made) = (Shared::reading(x), Shared::new(y), Shared::new(made));
    for_each_channels(planes.channels, planes.values(), |channels| {
        let place = &ChannelPlanes { all: planes.channels, channels: channels.clone() };
        // SAFETY: no two calls have a channel in common.
        unsafe { forward_channels(&Input { planes, channels, x: &x }, norm, (&y, place), &made) };
    });
}

/// [`forward`] for some channels of planes of several values. `place` says where they lie in `y`; their moments go to
/// their places in `made`.
///
/// # Safety
/// No other task may write to the input's channels meanwhile, or use those of `y` and `made`.
pub unsafe fn forward_channels<T: Scalar>(
    input: &Input<'_, T>,
    norm: Norm<'_, T>,
    y: (&Shared<'_, T>, &ChannelPlanes),
    made: &Shared<'_, Moments>,
) {
    let moments = match narrow::suits(input.planes) {
        true => narrow::moments(input),
        false => Arch::new().dispatch(MomentsOf(input)),
    };
    // SAFETY: by the caller's promise.
    unsafe { made.slice(input.channels.start, moments.len()) }.copy_from_slice(&moments);
    // SAFETY: by the caller's promise.
    unsafe { normalise_channels(input, norm, &moments, y) };
}

/// [`normalise`] for some channels of planes of several values, given their moments. `place` says where they lie in
/// `y`.
///
/// # Safety
/// No other task may write to the input's channels meanwhile, or use those of `y`.
pub unsafe fn normalise_channels<T: Scalar>(
    input: &Input<'_, T>,
    norm: Norm<'_, T>,
    moments: &[Moments],
    (y, place): (&Shared<'_, T>, &ChannelPlanes),
) {
    let Input { planes, channels, .. } = input;
    let by = Normaliser { affine: &norm.affines(moments, channels.clone()), range: norm.rectifier.range() };
    if writes_anywhere(*planes) {
        return Arch::new().dispatch(Normal { input, by, y, place });
    }
    assert_eq!((place.all, &place.channels), (planes.channels, channels), "input and output have the same layout");
    narrow::normalise(input, by, y);
}

/// Whether the output's channels may lie at other places than the input's.
pub fn writes_anywhere(planes: Planes) -> bool {
    !narrow::suits(planes)
}

/// Normalises a batch with known moments, as after training: those of [`RunningStats`].
pub fn normalise<T: Scalar>(planes: Planes, x: &[T], norm: Norm<'_, T>, moments: &[Moments], y: &mut [T]) {
    let (range, x, y) = (norm.rectifier.range::<T>(), &Shared::reading(x), &Shared::new(y));
    for_each_channels(planes.channels, planes.values(), |channels| {
        let by = Normaliser { affine: &norm.affines(&moments[channels.clone()], channels.clone()), range };
        let place = &ChannelPlanes { all: planes.channels, channels: channels.clone() };
        Arch::new().dispatch(Normal { input: &Input { planes, channels, x }, by, y, place });
    });
}

/// The gradient of x in the place of `dy`, and those of gamma and beta in theirs. With `z` the normalised values: `dx =
/// gamma / deviation * (dy - mean(dy) - z * mean(dy * z))`. Where the output was rectified as it was written, `dy` is
/// the gradient of the rectified output. Which values the rectifier stopped is computed again from x, with the
/// arithmetic of the forward pass: reading the output as well would take longer.
pub fn backward<T: Scalar>(
    planes: Planes,
    x: &[T],
    norm: Norm<'_, T>,
    moments: &[Moments],
    dy: &mut [T],
    [dgamma, dbeta]: [&mut [T]; 2],
) {
    if planes.size != 1 {
        let into = Gradients { dy: &Shared::new(dy), dgamma: &Shared::new(dgamma), dbeta: &Shared::new(dbeta) };
        let x = &Shared::reading(x);
        return for_each_channels(planes.channels, planes.values(), |channels| {
            // SAFETY: no two calls have a channel in common.
            unsafe { backward_channels(&Input { planes, channels, x }, norm, moments, into) };
        });
    }
    let range = norm.rectifier.range::<T>();
    let affines = norm.affines(moments, 0..planes.channels);
    flat::map(planes, x, &affines, dy, |affine, x, dy| range.stopped(affine.value(x), dy));
    let sums = Sums::of_all(planes, norm, moments, &flat::slopes(planes, x, dy, moments));
    let slopes = sums.iter().zip(norm.gamma).map(|(sums, gamma)| sums.slope(*gamma));
    let constants: List<_> = affines.iter().copied().zip(slopes).collect();
    flat::map(planes, x, &constants, dy, |(affine, slope), x, dy| slope.of(x - affine.mean, dy));
    write(&sums, dgamma, dbeta);
}

/// Where the gradients of a batch norm are written.
#[derive(Clone, Copy)]
pub struct Gradients<'a, T> {
    /// The gradient of the output, which the gradient of the input overwrites.
    pub dy: &'a Shared<'a, T>,
    pub dgamma: &'a Shared<'a, T>,
    pub dbeta: &'a Shared<'a, T>,
}

/// [`backward`] for some channels of planes of several values.
///
/// # Safety
/// No other task may write to the input's channels meanwhile, or use those of the gradients.
pub unsafe fn backward_channels<T: Scalar>(
    input: &Input<'_, T>,
    norm: Norm<'_, T>,
    moments: &[Moments],
    Gradients { dy, dgamma, dbeta }: Gradients<'_, T>,
) {
    let Input { planes, ref channels, .. } = *input;
    let moments = &moments[channels.clone()];
    let by = Normaliser { affine: &norm.affines(moments, channels.clone()), range: norm.rectifier.range() };
    let is_narrow = narrow::suits(planes);
    let totals = match is_narrow {
        true => narrow::slope_sums(input, by, dy),
        false => Arch::new().dispatch(SlopeSums { input, by, dy }),
    };
    let sums = Sums::of_all(planes, norm, moments, &totals);
    let slopes: List<_> = channels.clone().zip(&sums).map(|(channel, sums)| sums.slope(norm.gamma[channel])).collect();
    match is_narrow {
        true => narrow::input_gradient(input, by, &slopes, dy),
        false => Arch::new().dispatch(InputGradient { input, by, slopes: &slopes, dy }),
    }
    // SAFETY: by the caller's promise.
    let [dgamma, dbeta] = unsafe { [dgamma, dbeta].map(|to| to.slice(channels.start, channels.len())) };
    write(&sums, dgamma, dbeta);
}

/// The gradients of gamma and beta.
fn write<T: Scalar>(sums: &[Sums], dgamma: &mut [T], dbeta: &mut [T]) {
    for (sums, (dgamma, dbeta)) in sums.iter().zip(dgamma.iter_mut().zip(dbeta)) {
        (*dgamma, *dbeta) = (T::from_f64(sums.dgamma), T::from_f64(sums.dbeta));
    }
}

/// A channel's gradients, and the constants for its inputs' gradients.
struct Sums {
    inverse: f64,
    mean_dy: f64,
    towards_mean: f64,
    dgamma: f64,
    dbeta: f64,
}

impl Sums {
    /// From the sums of `dy` and of `dy (x - mean)` of each channel.
    fn of_all<T>(planes: Planes, norm: Norm<'_, T>, moments: &[Moments], totals: &[[f64; 2]]) -> List<Self> {
        let count = planes.values() as f64;
        let of = |(moments, &[dbeta, dyx]): (&Moments, &[f64; 2])| {
            let inverse = inverse_deviation(moments.variance, norm.epsilon);
            let dgamma = dyx * inverse;
            Self { inverse, mean_dy: dbeta / count, towards_mean: inverse * dgamma / count, dgamma, dbeta }
        };
        moments.iter().zip(totals).map(of).collect()
    }

    fn slope<T: Scalar>(&self, gamma: T) -> Slope<T> {
        let scale = T::from_f64(gamma.to_f64() * self.inverse);
        Slope { scale, mean_dy: T::from_f64(self.mean_dy), towards_mean: T::from_f64(self.towards_mean) }
    }
}

/// The constants of a channel's input gradient: `scale * (dy - mean_dy - (x - mean) * towards_mean)`.
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

/// The running mean and the running, unbiased variance of each channel.
#[derive(Debug)]
pub struct RunningStats(pub Vec<Moments>);

impl RunningStats {
    /// Means 0 and variances 1.
    pub fn new(channels: usize) -> Self {
        Self(vec![Moments { mean: 0.0, variance: 1.0 }; channels])
    }

    /// Overwrites the running statistics.
    ///
    /// # Errors
    /// Where the number of channels differs.
    pub fn set(&mut self, running: &Running) -> Result<()> {
        let (given, channels) = ([running.mean.len(), running.variance.len()], self.0.len());
        if given != [channels; 2] {
            let what = format!("running statistics of {} channels, where there are {channels}", given[0]);
            return Err(Error::engine(what));
        }
        let pairs = running.mean.iter().zip(&running.variance);
        self.0 = pairs.map(|(&mean, &variance)| Moments { mean, variance }).collect();
        Ok(())
    }

    /// `running = momentum * running + (1 - momentum) * batch`, with the unbiased variance of `count` values. One value
    /// has no unbiased variance; TensorFlow's fused batch norm then divides by 1, and so do we.
    pub fn update(&mut self, batch: &[Moments], count: usize, momentum: f64) {
        let unbiased = count as f64 / (count.max(2) - 1) as f64;
        let blend = |running: &mut f64, batch: f64| *running = momentum * *running + (1.0 - momentum) * batch;
        for (running, batch) in self.0.iter_mut().zip(batch) {
            blend(&mut running.mean, batch.mean);
            blend(&mut running.variance, unbiased * batch.variance);
        }
    }
}
