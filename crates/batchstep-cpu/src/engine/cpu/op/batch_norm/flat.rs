//! Planes of one value each: the channels are the vector.

use super::{Moments, Planes};
use crate::engine::cpu::op::parallel::{for_each_piece, part, piece};
use crate::engine::cpu::op::scalar::{Scalar, vectorised};
use crate::engine::cpu::op::scratch::List;

/// For each channel the sum over the batch of `term(channel, index of the value)`.
fn sums<const N: usize>(planes: Planes, term: impl Fn(usize, usize) -> [f64; N] + Sync) -> List<[f64; N]> {
    let step = piece(planes.channels, planes.values());
    let mut totals = List::repeat([0.0; N], planes.channels);
    for_each_piece(&mut totals, step, |number, totals| {
        vectorised(
            #[inline(always)]
            || {
                for image in 0..planes.batch {
                    for (total, channel) in totals.iter_mut().zip(number * step..) {
                        let terms = term(channel, image * planes.channels + channel);
                        total.iter_mut().zip(terms).for_each(|(total, term)| *total += term);
                    }
                }
            },
        );
    });
    totals
}

/// The moments of each channel of `x`.
pub fn moments<T: Scalar>(planes: Planes, x: &[T], made: &mut [Moments]) {
    let count = planes.values() as f64;
    // Distances to the first image's value, so that nothing is lost where the mean is large.
    let totals = sums(planes, |channel, at| {
        let distance = x[at] - x[channel];
        [distance.to_f64(), (distance * distance).to_f64()]
    });
    for (made, (centre, totals)) in made.iter_mut().zip(x.iter().zip(&totals)) {
        *made = Moments::about(centre.to_f64(), totals.map(|total| total / count));
    }
}

/// For each channel the sums of `dy` and of `dy (x - mean)`.
pub fn slopes<T: Scalar>(planes: Planes, x: &[T], dy: &[T], moments: &[Moments]) -> List<[f64; 2]> {
    let mean: List<T> = moments.iter().map(|moments| T::from_f64(moments.mean)).collect();
    sums(planes, |channel, at| [dy[at].to_f64(), (dy[at] * (x[at] - mean[channel])).to_f64()])
}

/// Sets each `y` to `value(channel's constant, x, y)`.
pub fn map<T: Scalar, C: Copy + Sync>(
    planes: Planes,
    x: &[T],
    constants: &[C],
    y: &mut [T],
    value: impl Fn(C, T, T) -> T + Sync,
) {
    let row = planes.channels;
    let rows = piece(planes.batch, row);
    for_each_piece(y, rows * row, |number, y| {
        let x = part(x, number, rows * row);
        vectorised(
            #[inline(always)]
            || {
                for (y, x) in y.chunks_exact_mut(row).zip(x.chunks_exact(row)) {
                    let values = y.iter_mut().zip(x).zip(constants);
                    values.for_each(|((y, x), constant)| *y = value(*constant, *x, *y));
                }
            },
        );
    });
}
