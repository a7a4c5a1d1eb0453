//! The passes over planes of few values: the vector runs over the planes of some channels, which lie one after the
//! other. Sums over the batch are kept for each place in these planes and added up by channel at the end. Sums in
//! registers within each plane would take longer than reading the plane.

use std::ops::Range;

use super::{Affine, Input, Moments, Normaliser, Planes, Slope};
use crate::engine::cpu::op::parallel::Shared;
use crate::engine::cpu::op::scalar::{Scalar, vectorised};
use crate::engine::cpu::op::scratch::{List, Scratch};

/// The most values of such a plane: the constants and sums of 64 channels take eight times 16 KiB.
const VALUES: usize = 64;
/// With fewer images, spreading the constants takes longer than the work itself (measured on whole steps: docs/cpu-engine.md).
const FEWEST: usize = 4;
/// Images whose values are added up in the type of the values, before the sums go to float64.
const IMAGES: usize = 32;

/// Whether planes are of this kind.
pub fn suits(planes: Planes) -> bool {
    planes.size <= VALUES && planes.batch >= FEWEST
}

/// Where the planes of the channels lie, image by image.
fn images<T>(input: &Input<'_, T>) -> impl Iterator<Item = Range<usize>> + use<T> {
    let Input { planes, ref channels, .. } = *input;
    let (start, len) = (channels.start * planes.size, channels.len() * planes.size);
    (0..planes.batch).map(move |image| {
        let start = image * planes.channels * planes.size + start;
        start..start + len
    })
}

/// Each channel's number, repeated for each of its values in a plane.
fn spread<T: Scalar>(planes: Planes, numbers: impl ExactSizeIterator<Item = T>) -> Scratch<T> {
    let mut all = Scratch::new(numbers.len() * planes.size);
    all.chunks_exact_mut(planes.size).zip(numbers).for_each(|(all, number)| all.fill(number));
    all
}

/// Affine maps for each value of a plane.
struct Maps<T: Scalar> {
    mean: Scratch<T>,
    slope: Scratch<T>,
    beta: Scratch<T>,
}

impl<T: Scalar> Maps<T> {
    fn new(planes: Planes, affine: &[Affine<T>]) -> Self {
        Self {
            mean: spread(planes, affine.iter().map(|affine| affine.mean)),
            slope: spread(planes, affine.iter().map(|affine| affine.slope)),
            beta: spread(planes, affine.iter().map(|affine| affine.beta)),
        }
    }

    /// The maps of the first `len` values. With slices of one length, the loops need no bounds checks.
    #[inline(always)]
    fn of(&self, len: usize) -> impl Fn(usize) -> Affine<T> {
        let (mean, slope, beta) = (&self.mean[..len], &self.slope[..len], &self.beta[..len]);
        move |at| Affine { mean: mean[at], slope: slope[at], beta: beta[at] }
    }
}

/// For each channel the two sums over the batch that `add` forms; it adds an image's values to two rows.
fn sums<T: Scalar>(input: &Input<'_, T>, mut add: impl FnMut(Range<usize>, [&mut [T]; 2])) -> List<[f64; 2]> {
    let Input { planes, channels, .. } = input;
    let len = channels.len() * planes.size;
    let mut totals = List::repeat([0.0; 2], channels.len());
    let (mut first, mut second) = (Scratch::<T>::zeros(len), Scratch::<T>::zeros(len));
    for (image, places) in images(input).enumerate() {
        add(places, [&mut first, &mut second]);
        if (image + 1).is_multiple_of(IMAGES) || image + 1 == planes.batch {
            let rows = first.chunks_exact(planes.size).zip(second.chunks_exact(planes.size));
            for (totals, (first, second)) in totals.iter_mut().zip(rows) {
                let sum = |values: &[T]| values.iter().map(|value| value.to_f64()).sum::<f64>();
                *totals = [totals[0] + sum(first), totals[1] + sum(second)];
            }
            first.fill(T::ZERO);
            second.fill(T::ZERO);
        }
    }
    totals
}

/// The moments of the channels.
pub fn moments<T: Scalar>(input: &Input<'_, T>) -> List<Moments> {
    let Input { planes, ref channels, .. } = *input;
    let count = planes.values() as f64;
    // Distances to the mean of the first image's plane, as in `vectors.rs`.
    let first = channels.start * planes.size;
    let planes_of_first = input.values(&(first..first + channels.len() * planes.size)).chunks_exact(planes.size);
    let mean = |plane: &[T]| T::from_f64(plane.iter().map(|x| x.to_f64()).sum::<f64>() / planes.size as f64);
    let centres: List<T> = planes_of_first.map(mean).collect();
    let centre = spread(planes, centres.iter().copied());
    let totals = sums(input, |places, [distances, squares]: [&mut [T]; 2]| {
        let x = input.values(&places);
        vectorised(
            #[inline(always)]
            || {
                let (centre, len) = (&centre[..x.len()], x.len());
                let (distances, squares) = (&mut distances[..len], &mut squares[..len]);
                for at in 0..len {
                    let distance = x[at] - centre[at];
                    distances[at] += distance;
                    squares[at] += distance * distance;
                }
            },
        );
    });
    let of = |(centre, totals): (&T, &[f64; 2])| Moments::about(centre.to_f64(), totals.map(|total| total / count));
    centres.iter().zip(&totals).map(of).collect()
}

/// `y = range((x - mean) * slope + beta)` for the channels, those of `y` belong to the caller.
pub fn normalise<T: Scalar>(input: &Input<'_, T>, by: Normaliser<'_, T>, y: &Shared<'_, T>) {
    let (maps, range) = (Maps::new(input.planes, by.affine), by.range);
    for places in images(input) {
        // SAFETY: by the caller's promise.
        let (x, y) = (input.values(&places), unsafe { y.slice(places.start, places.len()) });
        vectorised(
            #[inline(always)]
            || {
                let (map, len) = (maps.of(x.len()), x.len());
                let y = &mut y[..len];
                for at in 0..len {
                    y[at] = range.clamp(map(at).value(x[at]));
                }
            },
        );
    }
}

/// For the channels the sums of `dy` and of `dy (x - mean)`, where `dy` is zero wherever the normalised value is outside of the range; no task writes to them.
pub fn slope_sums<T: Scalar>(input: &Input<'_, T>, by: Normaliser<'_, T>, dy: &Shared<'_, T>) -> List<[f64; 2]> {
    let (maps, range) = (Maps::new(input.planes, by.affine), by.range);
    sums(input, |places, [slopes, products]: [&mut [T]; 2]| {
        // SAFETY: by the caller's promise.
        let (x, dy) = (input.values(&places), unsafe { dy.get(places.start, places.len()) });
        vectorised(
            #[inline(always)]
            || {
                let (map, len) = (maps.of(x.len()), x.len());
                let (dy, slopes, products) = (&dy[..len], &mut slopes[..len], &mut products[..len]);
                for at in 0..len {
                    let map = map(at);
                    let dy = range.stopped(map.value(x[at]), dy[at]);
                    slopes[at] += dy;
                    products[at] += dy * (x[at] - map.mean);
                }
            },
        );
    })
}

/// The gradient of x in the place of `dy`, for the channels; those of `dy` belong to the caller.
pub fn input_gradient<T: Scalar>(input: &Input<'_, T>, by: Normaliser<'_, T>, slopes: &[Slope<T>], dy: &Shared<'_, T>) {
    let (planes, range) = (input.planes, by.range);
    let maps = Maps::new(planes, by.affine);
    let scale = spread(planes, slopes.iter().map(|slope| slope.scale));
    let mean_dy = spread(planes, slopes.iter().map(|slope| slope.mean_dy));
    let towards_mean = spread(planes, slopes.iter().map(|slope| slope.towards_mean));
    for places in images(input) {
        // SAFETY: by the caller's promise.
        let (x, dy) = (input.values(&places), unsafe { dy.slice(places.start, places.len()) });
        vectorised(
            #[inline(always)]
            || {
                let (map, len) = (maps.of(x.len()), x.len());
                let (scale, mean_dy, towards_mean) = (&scale[..len], &mean_dy[..len], &towards_mean[..len]);
                let dy = &mut dy[..len];
                for at in 0..len {
                    let map = map(at);
                    let slope = Slope { scale: scale[at], mean_dy: mean_dy[at], towards_mean: towards_mean[at] };
                    dy[at] = slope.of(x[at] - map.mean, range.stopped(map.value(x[at]), dy[at]));
                }
            },
        );
    }
}
