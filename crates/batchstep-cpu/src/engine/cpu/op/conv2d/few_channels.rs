//! Convolution of an image of few channels with filters of 3x3 taps: the first layer of most networks.
//!
//! Unfolded, its column matrix has 9 to 36 rows, and writing and reading it costs more than the product itself. Here
//! registers lie along a row of the image and are read at the offset of each tap, with zeros beyond the row's ends; a
//! few output channels are computed from each register. There is no gradient of the input: such layers come first in a
//! network, where it is not needed.

use std::ops::Range;

use pulp::{Arch, Simd, WithSimd};

use super::cpu::{by_image, cut, enough_tasks};
use super::geometry::Geometry;
use crate::engine::cpu::op::activation;
use crate::engine::cpu::op::filters::Filters;
use crate::engine::cpu::op::parallel::{Shared, for_each, for_each_piece, threads};
use crate::engine::cpu::op::scalar::{Scalar, add_up};
use crate::engine::cpu::op::scratch::{List, Scratch};
use crate::engine::cpu::op::vector::inside;
use crate::network::Extent;

/// Rows and columns of a filter.
const K: usize = 3;
/// Taps of one channel's filter.
const TAPS: usize = K * K;
/// The most input channels for which this way is faster.
const FEW: usize = 4;
/// Output channels computed together, each in up to `WIDE` registers.
const OUTPUTS: usize = 8;
/// Registers of a row computed together.
const WIDE: usize = 2;
/// Output channels whose weights' gradients are added up together, each in `TAPS` registers.
const SUMMED: usize = 3;

/// Whether a convolution is of this kind.
pub fn suits(g: &Geometry) -> bool {
    g.is_dense() && g.kernel == Extent::square(K) && g.in_channels <= FEW
}

/// The output rows of each task: some of one image, or all of some images.
pub(super) fn tasks(g: &Geometry, threads: usize) -> List<Range<usize>> {
    cut(g.batch * g.out_height, enough_tasks(threads), 1).collect()
}

/// `y = rectifier(w * x + bias)`.
pub fn forward<T: Scalar>(g: &Geometry, x: &[T], filters: Filters<'_, T>, y: &mut [T]) {
    let (y, tasks) = (Shared::new(y), tasks(g, threads()));
    for_each(tasks.len(), |task| {
        for (image, rows) in by_image(tasks[task].clone(), g.out_height) {
            Arch::new().dispatch(Forward { image: Image::new(g, x, image), rows, filters, y: &y });
        }
    });
}

/// `dw`, from the layer's input and its output's gradient.
pub fn weight_gradient<T: Scalar>(g: &Geometry, x: &[T], dy: &[T], dw: &mut [T]) {
    let tasks = tasks(g, threads());
    let mut parts = Scratch::new(tasks.len() * dw.len());
    for_each_piece(&mut parts, dw.len(), |task, sums| {
        Arch::new().dispatch(WeightGradient { g, x, dy, rows: tasks[task].clone(), sums });
    });
    add_up(parts.chunks_exact(dw.len()), dw);
}

/// One image of a batch, and how it is convolved.
#[derive(Clone, Copy)]
struct Image<'a, T> {
    g: &'a Geometry,
    values: &'a [T],
    number: usize,
}

impl<'a, T: Scalar> Image<'a, T> {
    fn new(g: &'a Geometry, x: &'a [T], number: usize) -> Self {
        let len = g.in_channels * g.height * g.width;
        Self { g, values: &x[number * len..][..len], number }
    }

    /// The row of channel `channel` that row `i` of the filter sees for output row `row`; `None` outside of the image.
    #[inline(always)]
    fn row(&self, channel: usize, row: usize, i: usize) -> Option<&'a [T]> {
        let row = (row + i).checked_sub(self.g.padding.top).filter(|row| *row < self.g.height)?;
        Some(&self.values[(channel * self.g.height + row) * self.g.width..][..self.g.width])
    }

    /// For each column of the filter: the lanes that read inside a row, in the register of the outputs from `first` on.
    #[inline(always)]
    fn masks<S: Simd>(&self, simd: S, first: usize) -> [T::Mask<S>; K] {
        let mut masks = [T::mask(simd, 0..0); K];
        for (j, mask) in masks.iter_mut().enumerate() {
            let at = (first + j) as isize - self.g.padding.left as isize;
            *mask = inside::<T, S>(simd, at, self.g.width);
        }
        masks
    }
}

/// The address from which the register of the outputs from `first` on reads, for column `j` of the filter.
#[inline(always)]
fn address<T>(row: &[T], first: usize, j: usize, left: usize) -> *const T {
    row.as_ptr().wrapping_add(first + j).wrapping_sub(left)
}

struct Forward<'a, T> {
    image: Image<'a, T>,
    rows: Range<usize>,
    filters: Filters<'a, T>,
    y: &'a Shared<'a, T>,
}

/// [`OUTPUTS`] filters, taps first, and their biases; zeros for those beyond the last.
struct Block<T> {
    first: usize,
    count: usize,
    weight: [[T; OUTPUTS]; FEW * TAPS],
    bias: [T; OUTPUTS],
}

impl<T: Scalar> Block<T> {
    fn new(g: &Geometry, filters: Filters<'_, T>, first: usize) -> Self {
        let count = OUTPUTS.min(g.out_channels - first);
        let taps = g.in_channels * TAPS;
        let (mut weight, mut bias) = ([[T::ZERO; OUTPUTS]; FEW * TAPS], [T::ZERO; OUTPUTS]);
        for output in 0..count {
            bias[output] = filters.bias(first + output);
            for (tap, weight) in weight.iter_mut().enumerate().take(taps) {
                weight[output] = filters.weight[(first + output) * taps + tap];
            }
        }
        Self { first, count, weight, bias }
    }
}

impl<T: Scalar> WithSimd for Forward<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let (g, lanes) = (self.image.g, T::lanes::<S>());
        for output in (0..g.out_channels).step_by(OUTPUTS) {
            let block = Block::new(g, self.filters, output);
            let mut first = 0;
            while first < g.out_width {
                if g.out_width - first > lanes {
                    self.columns::<S, WIDE>(simd, &block, first);
                    first += WIDE * lanes;
                } else {
                    self.columns::<S, 1>(simd, &block, first);
                    first += lanes;
                }
            }
        }
    }
}

impl<T: Scalar> Forward<'_, T> {
    /// The columns of `N` registers from `first` on, in all rows.
    #[inline(always)]
    fn columns<S: Simd, const N: usize>(&self, simd: S, block: &Block<T>, first: usize) {
        let (g, lanes) = (self.image.g, T::lanes::<S>());
        let range: activation::Range<T> = self.filters.rectifier.range();
        let mut masks = [[T::mask(simd, 0..0); K]; N];
        let mut kept = [T::mask(simd, 0..0); N];
        for n in 0..N {
            masks[n] = self.image.masks(simd, first + n * lanes);
            kept[n] = T::mask(simd, 0..(g.out_width - first - n * lanes).min(lanes));
        }
        for row in self.rows.clone() {
            let mut totals = [[T::splat(simd, T::ZERO); N]; OUTPUTS];
            for (totals, bias) in totals.iter_mut().zip(block.bias) {
                *totals = [T::splat(simd, bias); N];
            }
            for channel in 0..g.in_channels {
                for i in 0..K {
                    let Some(values) = self.image.row(channel, row, i) else { continue };
                    let weights = &block.weight[channel * TAPS + i * K..][..K];
                    for (j, weights) in weights.iter().enumerate() {
                        let mut x = [T::splat(simd, T::ZERO); N];
                        for n in 0..N {
                            let from = address(values, first + n * lanes, j, g.padding.left);
                            // SAFETY: the mask has the lanes that are inside of the row.
                            x[n] = unsafe { T::load(simd, masks[n][j], from) };
                        }
                        for (weight, totals) in weights.iter().zip(&mut totals) {
                            let weight = T::splat(simd, *weight);
                            for n in 0..N {
                                totals[n] = T::multiply_add(simd, weight, x[n], totals[n]);
                            }
                        }
                    }
                }
            }
            for (output, totals) in totals.iter().enumerate() {
                if output < block.count {
                    let plane = self.image.number * g.out_channels + block.first + output;
                    let to = self.y.address(plane * g.positions() + row * g.out_width + first, g.out_width - first);
                    for n in 0..N {
                        // SAFETY: the mask has the lanes that are inside of the row, and these rows belong to this task.
                        unsafe { T::store(simd, kept[n], to.add(n * lanes), range.clamp_lanes(simd, totals[n])) };
                    }
                }
            }
        }
    }
}

/// `sums[output, channel, i, j] = sum over the rows r and columns c of dy[output, r, c] * x[channel, r + i - top, c + j - left]`.
struct WeightGradient<'a, T> {
    g: &'a Geometry,
    x: &'a [T],
    dy: &'a [T],
    rows: Range<usize>,
    sums: &'a mut [T],
}

impl<T: Scalar> WithSimd for WeightGradient<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { g, x, dy, rows, sums } = self;
        let lanes = T::lanes::<S>();
        let all = T::mask(simd, 0..lanes);
        // A register for each sum.
        let mut totals = Scratch::zeros(sums.len().next_multiple_of(SUMMED * TAPS * g.in_channels) * lanes);
        for (image, rows) in by_image(rows, g.out_height) {
            let slopes = &dy[image * g.out_channels * g.positions()..][..g.out_channels * g.positions()];
            let part = GradientRows { image: Image::new(g, x, image), slopes, rows };
            let blocks = totals.chunks_exact_mut(SUMMED * g.in_channels * TAPS * lanes);
            for (block, totals) in blocks.enumerate() {
                for (channel, totals) in totals.chunks_exact_mut(SUMMED * TAPS * lanes).enumerate() {
                    part.add(simd, block * SUMMED, channel, totals);
                }
            }
        }
        for (i, sum) in sums.iter_mut().enumerate() {
            let (output, channel, tap) = (i / (g.in_channels * TAPS), i / TAPS % g.in_channels, i % TAPS);
            let at = ((output / SUMMED * g.in_channels + channel) * SUMMED + output % SUMMED) * TAPS + tap;
            // SAFETY: a whole register.
            *sum = T::sum(simd, unsafe { T::load(simd, all, totals[at * lanes..][..lanes].as_ptr()) });
        }
    }
}

/// Some rows of an image, with the gradient of its outputs.
struct GradientRows<'a, T> {
    image: Image<'a, T>,
    slopes: &'a [T],
    rows: Range<usize>,
}

impl<T: Scalar> GradientRows<'_, T> {
    /// Adds to the sums of [`SUMMED`] outputs and one channel, a register each.
    #[inline(always)]
    fn add<S: Simd>(&self, simd: S, output: usize, channel: usize, sums: &mut [T]) {
        let (g, lanes) = (self.image.g, T::lanes::<S>());
        let all = T::mask(simd, 0..lanes);
        assert!(sums.len() == SUMMED * TAPS * lanes, "a register for each sum");
        let mut totals = [[T::splat(simd, T::ZERO); TAPS]; SUMMED];
        for (at, total) in totals.as_flattened_mut().iter_mut().enumerate() {
            // SAFETY: inside, by the assertion.
            *total = unsafe { T::load(simd, all, sums.as_ptr().add(at * lanes)) };
        }
        for first in (0..g.out_width).step_by(lanes) {
            let masks = self.image.masks(simd, first);
            let kept = T::mask(simd, 0..(g.out_width - first).min(lanes));
            for row in self.rows.clone() {
                let mut dy = [T::splat(simd, T::ZERO); SUMMED];
                for (n, dy) in dy.iter_mut().enumerate() {
                    if output + n < g.out_channels {
                        let from = &self.slopes[(output + n) * g.positions() + row * g.out_width..][..g.out_width];
                        // SAFETY: the mask has the lanes that are inside of the row.
                        *dy = unsafe { T::load(simd, kept, from.as_ptr().add(first)) };
                    }
                }
                for i in 0..K {
                    let Some(values) = self.image.row(channel, row, i) else { continue };
                    for j in 0..K {
                        // SAFETY: the mask has the lanes that are inside of the row.
                        let x = unsafe { T::load(simd, masks[j], address(values, first, j, g.padding.left)) };
                        for n in 0..SUMMED {
                            totals[n][i * K + j] = T::multiply_add(simd, dy[n], x, totals[n][i * K + j]);
                        }
                    }
                }
            }
        }
        for (at, total) in totals.as_flattened().iter().enumerate() {
            // SAFETY: inside, by the assertion.
            unsafe { T::store(simd, all, sums.as_mut_ptr().add(at * lanes), *total) };
        }
    }
}
