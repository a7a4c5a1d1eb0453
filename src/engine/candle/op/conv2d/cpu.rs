//! Dense and grouped convolution: unfolded by tiles that stay in the second-level cache, multiplied by `gemm`.
//!
//! The tile sizes come from measurements on a Xeon with 2 MiB of second-level cache per core: products of 64 to 256
//! columns and 200 to 600 rows run at the speed of large ones (150 to 170 GFLOP/s on one core with AVX-512).

use std::borrow::Cow;
use std::ops::Range;

use rayon::prelude::*;

use super::geometry::Geometry;
use super::unfold::{Tile, fold_back, unfold};
use crate::engine::candle::op::parallel::{Shared, for_each_task};
use crate::engine::candle::op::product::{Matrix, MatrixMut, Target, multiply};
use crate::engine::candle::op::scalar::{Scalar, sum, vectorised};

/// Columns are padded to a multiple of this: whole vector registers for `gemm`.
const VECTOR: usize = 16;
/// Rows of the column matrix in one product, at most.
const DEPTH: usize = 384;
/// Columns in one product of the forward and of the input's gradient, at most.
const COLUMNS: usize = 256;
/// Columns in one product of the weights' gradient; there they are the inner dimension, and short ones pack better.
const INNER: usize = 128;
/// Images with fewer output positions are handled together, so that weights are read once per batch, not once per image.
const FEW_POSITIONS: usize = 256;

/// The tasks that keep all threads busy to the end.
fn enough_tasks() -> usize {
    4 * rayon::current_num_threads()
}

/// Cuts `0..len` into `pieces` of nearly the same length, each but the last a multiple of `unit`.
fn cut(len: usize, pieces: usize, unit: usize) -> impl Iterator<Item = Range<usize>> + Clone {
    let step = len.div_ceil(pieces.max(1)).next_multiple_of(unit).max(1);
    (0..len).step_by(step).map(move |start| start..(start + step).min(len))
}

/// A piece of `0..len` for each of about `enough_tasks` tasks, of at most `largest` and at least `smallest` items.
fn share(len: usize, others: usize, (smallest, largest): (usize, usize), unit: usize) -> Vec<Range<usize>> {
    let wanted = enough_tasks().div_ceil(others.max(1));
    let pieces = wanted.min(len / smallest).max(len.div_ceil(largest));
    cut(len, pieces, unit).collect()
}

/// `y = w * x + bias`.
pub fn forward<T: Scalar>(g: &Geometry, x: &[T], weight: &[T], bias: Option<&[T]>) -> Vec<T> {
    let g = &g.flattened();
    let mut y = vec![T::ZERO; g.output_len()];
    let tiles = share(g.columns(), g.groups, (64, COLUMNS), VECTOR);
    if tiles.len() * g.groups >= 2 * rayon::current_num_threads() {
        forward_by_columns(g, x, weight, bias, &tiles, &Shared::new(&mut y));
    } else {
        forward_by_channels(g, x, weight, bias, &Shared::new(&mut y));
    }
    y
}

/// Many columns: each task takes some of them through all filters.
fn forward_by_columns<T: Scalar>(
    g: &Geometry,
    x: &[T],
    weight: &[T],
    bias: Option<&[T]>,
    tiles: &[Range<usize>],
    y: &Shared<'_, T>,
) {
    let longest = tiles.iter().map(Range::len).max().unwrap_or(0).next_multiple_of(VECTOR);
    let depths = cut(g.depth(), g.depth().div_ceil(DEPTH), 8);
    let deepest = depths.clone().map(|d| d.len()).max().unwrap_or(0);
    let scratch = || (vec![T::ZERO; deepest * longest], vec![T::ZERO; g.group_out() * longest]);
    for_each_task(g.groups * tiles.len(), scratch, |(columns, out), task| {
        let (group, range) = (task / tiles.len(), &tiles[task % tiles.len()]);
        let tile = Tile::new(g, range.clone());
        let stride = range.len().next_multiple_of(VECTOR);
        let filters = &weight[group * g.group_out() * g.depth()..];
        let out = &mut out[..g.group_out() * stride];
        for depth in depths.clone() {
            let (first, rows) = (depth.start, depth.len());
            unfold(g, x, (group, depth), &tile, &mut columns[..rows * stride], stride);
            multiply(
                MatrixMut::new(out, (g.group_out(), stride), stride),
                Matrix::new(&filters[first..], (g.group_out(), rows), g.depth()),
                Matrix::new(columns, (rows, stride), stride),
                if first == 0 { Target::Overwrite } else { Target::AddTo },
            );
        }
        let channels = group * g.group_out()..(group + 1) * g.group_out();
        // SAFETY: these channels of these columns belong to this task.
        unsafe { store(g, (out, stride), bias, channels, range.clone(), y) };
    });
}

/// Few columns: they are unfolded once for all tasks, and each task takes some filters.
fn forward_by_channels<T: Scalar>(g: &Geometry, x: &[T], weight: &[T], bias: Option<&[T]>, y: &Shared<'_, T>) {
    let stride = g.columns().next_multiple_of(VECTOR);
    let tile = Tile::new(g, 0..g.columns());
    let mut columns = vec![T::ZERO; g.depth() * stride];
    let rows = g.depth().div_ceil(enough_tasks()).max(64);
    let blocks = share(g.group_out(), 1, (16, 64), 8);
    for group in 0..g.groups {
        columns.par_chunks_mut(rows * stride).enumerate().for_each(|(i, columns)| {
            let first = i * rows;
            unfold(g, x, (group, first..first + columns.len() / stride), &tile, columns, stride);
        });
        let columns = Matrix::new(&columns, (g.depth(), stride), stride);
        for_each_task(
            blocks.len(),
            || vec![T::ZERO; 72 * stride],
            |out, task| {
                let start = group * g.group_out() + blocks[task].start;
                let channels = start..start + blocks[task].len();
                let filters = Matrix::new(&weight[start * g.depth()..], (channels.len(), g.depth()), g.depth());
                let target = MatrixMut::new(out, (channels.len(), stride), stride);
                multiply(target, filters, columns, Target::Overwrite);
                // SAFETY: these channels belong to this task.
                unsafe { store(g, (out, stride), bias, channels, 0..g.columns(), y) };
            },
        );
    }
}

/// Writes a product (channels x columns, rows `stride` apart) to its places in the output, and adds the bias.
///
/// # Safety
/// No other task may use these channels of these columns.
unsafe fn store<T: Scalar>(
    g: &Geometry,
    (product, stride): (&[T], usize),
    bias: Option<&[T]>,
    channels: Range<usize>,
    columns: Range<usize>,
    y: &Shared<'_, T>,
) {
    for (row, channel) in product.chunks_exact(stride).zip(channels) {
        let bias = bias.map_or(T::ZERO, |bias| bias[channel]);
        let mut column = columns.start;
        while column < columns.end {
            let (image, position) = (column / g.positions(), column % g.positions());
            let len = (g.positions() - position).min(columns.end - column);
            // SAFETY: by the caller's promise.
            let target = unsafe { y.slice((image * g.out_channels + channel) * g.positions() + position, len) };
            let source = &row[column - columns.start..][..len];
            target.iter_mut().zip(source).for_each(|(target, value)| *target = *value + bias);
            column += len;
        }
    }
}

/// An output gradient as matrices of channels x columns: one per image, or, for images of few positions, one for all.
struct Sheets<'a, T: Scalar> {
    values: Cow<'a, [T]>,
    count: usize,
    /// Columns of one sheet.
    columns: usize,
}

impl<'a, T: Scalar> Sheets<'a, T> {
    fn new(g: &Geometry, dy: &'a [T]) -> Self {
        if g.batch == 1 || g.positions() >= FEW_POSITIONS {
            return Self { values: Cow::Borrowed(dy), count: g.batch, columns: g.positions() };
        }
        let mut values = vec![T::ZERO; dy.len()];
        values.par_chunks_mut(g.columns()).with_min_len(8).enumerate().for_each(|(channel, row)| {
            for (image, row) in row.chunks_exact_mut(g.positions()).enumerate() {
                let start = (image * g.out_channels + channel) * g.positions();
                row.copy_from_slice(&dy[start..start + g.positions()]);
            }
        });
        Self { values: Cow::Owned(values), count: 1, columns: g.columns() }
    }

    /// A group's channels and some columns of a sheet.
    fn matrix(&self, g: &Geometry, group: usize, sheet: usize, columns: Range<usize>) -> Matrix<'_, T> {
        let start = (sheet * g.out_channels + group * g.group_out()) * self.columns + columns.start;
        Matrix::new(&self.values[start..], (g.group_out(), columns.len()), self.columns)
    }
}

/// The gradients of a convolution; `None` for those that were not asked for.
pub struct Gradients<T> {
    pub x: Option<Vec<T>>,
    pub weight: Option<Vec<T>>,
}

/// Gradients of the input (`want.0`) and of the weights (`want.1`).
pub fn backward<T: Scalar>(g: &Geometry, x: &[T], weight: &[T], dy: &[T], want: (bool, bool)) -> Gradients<T> {
    let g = &g.flattened();
    let sheets = Sheets::new(g, dy);
    Gradients {
        x: want.0.then(|| input_gradient(g, weight, &sheets)),
        weight: want.1.then(|| weight_gradient(g, x, &sheets)),
    }
}

/// `dx = fold_back(w^T dy)`. A task owns some channels of a sheet's images, so that no two tasks add to one place.
fn input_gradient<T: Scalar>(g: &Geometry, weight: &[T], dy: &Sheets<'_, T>) -> Vec<T> {
    let mut dx = vec![T::ZERO; g.input_len()];
    let target = Shared::new(&mut dx);
    let rows = (72usize.div_ceil(g.taps()), DEPTH.div_ceil(g.taps()));
    let blocks = share(g.group_in(), g.groups * dy.count, rows, 1);
    let tiles: Vec<_> = cut(dy.columns, dy.columns.div_ceil(COLUMNS), VECTOR).collect();
    let largest = blocks[0].len() * g.taps() * tiles[0].len().next_multiple_of(VECTOR);
    for_each_task(
        g.groups * dy.count * blocks.len(),
        || vec![T::ZERO; largest],
        |columns, task| {
            let (rest, block) = (task / blocks.len(), &blocks[task % blocks.len()]);
            let (sheet, group) = (rest / g.groups, rest % g.groups);
            let depth = block.start * g.taps()..block.end * g.taps();
            let filters = &weight[group * g.group_out() * g.depth() + depth.start..];
            let filters = Matrix::new(filters, (g.group_out(), depth.len()), g.depth()).transposed();
            for range in &tiles {
                let stride = range.len();
                let product = MatrixMut::new(columns, (depth.len(), stride), stride);
                multiply(product, filters, dy.matrix(g, group, sheet, range.clone()), Target::Overwrite);
                let offset = sheet * dy.columns;
                let tile = Tile::new(g, offset + range.start..offset + range.end);
                // SAFETY: these channels of the sheet's images belong to this task.
                unsafe { fold_back(g, &target, (group, depth.clone()), &tile, columns, stride) };
            }
        },
    );
    dx
}

/// `dw = dy columns^T`. A task owns some columns of `dw` and goes over the whole batch, or, where that leaves threads
/// without work, over a part of it into a copy of its own; the copies are added at the end, always in the same order.
fn weight_gradient<T: Scalar>(g: &Geometry, x: &[T], dy: &Sheets<'_, T>) -> Vec<T> {
    let blocks = share(g.depth(), g.groups, (96, 288), 48);
    let tiles: Vec<_> = (0..dy.count)
        .flat_map(|sheet| cut(dy.columns, dy.columns.div_ceil(INNER), VECTOR).map(move |range| (sheet, range)))
        .collect();
    let parts = enough_tasks().div_ceil(g.groups * blocks.len()).min(tiles.len());
    let tiles: Vec<_> = cut(tiles.len(), parts, 1).map(|range| &tiles[range]).collect();
    let mut copies = vec![T::ZERO; tiles.len() * g.weight_len()];
    let target = Shared::new(&mut copies);
    for_each_task(
        g.groups * tiles.len() * blocks.len(),
        || vec![T::ZERO; 288 * INNER],
        |columns, task| {
            let (rest, block) = (task / blocks.len(), &blocks[task % blocks.len()]);
            let (part, group) = (rest / g.groups, rest % g.groups);
            let start = part * g.weight_len() + group * g.group_out() * g.depth() + block.start;
            for (sheet, range) in tiles[part] {
                let stride = range.len();
                let offset = sheet * dy.columns;
                let tile = Tile::new(g, offset + range.start..offset + range.end);
                unfold(g, x, (group, block.clone()), &tile, &mut columns[..block.len() * stride], stride);
                let unfolded = Matrix::new(columns, (block.len(), stride), stride).transposed();
                // SAFETY: this block of this part's copy belongs to this task.
                let product = unsafe { MatrixMut::shared(&target, start, (g.group_out(), block.len()), g.depth()) };
                multiply(product, dy.matrix(g, group, *sheet, range.clone()), unfolded, Target::AddTo);
            }
        },
    );
    reduce(copies, g.weight_len())
}

/// The sum of several copies of `len` elements that lie one after the other.
fn reduce<T: Scalar>(mut copies: Vec<T>, len: usize) -> Vec<T> {
    let (total, others) = copies.split_at_mut(len);
    for copy in others.chunks_exact(len) {
        total.iter_mut().zip(copy).for_each(|(total, value)| *total += *value);
    }
    copies.truncate(len);
    copies
}

/// The gradient of the bias: for each channel the sum over batch and positions.
pub fn bias_gradient<T: Scalar>(g: &Geometry, dy: &[T]) -> Vec<T> {
    let positions = g.positions();
    (0..g.out_channels)
        .into_par_iter()
        .with_min_len(8)
        .map(|channel| {
            vectorised(|| {
                let planes = dy.chunks_exact(positions).skip(channel).step_by(g.out_channels);
                planes.fold(T::ZERO, |total, plane| total + sum(positions, |i| plane[i]))
            })
        })
        .collect()
}
