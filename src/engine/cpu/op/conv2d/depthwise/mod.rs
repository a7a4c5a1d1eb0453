//! Depthwise convolution with 3x3 filters, one per channel: a direct loop over the taps.
//!
//! An output row is a sum of input rows, each shifted by the tap's column and multiplied by its weight; a register reads a
//! row at an offset, with zeros beyond the row's ends, so that nothing is copied or padded. A horizontal stride is left to
//! the end or the beginning: the forward pass computes every column and keeps those that are wanted, and the backward pass
//! puts zeros between the columns of the output's gradient. Strides occur in few layers, and those have few outputs.

mod narrow;

use std::ops::Range;

use pulp::{Arch, Simd, WithSimd};

use super::cpu_backward::Gradients;
use super::geometry::Geometry;
use crate::engine::cpu::op::activation::{self, Rectifier};
use crate::engine::cpu::op::filters::Filters;
use crate::engine::cpu::op::parallel::{CHANNELS, Shared, for_each_channels};
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

/// Columns of an output before a stride leaves some out.
fn dilated(g: &Geometry) -> usize {
    (g.out_width - 1) * g.stride.width + 1
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
    let (pixels, columns, strided) = (g.height * g.width, dilated(g), g.stride.width != 1);
    let rows = RowsForward { stride: g.stride.height, top: g.padding.top, rows: g.height };
    let mut all = Scratch::new(if strided { g.out_height * columns } else { 0 });
    for image in 0..g.batch {
        for channel in channels.clone() {
            let plane = image * g.in_channels + channel;
            // SAFETY: by the caller's promise.
            let (x, y) = unsafe { (x.get(plane * pixels, pixels), y.slice(plane * g.positions(), g.positions())) };
            Arch::new().dispatch(Sum {
                from: Plane { values: x, columns: g.width },
                filter: filter(filters.weight, channel),
                first: filters.bias(channel),
                range: filters.rectifier.range(),
                left: g.padding.left,
                rows,
                columns,
                to: if strided { &mut all[..] } else { &mut *y },
            });
            if strided {
                for (y, all) in y.chunks_exact_mut(g.out_width).zip(all.chunks_exact(columns)) {
                    y.iter_mut().zip(all.iter().step_by(g.stride.width)).for_each(|(y, value)| *y = *value);
                }
            }
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
    let (pixels, columns, strided) = (g.height * g.width, dilated(g), g.stride.width != 1);
    let forward = RowsForward { stride: g.stride.height, top: g.padding.top, rows: g.height };
    let backward = RowsBackward { stride: g.stride.height, top: g.padding.top, rows: g.out_height };
    let mut apart = Scratch::zeros(if strided { g.out_height * columns } else { 0 });
    let mut sums = [[[T::ZERO; K]; K]; CHANNELS];
    for image in 0..g.batch {
        for (channel, sums) in channels.clone().zip(&mut sums) {
            let plane = image * g.in_channels + channel;
            // SAFETY: by the caller's promise.
            let (x, dy) =
                unsafe { (x.get(plane * pixels, pixels), slopes.dy.get(plane * g.positions(), g.positions())) };
            if strided {
                for (apart, dy) in apart.chunks_exact_mut(columns).zip(dy.chunks_exact(g.out_width)) {
                    apart.iter_mut().step_by(g.stride.width).zip(dy).for_each(|(to, dy)| *to = *dy);
                }
            }
            let dy = Plane { values: if strided { &apart[..] } else { dy }, columns };
            if slopes.dw.is_some() {
                let x = Plane { values: x, columns: g.width };
                Arch::new().dispatch(WeightGradient { x, dy, rows: forward, left: g.padding.left, sums });
            }
            if let Some(dx) = slopes.dx {
                Arch::new().dispatch(Sum {
                    from: dy,
                    filter: filter(weight, channel).map(|[a, b, c]| [c, b, a]),
                    first: T::ZERO,
                    range: Rectifier::Identity.range(),
                    left: K - 1 - g.padding.left,
                    rows: backward,
                    columns: g.width,
                    // SAFETY: by the caller's promise.
                    to: unsafe { dx.slice(plane * pixels, pixels) },
                });
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

/// Which row of a plane a row of the filter multiplies for a row of the result.
trait Rows: Copy {
    /// `None` where there is no such row.
    fn row(self, result: usize, filter: usize) -> Option<usize>;
}

/// For the output: rows of the input.
#[derive(Clone, Copy)]
struct RowsForward {
    stride: usize,
    top: usize,
    rows: usize,
}

impl Rows for RowsForward {
    #[inline(always)]
    fn row(self, result: usize, filter: usize) -> Option<usize> {
        (result * self.stride + filter).checked_sub(self.top).filter(|row| *row < self.rows)
    }
}

/// For the gradient of the input: rows of that of the output.
#[derive(Clone, Copy)]
struct RowsBackward {
    stride: usize,
    top: usize,
    rows: usize,
}

impl Rows for RowsBackward {
    #[inline(always)]
    fn row(self, result: usize, filter: usize) -> Option<usize> {
        let row = (result + self.top).checked_sub(filter)?;
        // A division takes as long as a register's sum.
        let row = match self.stride {
            1 => row,
            stride => row.is_multiple_of(stride).then(|| row / stride)?,
        };
        Some(row).filter(|row| *row < self.rows)
    }
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

/// `to[r, c] = range(first + sum over (i, j) of filter[i, j] * from[rows(r, i), c + j - left])`, zero for what is outside of `from`.
struct Sum<'a, T, R> {
    from: Plane<'a, T>,
    filter: Filter<T>,
    first: T,
    range: activation::Range<T>,
    left: usize,
    rows: R,
    columns: usize,
    to: &'a mut [T],
}

impl<T: Scalar, R: Rows> WithSimd for Sum<'_, T, R> {
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
            for (r, to) in to.chunks_exact_mut(columns).enumerate() {
                // A sum for each row of the filter, so that none has to wait for another.
                let mut totals = [T::splat(simd, bias), T::splat(simd, T::ZERO), T::splat(simd, T::ZERO)];
                for i in 0..K {
                    let Some(row) = rows.row(r, i) else { continue };
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

/// `sums[i, j] += sum over (r, c) of dy[r, c] * x[rows(r, i), c + j - left]`.
struct WeightGradient<'a, T> {
    x: Plane<'a, T>,
    dy: Plane<'a, T>,
    rows: RowsForward,
    left: usize,
    sums: &'a mut Filter<T>,
}

impl<T: Scalar> WithSimd for WeightGradient<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { x, dy, rows, left, sums } = self;
        let lanes = T::lanes::<S>();
        let mut totals = [[T::splat(simd, T::ZERO); K]; K];
        for first in (0..dy.columns).step_by(lanes) {
            let masks = masks::<T, S>(simd, first, left, x.columns);
            let kept = T::mask(simd, 0..(dy.columns - first).min(lanes));
            for (r, dy) in dy.values.chunks_exact(dy.columns).enumerate() {
                // SAFETY: the mask has the lanes that are inside of the row.
                let dy = unsafe { T::load(simd, kept, dy[first..].as_ptr()) };
                for (i, totals) in totals.iter_mut().enumerate() {
                    let Some(row) = rows.row(r, i) else { continue };
                    let values = x.values[row * x.columns..].as_ptr().wrapping_add(first).wrapping_sub(left);
                    for j in 0..K {
                        // SAFETY: the mask has the lanes that are inside of the row.
                        let values = unsafe { T::load(simd, masks[j], values.wrapping_add(j)) };
                        totals[j] = T::multiply_add(simd, dy, values, totals[j]);
                    }
                }
            }
        }
        for (sums, totals) in sums.as_flattened_mut().iter_mut().zip(totals.as_flattened()) {
            *sums += T::sum(simd, *totals);
        }
    }
}
