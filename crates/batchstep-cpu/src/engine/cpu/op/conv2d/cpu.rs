//! Dense and grouped convolution, forward: unfolded by tiles that stay in the second-level cache, then multiplied.

use std::ops::{Range, RangeInclusive};

use super::geometry::Geometry;
use super::unfold::{ColumnRows, Tile, unfold};
use crate::engine::cpu::blocking::VECTOR;
use crate::engine::cpu::op::activation::Range as Values;
use crate::engine::cpu::op::filters::Filters;
use crate::engine::cpu::op::parallel::{Shared, for_each_piece, for_each_task, threads};
use crate::engine::cpu::op::product::{Matrix, MatrixMut, Write, multiply};
use crate::engine::cpu::op::scalar::{Scalar, vectorised};
use crate::engine::cpu::op::scratch::{List, Scratch};

/// The most rows of the column matrix in one product.
pub(super) const DEPTH: usize = 384;
/// The most columns in one product of the forward pass and of the input's gradient.
pub(super) const COLUMNS: usize = 256;

/// The number of tasks that keeps all threads busy to the end.
pub(super) fn enough_tasks(threads: usize) -> usize {
    4 * threads
}

/// Cuts `0..len` into `pieces` of nearly the same length, each but the last a multiple of `unit`.
pub(super) fn cut(len: usize, pieces: usize, unit: usize) -> impl Iterator<Item = Range<usize>> + Clone {
    let step = len.div_ceil(pieces.max(1)).next_multiple_of(unit).max(1);
    (0..len).step_by(step).map(move |start| start..(start + step).min(len))
}

/// Cuts `0..len` into pieces for about `enough_tasks` tasks; `lengths` limits the items of a piece.
pub(super) fn share(
    len: usize,
    others: usize,
    lengths: RangeInclusive<usize>,
    unit: usize,
    threads: usize,
) -> List<Range<usize>> {
    let wanted = enough_tasks(threads).div_ceil(others.max(1));
    let pieces = wanted.min(len / lengths.start()).max(len.div_ceil(*lengths.end()));
    cut(len, pieces, unit).collect()
}

/// For each image of which some items are: its number, and which of its `each` items they are.
#[inline]
pub(super) fn by_image(items: Range<usize>, each: usize) -> impl Iterator<Item = (usize, Range<usize>)> {
    (items.start / each..items.end.div_ceil(each)).map(move |image| {
        let first = image * each;
        (image, items.start.max(first) - first..items.end.min(first + each) - first)
    })
}

/// `y = rectifier(w * x + bias)`.
pub fn forward<T: Scalar>(g: &Geometry, x: &[T], filters: Filters<'_, T>, y: &mut [T]) {
    let g = &g.flattened();
    match column_tiles(g, threads()) {
        Some(tiles) => forward_by_columns(g, x, filters, &tiles, &Shared::new(y)),
        None => forward_by_channels(g, x, filters, &Shared::new(y)),
    }
}

/// The tiles of columns of each group, each of which a task multiplies by all filters; `None` where there are too few
/// columns.
pub(super) fn column_tiles(g: &Geometry, threads: usize) -> Option<List<Range<usize>>> {
    let tiles = share(g.columns(), g.groups, 64..=COLUMNS, VECTOR, threads);
    // With fewer columns than filters, reading the columns again for each block of filters is cheaper than reading the
    // filters again for each tile.
    (tiles.len() * g.groups >= 2 * threads && g.columns() >= g.group_out()).then_some(tiles)
}

/// Many columns: each task multiplies some of them by all filters.
fn forward_by_columns<T: Scalar>(
    g: &Geometry,
    x: &[T],
    filters: Filters<'_, T>,
    tiles: &[Range<usize>],
    y: &Shared<'_, T>,
) {
    let longest = tiles.iter().map(Range::len).max().unwrap_or(0).next_multiple_of(VECTOR);
    let depths = cut(g.depth(), g.depth().div_ceil(DEPTH), 8);
    let deepest = depths.clone().map(|d| d.len()).max().unwrap_or(0);
    let scratch = || (Scratch::new(deepest * longest), Scratch::new(g.group_out() * longest));
    for_each_task(g.groups * tiles.len(), scratch, |(columns, out), task| {
        let (group, range) = (task / tiles.len(), &tiles[task % tiles.len()]);
        let tile = Tile::new(g, range.clone());
        let stride = range.len().next_multiple_of(VECTOR);
        let weight = &filters.weight[group * g.group_out() * g.depth()..];
        let out = &mut out[..g.group_out() * stride];
        for depth in depths.clone() {
            let (first, rows) = (depth.start, depth.len());
            unfold(g, x, ColumnRows { group, rows: depth }, &tile, &mut columns[..rows * stride], stride);
            multiply(
                MatrixMut::new(out, g.group_out(), stride, stride),
                Matrix::new(&weight[first..], g.group_out(), rows, g.depth()),
                Matrix::new(columns, rows, stride, stride),
                if first == 0 { Write::Overwrite } else { Write::AddTo },
                g.factors(),
            );
        }
        let channels = group * g.group_out()..(group + 1) * g.group_out();
        // SAFETY: these channels of these columns belong to this task.
        unsafe { store(g, (out, stride), filters, channels, range.clone(), y) };
    });
}

/// Few columns: they are unfolded once for all tasks, and each task takes some filters.
fn forward_by_channels<T: Scalar>(g: &Geometry, x: &[T], filters: Filters<'_, T>, y: &Shared<'_, T>) {
    let stride = g.columns().next_multiple_of(VECTOR);
    let tile = Tile::new(g, 0..g.columns());
    let mut columns = Scratch::new(g.depth() * stride);
    let rows = g.depth().div_ceil(enough_tasks(threads())).max(64);
    let blocks = share(g.group_out(), 1, 16..=64, 8, threads());
    for group in 0..g.groups {
        for_each_piece(&mut columns, rows * stride, |i, columns| {
            let first = i * rows;
            let rows = ColumnRows { group, rows: first..first + columns.len() / stride };
            unfold(g, x, rows, &tile, columns, stride);
        });
        let columns = Matrix::new(&columns, g.depth(), stride, stride);
        for_each_task(
            blocks.len(),
            || Scratch::new(72 * stride),
            |out, task| {
                let start = group * g.group_out() + blocks[task].start;
                let channels = start..start + blocks[task].len();
                let weight = Matrix::new(&filters.weight[start * g.depth()..], channels.len(), g.depth(), g.depth());
                let target = MatrixMut::new(out, channels.len(), stride, stride);
                multiply(target, weight, columns, Write::Overwrite, g.factors());
                // SAFETY: these channels belong to this task.
                unsafe { store(g, (out, stride), filters, channels, 0..g.columns(), y) };
            },
        );
    }
}

/// Writes products (channels x columns, the rows `stride` apart) to their places in the output, with bias and rectifier.
///
/// # Safety
/// No other task may use these channels of these columns.
unsafe fn store<T: Scalar>(
    g: &Geometry,
    (products, stride): (&[T], usize),
    filters: Filters<'_, T>,
    channels: Range<usize>,
    columns: Range<usize>,
    y: &Shared<'_, T>,
) {
    let (values, all): (Values<T>, _) = (filters.rectifier.range(), g.positions());
    for (row, channel) in products.chunks_exact(stride).zip(channels) {
        let bias = filters.bias(channel);
        for (image, positions) in by_image(columns.clone(), all) {
            let source = &row[image * all + positions.start - columns.start..][..positions.len()];
            // SAFETY: by the caller's promise.
            let target =
                unsafe { y.slice((image * g.out_channels + channel) * all + positions.start, positions.len()) };
            vectorised(
                #[inline(always)]
                || target.iter_mut().zip(source).for_each(|(target, value)| *target = values.clamp(*value + bias)),
            );
        }
    }
}
