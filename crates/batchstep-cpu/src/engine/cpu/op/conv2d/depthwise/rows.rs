//! The sums of a depthwise convolution, register by register along the rows of a plane.

use pulp::{Simd, WithSimd};

use super::phases::{Phases, Tap};
use super::{Filter, K};
use crate::engine::cpu::op::activation;
use crate::engine::cpu::op::conv2d::geometry::Geometry;
use crate::engine::cpu::op::lanes::Lanes;
use crate::engine::cpu::op::scalar::Scalar;
use crate::engine::cpu::op::scratch::List;
use crate::engine::cpu::op::vector::inside;

/// Which rows of a plane the rows of a filter multiply for the rows of the result.
#[derive(Clone, Copy)]
pub(super) enum Rows<'a> {
    /// Row `i` of the filter multiplies row `r + i - top` for row `r`. Each row is read once, for all results that it
    /// contributes to.
    Successive { top: usize },
    /// For each row of the result, the row that each row of the filter multiplies; `None` where there is none.
    Listed(&'a [[Option<usize>; K]]),
}

/// For the rows of the output, the rows of the input.
pub(super) fn rows_forward(g: &Geometry) -> List<[Option<usize>; K]> {
    let row = |result: usize, filter: usize| (result * g.stride.height + filter).checked_sub(g.padding.top);
    let rows = |result| std::array::from_fn(|i| row(result, i).filter(|row| *row < g.height));
    (0..g.out_height).map(rows).collect()
}

/// For the rows of the input's gradient, the rows of the output's gradient.
pub(super) fn rows_backward(g: &Geometry) -> List<[Option<usize>; K]> {
    let row = |result: usize, filter: usize| {
        let row = (result + g.padding.top).checked_sub(filter)?;
        row.is_multiple_of(g.stride.height).then(|| row / g.stride.height)
    };
    let rows = |result| std::array::from_fn(|i| row(result, i).filter(|row| *row < g.out_height));
    (0..g.height).map(rows).collect()
}

/// A plane of a batch.
#[derive(Clone, Copy)]
pub(super) struct Plane<'a, T> {
    /// The first phase of all rows, then the second, and so on.
    pub values: &'a [T],
    pub rows: usize,
    /// Columns of a row, or of each of its phases.
    pub columns: usize,
}

impl<'a, T: Scalar> Plane<'a, T> {
    /// The plane with its rows split, where there are phases to split them into.
    pub(super) fn split(phases: Phases, values: &'a [T], room: &'a mut [T]) -> Self {
        let (rows, columns) = (values.len() / phases.width, phases.columns());
        if phases.stride == 1 {
            return Self { values, rows, columns };
        }
        phases.split(values, room);
        Self { values: room, rows, columns }
    }
}

/// Where a tap reads for the register that begins at some column, counted from the row's beginning, and the lanes for
/// which there are values.
type Reads<T, S> = Option<(isize, <T as Lanes>::Mask<S>)>;

#[inline(always)]
fn reads<T: Scalar, S: Simd>(simd: S, first: usize, taps: [Option<Tap>; K]) -> [Reads<T, S>; K] {
    let mut reads = [None; K];
    for (reads, tap) in reads.iter_mut().zip(taps) {
        let Some(Tap { start, shift, columns }) = tap else { continue };
        let at = first as isize + shift;
        *reads = Some((start + at, inside::<T, S>(simd, at, columns)));
    }
    reads
}

/// `to[r, c] = range(first + sum over (i, j) of filter[i, j] * from[rows(r, i), taps[j](c)])`, where values outside
/// `from` are zero.
pub(super) struct PlaneSum<'a, T> {
    pub from: Plane<'a, T>,
    pub filter: Filter<T>,
    pub first: T,
    pub range: activation::Range<T>,
    pub taps: [Option<Tap>; K],
    pub rows: Rows<'a>,
    pub columns: usize,
    pub to: &'a mut [T],
}

/// `values[j]` of row `row`: what the taps read.
///
/// # Safety
/// The masks must have lanes only inside the row.
#[inline(always)]
unsafe fn load<T: Scalar, S: Simd>(
    simd: S,
    from: Plane<'_, T>,
    row: usize,
    reads: &[Reads<T, S>; K],
) -> [T::Vector<S>; K] {
    let mut values = [T::splat(simd, T::ZERO); K];
    let start = from.values[row * from.columns..].as_ptr();
    for (values, read) in values.iter_mut().zip(reads) {
        if let Some((at, mask)) = read {
            // SAFETY: by the caller's promise.
            *values = unsafe { T::load(simd, *mask, start.wrapping_offset(*at)) };
        }
    }
    values
}

/// `total + sum over j of a[j] * b[j]`.
#[inline(always)]
fn add<T: Scalar, S: Simd>(simd: S, a: [T::Vector<S>; K], b: [T::Vector<S>; K], total: T::Vector<S>) -> T::Vector<S> {
    let total = T::multiply_add(simd, a[0], b[0], total);
    let total = T::multiply_add(simd, a[1], b[1], total);
    T::multiply_add(simd, a[2], b[2], total)
}

impl<T: Scalar> WithSimd for PlaneSum<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { from, filter, first: bias, range, taps, rows, columns, to } = self;
        let (lanes, zero, bias) = (T::lanes::<S>(), T::splat(simd, T::ZERO), T::splat(simd, bias));
        let mut weights = [[zero; K]; K];
        for i in 0..K {
            for j in 0..K {
                weights[i][j] = T::splat(simd, filter[i][j]);
            }
        }
        for first in (0..columns).step_by(lanes) {
            let reads = reads::<T, S>(simd, first, taps);
            let kept = T::mask(simd, 0..(columns - first).min(lanes));
            match rows {
                Rows::Successive { top } => {
                    // The sums of the results to which the next row adds its products with the first, second and third
                    // row of the filter.
                    let mut sums = [bias; K];
                    for row in 0..to.len() / columns + K - 1 - top {
                        if row < from.rows {
                            // SAFETY: the masks have the lanes that are inside of the row.
                            let values = unsafe { load(simd, from, row, &reads) };
                            for i in 0..K {
                                sums[i] = add::<T, S>(simd, weights[i], values, sums[i]);
                            }
                        }
                        if let Some(done) = (row + top).checked_sub(K - 1) {
                            let to = to[done * columns + first..].as_mut_ptr();
                            // SAFETY: the mask has the lanes that are inside of the row.
                            unsafe { T::store(simd, kept, to, range.clamp_lanes(simd, sums[K - 1])) };
                        }
                        sums = [bias, sums[0], sums[1]];
                    }
                }
                Rows::Listed(listed) => {
                    for (rows, to) in listed.iter().zip(to.chunks_exact_mut(columns)) {
                        // One sum for each row of the filter, so that they do not wait for each other.
                        let mut totals = [bias, zero, zero];
                        for i in 0..K {
                            let Some(row) = rows[i] else { continue };
                            // SAFETY: the masks have the lanes that are inside of the row.
                            let values = unsafe { load(simd, from, row, &reads) };
                            totals[i] = add::<T, S>(simd, weights[i], values, totals[i]);
                        }
                        let total = T::plus(simd, T::plus(simd, totals[0], totals[1]), totals[2]);
                        // SAFETY: the mask has the lanes that are inside of the row.
                        unsafe { T::store(simd, kept, to[first..].as_mut_ptr(), range.clamp_lanes(simd, total)) };
                    }
                }
            }
        }
    }
}

/// `sums[i, j] += sum over (r, c) of dy[r, c] * x[rows(r, i), taps[j](c)]`.
pub(super) struct WeightGradient<'a, T> {
    pub x: Plane<'a, T>,
    pub dy: Plane<'a, T>,
    pub rows: Rows<'a>,
    pub taps: [Option<Tap>; K],
    pub sums: &'a mut Filter<T>,
}

impl<T: Scalar> WithSimd for WeightGradient<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { x, dy, rows, taps, sums } = self;
        let (lanes, zero) = (T::lanes::<S>(), T::splat(simd, T::ZERO));
        let mut totals = [[zero; K]; K];
        for first in (0..dy.columns).step_by(lanes) {
            let reads = reads::<T, S>(simd, first, taps);
            let kept = T::mask(simd, 0..(dy.columns - first).min(lanes));
            let slope = |row: usize| match row < dy.rows {
                // SAFETY: the mask has the lanes that are inside of the row.
                true => unsafe { T::load(simd, kept, dy.values[row * dy.columns + first..].as_ptr()) },
                false => zero,
            };
            match rows {
                Rows::Successive { top } => {
                    // The gradients of the outputs to which the row before contributed.
                    let mut slopes = [zero; K];
                    for (i, slope_of) in slopes.iter_mut().enumerate().take(top) {
                        *slope_of = slope(top - 1 - i);
                    }
                    for row in 0..x.rows {
                        slopes = [slope(row + top), slopes[0], slopes[1]];
                        // SAFETY: the masks have the lanes that are inside of the row.
                        let values = unsafe { load(simd, x, row, &reads) };
                        multiply::<T, S, K>(simd, slopes, values, &mut totals);
                    }
                }
                Rows::Listed(listed) => {
                    for (row, rows) in listed.iter().enumerate() {
                        let slope = slope(row);
                        for (totals, row) in totals.iter_mut().zip(rows) {
                            let Some(row) = *row else { continue };
                            // SAFETY: the masks have the lanes that are inside of the row.
                            let values = unsafe { load(simd, x, row, &reads) };
                            multiply::<T, S, 1>(simd, [slope], values, std::array::from_mut(totals));
                        }
                    }
                }
            }
        }
        for (sums, totals) in sums.as_flattened_mut().iter_mut().zip(totals.as_flattened()) {
            *sums += T::sum(simd, *totals);
        }
    }
}

/// `totals[i][j] += slopes[i] * values[j]`.
#[inline(always)]
fn multiply<T: Scalar, S: Simd, const N: usize>(
    simd: S,
    slopes: [T::Vector<S>; N],
    values: [T::Vector<S>; K],
    totals: &mut [[T::Vector<S>; K]; N],
) {
    for i in 0..N {
        for j in 0..K {
            totals[i][j] = T::multiply_add(simd, slopes[i], values[j], totals[i][j]);
        }
    }
}
