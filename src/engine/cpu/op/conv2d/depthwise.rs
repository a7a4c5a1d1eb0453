//! Depthwise convolution with 3x3 filters, one per channel: a direct loop over the taps.
//!
//! An output row is a sum of input rows, each shifted by the tap's column and multiplied by its weight; a register reads a
//! row at an offset, with zeros beyond the row's ends, so that nothing is copied or padded. A horizontal stride is left to
//! the end or the beginning: the forward pass computes every column and keeps those that are wanted, and the backward pass
//! puts zeros between the columns of the output's gradient. Strides occur in few layers, and those have few outputs.

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::cpu_backward::Gradients;
use super::geometry::Geometry;
use crate::engine::cpu::op::activation;
use crate::engine::cpu::op::filters::Filters;
use crate::engine::cpu::op::parallel::{Shared, for_each_task, piece};
use crate::engine::cpu::op::scalar::Scalar;
use crate::engine::cpu::op::scratch::Scratch;
use crate::network::Extent;

/// Rows and columns of a filter.
const K: usize = 3;

type Filter<T> = [[T; K]; K];

/// Whether a convolution is of this kind.
pub fn suits(g: &Geometry) -> bool {
    g.is_depthwise() && g.kernel == Extent::square(K) && g.padding.left < K
}

/// The filter of a channel.
fn filter<T: Scalar>(weight: &[T], channel: usize) -> Filter<T> {
    std::array::from_fn(|i| std::array::from_fn(|j| weight[(channel * K + i) * K + j]))
}

/// For each row of a result the rows that the filter's rows multiply, where there are such rows.
type Rows = Vec<[Option<usize>; K]>;

/// The rows of the input for each row of the output.
fn rows_forward(g: &Geometry) -> Rows {
    let row = |y: usize, i: usize| (y * g.stride.height + i).checked_sub(g.padding.top).filter(|row| *row < g.height);
    (0..g.out_height).map(|y| std::array::from_fn(|i| row(y, i))).collect()
}

/// The rows of the output's gradient for each row of the input's.
fn rows_backward(g: &Geometry) -> Rows {
    let row = |y: usize, i: usize| {
        let row = (y + g.padding.top).checked_sub(i).filter(|row| row.is_multiple_of(g.stride.height))?;
        Some(row / g.stride.height).filter(|row| *row < g.out_height)
    };
    (0..g.height).map(|y| std::array::from_fn(|i| row(y, i))).collect()
}

/// `y = rectifier(w * x + bias)`, channel by channel.
pub fn forward<T: Scalar>(g: &Geometry, x: &[T], filters: Filters<'_, T>, y: &mut [T]) {
    let range = filters.rectifier.range::<T>();
    let planes = piece(g.batch * g.in_channels, g.positions() * g.taps() / 4);
    let pixels = g.height * g.width;
    let (columns, rows) = (dilated(g), rows_forward(g));
    let scratch = || Scratch::new(if g.stride.width == 1 { 0 } else { g.out_height * columns });
    y.par_chunks_mut(planes * g.positions()).enumerate().for_each_init(scratch, |all, (task, y)| {
        for (plane, y) in (task * planes..).zip(y.chunks_exact_mut(g.positions())) {
            let channel = plane % g.in_channels;
            let sum = Sum {
                from: Plane { values: &x[plane * pixels..(plane + 1) * pixels], columns: g.width },
                filter: filter(&filters.weight[..], channel),
                first: filters.bias(channel),
                range,
                left: g.padding.left,
                rows: &rows,
                columns,
                to: if g.stride.width == 1 { &mut y[..] } else { &mut all[..] },
            };
            Arch::new().dispatch(sum);
            if g.stride.width != 1 {
                for (y, all) in y.chunks_exact_mut(g.out_width).zip(all.chunks_exact(columns)) {
                    y.iter_mut().zip(all.iter().step_by(g.stride.width)).for_each(|(y, value)| *y = *value);
                }
            }
        }
    });
}

/// Columns of an output before a stride leaves some out.
fn dilated(g: &Geometry) -> usize {
    (g.out_width - 1) * g.stride.width + 1
}

/// The gradients that are wanted; a task owns some channels of the whole batch.
pub fn backward<T: Scalar>(g: &Geometry, x: &[T], weight: &[T], dy: &[T], into: Gradients<'_, T>) {
    let (dx, dw) = (into.x.map(Shared::new), into.weight.map(Shared::new));
    let (pixels, columns) = (g.height * g.width, dilated(g));
    let (forward, backward) = (rows_forward(g), rows_backward(g));
    let step = piece(g.in_channels, g.batch * g.positions() * g.taps() / 2);
    let scratch = || Scratch::zeros(if g.stride.width == 1 { 0 } else { g.out_height * columns });
    for_each_task(g.in_channels.div_ceil(step), scratch, |apart, task| {
        let channels = task * step..((task + 1) * step).min(g.in_channels);
        let mut sums = vec![[[T::ZERO; K]; K]; channels.len()];
        for image in 0..g.batch {
            for (channel, sums) in channels.clone().zip(&mut sums) {
                let plane = image * g.in_channels + channel;
                let dy = &dy[plane * g.positions()..(plane + 1) * g.positions()];
                if g.stride.width != 1 {
                    for (apart, dy) in apart.chunks_exact_mut(columns).zip(dy.chunks_exact(g.out_width)) {
                        apart.iter_mut().step_by(g.stride.width).zip(dy).for_each(|(to, dy)| *to = *dy);
                    }
                }
                let values = if g.stride.width == 1 { dy } else { &apart[..] };
                let slopes = Plane { values, columns };
                if dw.is_some() {
                    let x = Plane { values: &x[plane * pixels..(plane + 1) * pixels], columns: g.width };
                    Arch::new().dispatch(WeightGradient { x, slopes, rows: &forward, left: g.padding.left, sums });
                }
                if let Some(dx) = &dx {
                    Arch::new().dispatch(Sum {
                        from: slopes,
                        filter: filter(weight, channel).map(|[a, b, c]| [c, b, a]),
                        first: T::ZERO,
                        range: activation::Rectifier::Identity.range(),
                        left: K - 1 - g.padding.left,
                        rows: &backward,
                        columns: g.width,
                        // SAFETY: this channel belongs to this task.
                        to: unsafe { dx.slice(plane * pixels, pixels) },
                    });
                }
            }
        }
        if let Some(dw) = &dw {
            // SAFETY: these channels belong to this task.
            let dw = unsafe { dw.slice(channels.start * K * K, channels.len() * K * K) };
            dw.copy_from_slice(sums.as_flattened().as_flattened());
        }
    });
}

/// A plane of a batch.
#[derive(Clone, Copy)]
struct Plane<'a, T> {
    values: &'a [T],
    columns: usize,
}

/// For each column of a filter the lanes of the register that begins at column `first` for which there are values in a row of
/// `columns`, read as many columns further on, less `left`.
#[inline(always)]
fn masks<T: Scalar, S: Simd>(simd: S, first: usize, left: usize, columns: usize) -> [T::Mask<S>; K] {
    let lanes = T::lanes::<S>();
    let mut masks = [T::mask(simd, 0..lanes); K];
    for (j, mask) in masks.iter_mut().enumerate() {
        let start = left.saturating_sub(j + first).min(lanes);
        let end = (columns + left).saturating_sub(j + first).min(lanes);
        *mask = T::mask(simd, start..end.max(start));
    }
    masks
}

/// `to[r, c] = range(first + sum over (i, j) of filter[i, j] * from[rows[r][i], c + j - left])`, zero for what is outside of `from`.
struct Sum<'a, T> {
    from: Plane<'a, T>,
    filter: Filter<T>,
    first: T,
    range: activation::Range<T>,
    left: usize,
    rows: &'a Rows,
    columns: usize,
    to: &'a mut [T],
}

impl<T: Scalar> WithSimd for Sum<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { from, filter, first: bias, range, left, rows, columns, to } = self;
        let lanes = T::lanes::<S>();
        let mut weights = [[T::splat(simd, T::ZERO); K]; K];
        for i in 0..K {
            for j in 0..K {
                weights[i][j] = T::splat(simd, filter[i][j]);
            }
        }
        for first in (0..columns).step_by(lanes) {
            let masks = masks::<T, S>(simd, first, left, from.columns);
            let kept = T::mask(simd, 0..(columns - first).min(lanes));
            for (to, rows) in to.chunks_exact_mut(columns).zip(rows) {
                // A sum for each row of the filter, so that none has to wait for another.
                let mut totals = [T::splat(simd, bias), T::splat(simd, T::ZERO), T::splat(simd, T::ZERO)];
                for i in 0..K {
                    let Some(row) = rows[i] else { continue };
                    let values = from.values[row * from.columns..].as_ptr().wrapping_add(first).wrapping_sub(left);
                    for j in 0..K {
                        // SAFETY: the mask has the lanes that are inside of the row.
                        let values = unsafe { T::load(simd, masks[j], values.wrapping_add(j)) };
                        totals[i] = T::multiply_add(simd, weights[i][j], values, totals[i]);
                    }
                }
                let total = T::plus(simd, T::plus(simd, totals[0], totals[1]), totals[2]);
                // SAFETY: the mask has the lanes that are inside of the row.
                unsafe { T::store(simd, kept, to[first..].as_mut_ptr(), range.clamp_lanes(simd, total)) };
            }
        }
    }
}

/// `sums[i, j] += sum over (r, c) of slopes[r, c] * x[rows[r][i], c + j - left]`.
struct WeightGradient<'a, T> {
    x: Plane<'a, T>,
    slopes: Plane<'a, T>,
    rows: &'a Rows,
    left: usize,
    sums: &'a mut Filter<T>,
}

impl<T: Scalar> WithSimd for WeightGradient<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { x, slopes, rows, left, sums } = self;
        let lanes = T::lanes::<S>();
        let mut totals = [[T::splat(simd, T::ZERO); K]; K];
        for first in (0..slopes.columns).step_by(lanes) {
            let masks = masks::<T, S>(simd, first, left, x.columns);
            let kept = T::mask(simd, 0..(slopes.columns - first).min(lanes));
            for (dy, rows) in slopes.values.chunks_exact(slopes.columns).zip(rows) {
                // SAFETY: the mask has the lanes that are inside of the row.
                let dy = unsafe { T::load(simd, kept, dy[first..].as_ptr()) };
                for i in 0..K {
                    let Some(row) = rows[i] else { continue };
                    let values = x.values[row * x.columns..].as_ptr().wrapping_add(first).wrapping_sub(left);
                    for j in 0..K {
                        // SAFETY: the mask has the lanes that are inside of the row.
                        let values = unsafe { T::load(simd, masks[j], values.wrapping_add(j)) };
                        totals[i][j] = T::multiply_add(simd, dy, values, totals[i][j]);
                    }
                }
            }
        }
        for (sums, totals) in sums.as_flattened_mut().iter_mut().zip(totals.as_flattened()) {
            *sums += T::sum(simd, *totals);
        }
    }
}
