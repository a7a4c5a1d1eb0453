//! Depthwise convolution with 3x3 filters, one per channel: a direct loop over the taps.
//!
//! An output row is a sum of input rows, each shifted by the tap's column and multiplied by its weight; a register reads a
//! row at an offset, with zeros beyond the row's ends, so that nothing is copied or padded. With a horizontal stride s each row of the input
//! is split into s phases first, every s-th column from each of the first s on: a tap then reads one phase as it would a row.

mod narrow;
mod phases;

use std::ops::Range;

use pulp::{Arch, Simd, WithSimd};

use super::cpu_backward::Gradients;
use super::geometry::Geometry;
use crate::engine::cpu::op::activation::{self, Rectifier};
use crate::engine::cpu::op::filters::Filters;
use crate::engine::cpu::op::parallel::{CHANNELS, Shared, for_each_channels};
use crate::engine::cpu::op::scalar::Scalar;
use crate::engine::cpu::op::scratch::{List, Scratch};
use crate::engine::cpu::op::vector::Lanes;
use crate::network::Extent;
use phases::{Phases, Tap};

/// Rows and columns of a filter.
const K: usize = 3;

type Filter<T> = [[T; K]; K];

/// Whether a convolution is of this kind.
pub fn suits(g: &Geometry) -> bool {
    g.is_depthwise() && g.kernel == Extent::square(K) && g.padding.left < K
}

/// Whether rows are read one after the other.
fn is_successive(g: &Geometry) -> bool {
    g.stride.height == 1 && g.padding.top < K
}

/// The filter of a channel.
fn filter<T: Scalar>(weight: &[T], channel: usize) -> Filter<T> {
    std::array::from_fn(|i| std::array::from_fn(|j| weight[(channel * K + i) * K + j]))
}

/// Scalars per channel, of the larger of input and output.
fn values(g: &Geometry) -> usize {
    g.batch * (g.height * g.width).max(g.positions())
}

/// `y = rectifier(w * x + bias)`, channel by channel.
pub fn forward<T: Scalar>(g: &Geometry, x: &[T], filters: Filters<'_, T>, y: &mut [T]) {
    let (x, y) = (Shared::reading(x), Shared::new(y));
    // SAFETY: no two calls have a channel in common.
    for_each_channels(g.in_channels, values(g), |channels| unsafe { forward_channels(g, channels, &x, filters, &y) });
}

/// [`forward`] for some channels.
///
/// # Safety
/// No other task may write to these channels of `x` meanwhile, or use those of `y`.
pub unsafe fn forward_channels<T: Scalar>(
    g: &Geometry,
    channels: Range<usize>,
    x: &Shared<'_, T>,
    filters: Filters<'_, T>,
    y: &Shared<'_, T>,
) {
    if narrow::suits(g) {
        return Arch::new().dispatch(narrow::Sum {
            g,
            channels,
            from: x,
            filter: |channel| filter(filters.weight, channel),
            first: |channel| filters.bias(channel),
            range: filters.rectifier.range(),
            to: y,
        });
    }
    let (pixels, phases) = (g.height * g.width, Phases::of_input(g));
    let listed = (!is_successive(g)).then(|| rows_forward(g));
    let rows = listed.as_ref().map_or(Rows::Successive { top: g.padding.top }, |listed| Rows::Listed(listed));
    let taps = phases.taps_forward(g.padding.left, g.height);
    let mut room = Scratch::new(phases.room(g.height));
    for image in 0..g.batch {
        for channel in channels.clone() {
            let plane = image * g.in_channels + channel;
            // SAFETY: by the caller's promise.
            let (x, y) = unsafe { (x.get(plane * pixels, pixels), y.slice(plane * g.positions(), g.positions())) };
            Arch::new().dispatch(Sum {
                from: Plane::split(phases, x, &mut room),
                filter: filter(filters.weight, channel),
                first: filters.bias(channel),
                range: filters.rectifier.range(),
                taps,
                rows,
                columns: g.out_width,
                to: y,
            });
        }
    }
}

/// The gradients that are wanted.
pub fn backward<T: Scalar>(g: &Geometry, x: &[T], weight: &[T], dy: &[T], into: Gradients<'_, T>) {
    let (x, dy) = (&Shared::reading(x), &Shared::reading(dy));
    let (dx, dw) = (into.x.map(Shared::new), into.weight.map(Shared::new));
    let slopes = Slopes { dy, dx: dx.as_ref(), dw: dw.as_ref() };
    // SAFETY: no two calls have a channel in common.
    for_each_channels(g.in_channels, values(g), |channels| unsafe {
        backward_channels(g, channels, x, weight, slopes)
    });
}

/// A gradient, and where those go to that are made of it; `None` for those that are not wanted.
pub struct Slopes<'a, T> {
    pub dy: &'a Shared<'a, T>,
    pub dx: Option<&'a Shared<'a, T>>,
    pub dw: Option<&'a Shared<'a, T>>,
}

impl<T> Clone for Slopes<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Slopes<'_, T> {}

/// [`backward`] for some channels.
///
/// # Safety
/// No other task may write to these channels of `x` and `dy` meanwhile, or use those of `dx` and `dw`.
pub unsafe fn backward_channels<T: Scalar>(
    g: &Geometry,
    channels: Range<usize>,
    x: &Shared<'_, T>,
    weight: &[T],
    slopes: Slopes<'_, T>,
) {
    if narrow::suits(g) {
        // SAFETY: by the caller's promise.
        return unsafe { narrow_backward(g, channels, x, weight, slopes) };
    }
    let (pixels, phases) = (g.height * g.width, Phases::of_input(g));
    let listed = (!is_successive(g)).then(|| [rows_forward(g), rows_backward(g)]);
    let [forward, backward] = match &listed {
        // A row of the input has a part in the outputs of the rows before it.
        None => [g.padding.top, K - 1 - g.padding.top].map(|top| Rows::Successive { top }),
        Some([forward, backward]) => [Rows::Listed(forward), Rows::Listed(backward)],
    };
    let taps_forward = phases.taps_forward(g.padding.left, g.height);
    let taps_backward = |phase| phases.taps_backward(g.padding.left, phase, g.out_width);
    let taps_backward: List<_> = (0..phases.stride).map(taps_backward).collect();
    let mut room = Scratch::new(phases.room(g.height));
    let mut sums = [[[T::ZERO; K]; K]; CHANNELS];
    for image in 0..g.batch {
        for (channel, sums) in channels.clone().zip(&mut sums) {
            let plane = image * g.in_channels + channel;
            // SAFETY: by the caller's promise.
            let (x, dy) =
                unsafe { (x.get(plane * pixels, pixels), slopes.dy.get(plane * g.positions(), g.positions())) };
            let dy = Plane { values: dy, rows: g.out_height, columns: g.out_width };
            if slopes.dw.is_some() {
                let x = Plane::split(phases, x, &mut room);
                Arch::new().dispatch(WeightGradient { x, dy, rows: forward, taps: taps_forward, sums });
            }
            let Some(dx) = slopes.dx else { continue };
            // SAFETY: by the caller's promise.
            let dx = unsafe { dx.slice(plane * pixels, pixels) };
            let size = g.height * phases.columns();
            for (phase, taps) in taps_backward.iter().enumerate() {
                Arch::new().dispatch(Sum {
                    from: dy,
                    filter: match backward {
                        Rows::Successive { .. } => {
                            let [a, b, c] = filter(weight, channel);
                            [c, b, a]
                        }
                        Rows::Listed(_) => filter(weight, channel),
                    },
                    first: T::ZERO,
                    range: Rectifier::Identity.range(),
                    taps: *taps,
                    rows: backward,
                    columns: phases.columns(),
                    to: if phases.stride == 1 { &mut *dx } else { &mut room[phase * size..][..size] },
                });
            }
            if phases.stride > 1 {
                phases.join(&room, dx);
            }
        }
    }
    if let Some(dw) = slopes.dw {
        // SAFETY: by the caller's promise.
        let dw = unsafe { dw.slice(channels.start * K * K, channels.len() * K * K) };
        dw.copy_from_slice(sums[..channels.len()].as_flattened().as_flattened());
    }
}

/// # Safety
/// As for [`backward_channels`].
unsafe fn narrow_backward<T: Scalar>(
    g: &Geometry,
    channels: Range<usize>,
    x: &Shared<'_, T>,
    weight: &[T],
    slopes: Slopes<'_, T>,
) {
    let Slopes { dy, dx, dw } = slopes;
    if let Some(dw) = dw {
        let sums = Arch::new().dispatch(narrow::WeightGradient { g, channels: channels.clone(), x, dy });
        // SAFETY: by the caller's promise.
        let dw = unsafe { dw.slice(channels.start * K * K, channels.len() * K * K) };
        dw.copy_from_slice(sums.as_flattened().as_flattened());
    }
    if let Some(dx) = dx {
        Arch::new().dispatch(narrow::Sum {
            g,
            channels,
            from: dy,
            // Turned by half a circle.
            filter: |channel| {
                let mut filter = filter(weight, channel).map(|[a, b, c]| [c, b, a]);
                filter.reverse();
                filter
            },
            first: |_| T::ZERO,
            range: Rectifier::Identity.range(),
            to: dx,
        });
    }
}

/// Which rows of a plane the rows of a filter multiply for the rows of the result.
#[derive(Clone, Copy)]
enum Rows<'a> {
    /// Row `i` of the filter multiplies row `r + i - top` for row `r`. Each row is read once, for all results that it is a part of.
    Successive { top: usize },
    /// For each row of the result those of the filter's rows; `None` where there is no such row.
    Listed(&'a [[Option<usize>; K]]),
}

/// For the output: rows of the input.
fn rows_forward(g: &Geometry) -> List<[Option<usize>; K]> {
    let row = |result: usize, filter: usize| (result * g.stride.height + filter).checked_sub(g.padding.top);
    let rows = |result| std::array::from_fn(|i| row(result, i).filter(|row| *row < g.height));
    (0..g.out_height).map(rows).collect()
}

/// For the gradient of the input: rows of that of the output.
fn rows_backward(g: &Geometry) -> List<[Option<usize>; K]> {
    let row = |result: usize, filter: usize| {
        let row = (result + g.padding.top).checked_sub(filter)?;
        row.is_multiple_of(g.stride.height).then(|| row / g.stride.height)
    };
    let rows = |result| std::array::from_fn(|i| row(result, i).filter(|row| *row < g.out_height));
    (0..g.height).map(rows).collect()
}

/// A plane of a batch.
#[derive(Clone, Copy)]
struct Plane<'a, T> {
    /// The first phase of all rows, then the second, and so on.
    values: &'a [T],
    rows: usize,
    /// Of a row, or of each of its phases.
    columns: usize,
}

impl<'a, T: Scalar> Plane<'a, T> {
    /// The plane with its rows split, where there are phases to split them into.
    fn split(phases: Phases, values: &'a [T], room: &'a mut [T]) -> Self {
        let (rows, columns) = (values.len() / phases.width, phases.columns());
        if phases.stride == 1 {
            return Self { values, rows, columns };
        }
        phases.split(values, room);
        Self { values: room, rows, columns }
    }
}

/// Where a tap reads for the register that begins at some column, from a row's beginning on, and the lanes for which there are values.
type Reads<T, S> = Option<(isize, <T as Lanes>::Mask<S>)>;

#[inline(always)]
fn reads<T: Scalar, S: Simd>(simd: S, first: usize, taps: [Option<Tap>; K]) -> [Reads<T, S>; K] {
    let lanes = T::lanes::<S>() as isize;
    let mut reads = [None; K];
    for (reads, tap) in reads.iter_mut().zip(taps) {
        let Some(Tap { start, shift, columns }) = tap else { continue };
        let at = first as isize + shift;
        let from = (-at).clamp(0, lanes);
        let to = (columns as isize - at).clamp(from, lanes);
        *reads = Some((start + at, T::mask(simd, from as usize..to as usize)));
    }
    reads
}

/// `to[r, c] = range(first + sum over (i, j) of filter[i, j] * from[rows(r, i), taps[j](c)])`, zero for what is outside of `from`.
struct Sum<'a, T> {
    from: Plane<'a, T>,
    filter: Filter<T>,
    first: T,
    range: activation::Range<T>,
    taps: [Option<Tap>; K],
    rows: Rows<'a>,
    columns: usize,
    to: &'a mut [T],
}

/// `values[j]` of row `row`: what the taps read.
///
/// # Safety
/// The masks must have lanes inside of the row alone.
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

impl<T: Scalar> WithSimd for Sum<'_, T> {
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
                    // Of the results to which the next row adds its products with the first, second and third row of the filter.
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
                        // A sum for each row of the filter, so that none has to wait for another.
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
struct WeightGradient<'a, T> {
    x: Plane<'a, T>,
    dy: Plane<'a, T>,
    rows: Rows<'a>,
    taps: [Option<Tap>; K],
    sums: &'a mut Filter<T>,
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
                    // Those of the outputs in which the row before had its part.
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
