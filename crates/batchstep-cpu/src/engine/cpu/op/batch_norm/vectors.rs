//! The passes over planes of many values: the values of a plane are the vector.
//!
//! Some channels are read together, image by image: their planes are neighbours in memory, and all of them are still in the
//! second-level cache when the next pass reads them again.

use pulp::{Simd, WithSimd};

use super::{Affine, Input, Moments, Normaliser, Slope};
use crate::engine::cpu::op::parallel::{ChannelPlanes, Shared};
use crate::engine::cpu::op::scalar::Scalar;
use crate::engine::cpu::op::scratch::List;
use crate::engine::cpu::op::vector::{map, sums};

/// The moments of the channels.
pub struct MomentsOf<'a, T>(pub &'a Input<'a, T>);

impl<T: Scalar> WithSimd for MomentsOf<'_, T> {
    type Output = List<Moments>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> List<Moments> {
        let Input { planes, ref channels, .. } = *self.0;
        let count = planes.values() as f64;
        // Distances to the mean of the first image's plane, which is near the mean of all. So one pass over the batch
        // gives both moments, and no digits are lost where the mean is large.
        let mut centres = List::repeat(T::ZERO, channels.len());
        for (channel, range) in planes.of(channels).take(channels.len()) {
            let x = self.0.values(&range);
            let [sum] = sums::<T, S, 1>(
                simd,
                x.len(),
                #[inline(always)]
                |at, mask| [load(simd, x, at, mask)],
            );
            centres[channel] = T::from_f64(sum.to_f64() / planes.size as f64);
        }
        let mut totals = List::repeat([0.0; 2], channels.len());
        for (channel, range) in planes.of(channels) {
            let x = self.0.values(&range);
            let centre = T::splat(simd, centres[channel]);
            let made = sums::<T, S, 2>(
                simd,
                x.len(),
                #[inline(always)]
                |at, mask| {
                    let distance = T::keep(simd, mask, T::minus(simd, load(simd, x, at, mask), centre));
                    [distance, T::times(simd, distance, distance)]
                },
            );
            totals[channel].iter_mut().zip(made).for_each(|(total, made)| *total += made.to_f64());
        }
        let moments = centres.iter().zip(&totals);
        moments.map(|(centre, totals)| Moments::about(centre.to_f64(), totals.map(|total| total / count))).collect()
    }
}

/// The register of a plane that begins at value `at`. The mask has the lanes inside the plane.
#[inline(always)]
fn load<T: Scalar, S: Simd>(simd: S, plane: &[T], at: usize, mask: T::Mask<S>) -> T::Vector<S> {
    // SAFETY: `sums` and `map` make the mask, which covers only values of the plane.
    unsafe { T::load(simd, mask, plane[at..].as_ptr()) }
}

/// `y = range((x - mean) * slope + beta)` for the channels.
pub struct Normal<'a, T> {
    pub input: &'a Input<'a, T>,
    pub by: Normaliser<'a, T>,
    /// The channels belong to the caller.
    pub y: &'a Shared<'a, T>,
    /// Where they are in `y`.
    pub place: &'a ChannelPlanes,
}

impl<T: Scalar> WithSimd for Normal<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { input, by: Normaliser { affine, range: values }, y, place } = self;
        let Input { planes, ref channels, .. } = *input;
        for (number, (channel, range)) in planes.of(channels).enumerate() {
            let affine = Splat::new(simd, affine[channel]);
            let to = place.plane(number / channels.len(), channel) * planes.size;
            let (x, y) = (input.values(&range), y.address(to, range.len()));
            // SAFETY: the channels belong to the caller.
            unsafe {
                map::<T, S>(
                    simd,
                    y,
                    x.len(),
                    #[inline(always)]
                    |at, mask| values.clamp_lanes(simd, affine.value(simd, load(simd, x, at, mask))),
                );
            }
        }
    }
}

/// For the channels the sums of `dy` and of `dy (x - mean)`, where `dy` is zero wherever the normalised value is outside of the
/// range.
pub struct SlopeSums<'a, T> {
    pub input: &'a Input<'a, T>,
    pub by: Normaliser<'a, T>,
    /// The channels belong to the caller.
    pub dy: &'a Shared<'a, T>,
}

impl<T: Scalar> WithSimd for SlopeSums<'_, T> {
    type Output = List<[f64; 2]>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> List<[f64; 2]> {
        let Self { input, by: Normaliser { affine, range: values }, dy } = self;
        let Input { planes, ref channels, .. } = *input;
        let mut totals = List::repeat([0.0; 2], channels.len());
        for (channel, range) in planes.of(channels) {
            let affine = Splat::new(simd, affine[channel]);
            // SAFETY: no task writes to the channels.
            let (x, dy) = (input.values(&range), unsafe { dy.get(range.start, range.len()) });
            let made = sums::<T, S, 2>(
                simd,
                x.len(),
                #[inline(always)]
                |at, mask| {
                    let x = load(simd, x, at, mask);
                    let dy = values.stop_lanes(simd, affine.value(simd, x), load(simd, dy, at, mask));
                    [dy, T::times(simd, dy, T::minus(simd, x, affine.mean))]
                },
            );
            totals[channel].iter_mut().zip(made).for_each(|(total, made)| *total += made.to_f64());
        }
        totals
    }
}

/// The gradient of x in the place of `dy`, for the channels.
pub struct InputGradient<'a, T> {
    pub input: &'a Input<'a, T>,
    pub by: Normaliser<'a, T>,
    pub slopes: &'a [Slope<T>],
    /// The channels belong to the caller.
    pub dy: &'a Shared<'a, T>,
}

impl<T: Scalar> WithSimd for InputGradient<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { input, by: Normaliser { affine, range: values }, slopes, dy } = self;
        let Input { planes, ref channels, .. } = *input;
        for (channel, range) in planes.of(channels) {
            let affine = Splat::new(simd, affine[channel]);
            let Slope { scale, mean_dy, towards_mean } = slopes[channel];
            let (scale, mean_dy) = (T::splat(simd, scale), T::splat(simd, mean_dy));
            let towards_mean = T::splat(simd, towards_mean);
            let (x, dy) = (input.values(&range), dy.address(range.start, range.len()));
            // SAFETY: the channels belong to the caller; a register of `dy` is read where it will be written.
            unsafe {
                map::<T, S>(
                    simd,
                    dy,
                    x.len(),
                    #[inline(always)]
                    |at, mask| {
                        let x = load(simd, x, at, mask);
                        let dy = T::load(simd, mask, dy.add(at));
                        let dy = values.stop_lanes(simd, affine.value(simd, x), dy);
                        let moved = T::times(simd, T::minus(simd, x, affine.mean), towards_mean);
                        T::times(simd, scale, T::minus(simd, T::minus(simd, dy, mean_dy), moved))
                    },
                );
            }
        }
    }
}

/// An affine map in all lanes.
struct Splat<T: Scalar, S: Simd> {
    mean: T::Vector<S>,
    slope: T::Vector<S>,
    beta: T::Vector<S>,
}

impl<T: Scalar, S: Simd> Splat<T, S> {
    #[inline(always)]
    fn new(simd: S, Affine { mean, slope, beta }: Affine<T>) -> Self {
        Self { mean: T::splat(simd, mean), slope: T::splat(simd, slope), beta: T::splat(simd, beta) }
    }

    #[inline(always)]
    fn value(&self, simd: S, x: T::Vector<S>) -> T::Vector<S> {
        T::multiply_add(simd, T::minus(simd, x, self.mean), self.slope, self.beta)
    }
}
