//! Dense and grouped convolution, backward: the products of `cpu.rs`, transposed.

use std::ops::Range;

use super::cpu::{COLUMNS, DEPTH, cut, enough_tasks, share};
use super::geometry::Geometry;
use super::pointwise;
use super::unfold::{ColumnRows, Tile, fold_back, unfold};
use crate::engine::cpu::blocking::VECTOR;
use crate::engine::cpu::op::activation::Rectifier;
use crate::engine::cpu::op::activation::add_to;
use crate::engine::cpu::op::parallel::{Shared, for_each, for_each_piece, for_each_task, threads};
use crate::engine::cpu::op::product::{Matrix, MatrixMut, Write, multiply, transpose::turn};
use crate::engine::cpu::op::scalar::{Scalar, add_up, sum, vectorised};
use crate::engine::cpu::op::scratch::{List, Scratch};

/// Columns in one product of the weights' gradient; there they are the inner dimension.
const INNER: usize = 128;
/// The most rows of the column matrix in one product of the weights' gradient; a multiple of the 64 that AVX-512
/// computes at once.
const DEEPEST: usize = 320;
/// The most output channels in one product of the input's gradient. The weights are read across their rows there, and
/// more rows than the address cache has entries halve the speed (measured at 512).
const OUTPUTS: usize = 128;
/// Images with fewer output positions are handled together, so that the weights are read once per batch instead of once
/// per image.
const FEW_POSITIONS: usize = 256;

/// Weights that a task reads at a time where the input's gradient is computed by filters: they fill a part of a
/// second-level cache and lie in few pages of memory.
const AT_A_TIME: usize = 1 << 15;

/// Channels that a task handles.
const TOGETHER: usize = 8;

/// The number of matrices of an output gradient.
pub(super) fn sheets(g: &Geometry) -> usize {
    if g.positions() >= FEW_POSITIONS || pointwise::is_wide(g) { g.batch } else { 1 }
}

/// An output gradient as matrices of channels x columns: one per image, or, for images of few positions, one for all.
struct Sheets<'a, T> {
    values: &'a [T],
    count: usize,
    /// Columns of one sheet.
    columns: usize,
}

impl<T: Scalar> Sheets<'_, T> {
    /// Some channels and columns of a sheet.
    fn matrix(&self, g: &Geometry, sheet: usize, channels: Range<usize>, columns: Range<usize>) -> Matrix<'_, T> {
        let start = (sheet * g.out_channels + channels.start) * self.columns + columns.start;
        Matrix::new(&self.values[start..], channels.len(), columns.len(), self.columns)
    }
}

/// Where the gradients of a convolution are written; `None` for a gradient that is not wanted.
pub struct Gradients<'a, T> {
    pub x: Option<&'a mut [T]>,
    pub weight: Option<&'a mut [T]>,
}

/// The gradients that are wanted.
pub fn backward<T: Scalar>(g: &Geometry, x: &[T], weight: &[T], dy: &[T], into: Gradients<'_, T>) {
    let g = &g.flattened();
    let count = sheets(g);
    let copy = (count != g.batch).then(|| pointwise::side_by_side(dy, g.batch, g.out_channels, g.positions()));
    let sheets = Sheets { values: copy.as_deref().unwrap_or(dy), count, columns: g.columns() / count };
    if let Some(dx) = into.x {
        match pointwise::suits(g) {
            true => pointwise::input_gradient(g, weight, sheets.values, dx),
            false if is_narrow(g) => input_gradient_by_filters(g, weight, &sheets, dx),
            false => input_gradient(g, weight, &sheets, dx),
        }
    }
    if let Some(dw) = into.weight {
        weight_gradient(g, x, &sheets, dw);
    }
}

/// `dx = fold_back(w^T dy)`. A task owns some channels of a sheet's images, so no two tasks add to the same place.
fn input_gradient<T: Scalar>(g: &Geometry, weight: &[T], dy: &Sheets<'_, T>, dx: &mut [T]) {
    let target = Shared::new(dx);
    let pixels = g.height * g.width;
    let blocks = channel_blocks(g, dy.count, threads());
    let tiles: List<_> = cut(dy.columns, dy.columns.div_ceil(COLUMNS), VECTOR).collect();
    let largest = blocks[0].len() * g.taps() * tiles[0].len().next_multiple_of(VECTOR);
    let narrow = if tiles.iter().any(|tile| is_turned(tile.len())) { largest } else { 0 };
    for_each_task(
        g.groups * dy.count * blocks.len(),
        || (Scratch::new(largest), Scratch::new(narrow)),
        |(columns, transposed), task| {
            let (rest, block) = (task / blocks.len(), &blocks[task % blocks.len()]);
            let (sheet, group) = (rest / g.groups, rest % g.groups);
            let depth = ColumnRows { group, rows: block.start * g.taps()..block.end * g.taps() };
            let images = dy.columns / g.positions();
            for image in sheet * images..(sheet + 1) * images {
                let first = image * g.in_channels + group * g.group_in() + block.start;
                // SAFETY: these channels of the sheet's images belong to this task.
                unsafe { target.slice(first * pixels, block.len() * pixels) }.fill(T::ZERO);
            }
            for range in &tiles {
                let stride = range.len();
                spread(g, weight, &depth, (dy, sheet, range), columns, transposed);
                let offset = sheet * dy.columns;
                let tile = Tile::new(g, offset + range.start..offset + range.end);
                // SAFETY: these channels of the sheet's images belong to this task.
                unsafe { fold_back(g, &target, &depth, &tile, columns, stride) };
            }
        },
    );
}

/// Whether the input's gradient is computed transposed: with this number of columns, a fifth of the lanes or more would
/// have no column.
fn is_turned(columns: usize) -> bool {
    5 * columns < 4 * columns.next_multiple_of(VECTOR)
}

/// Whether all columns fill less than a register.
pub(super) fn is_narrow(g: &Geometry) -> bool {
    g.groups == 1 && g.columns() < VECTOR
}

/// `dx` where there are few columns, so that most of what is read is weights. A task reads some filters as they lie in
/// memory and adds their products to its own transposed copy of the whole column matrix. The copies are added up as
/// they are folded back, always in the same order.
fn input_gradient_by_filters<T: Scalar>(g: &Geometry, weight: &[T], dy: &Sheets<'_, T>, dx: &mut [T]) {
    let (wide, deep) = (g.columns(), g.depth());
    let filters = share(g.out_channels, 1, 16..=OUTPUTS, 8, threads());
    let mut copies = Scratch::new(filters.len() * wide * deep);
    let shared = Shared::new(&mut copies);
    for_each(filters.len(), |task| {
        let filters = &filters[task];
        for rows in cut(filters.len(), (filters.len() * deep).div_ceil(AT_A_TIME), 4) {
            let mode = if rows.start == 0 { Write::Overwrite } else { Write::AddTo };
            let channels = filters.start + rows.start..filters.start + rows.end;
            let weights = Matrix::new(&weight[channels.start * deep..], channels.len(), deep, deep);
            let slopes = dy.matrix(g, 0, channels, 0..wide).transposed();
            // SAFETY: this copy belongs to this task.
            let target = unsafe { MatrixMut::shared(&shared, task * wide * deep, wide, deep, deep) };
            multiply(target, slopes, weights, mode, g.factors());
        }
    });
    let (target, pixels) = (Shared::new(dx), g.height * g.width);
    let blocks = channel_blocks(g, 1, threads());
    let largest = blocks[0].len() * g.taps() * wide;
    for_each_task(
        blocks.len(),
        || (Scratch::new(largest), Scratch::new(largest)),
        |(columns, total), task| {
            let block = &blocks[task];
            let depth = block.start * g.taps()..block.end * g.taps();
            vectorised(
                #[inline(always)]
                || {
                    for (column, total) in total.chunks_exact_mut(depth.len()).take(wide).enumerate() {
                        let rows = copies.chunks_exact(wide * deep).map(|copy| &copy[column * deep..][depth.clone()]);
                        add_up(rows, total);
                    }
                },
            );
            turn(total, depth.len(), wide, columns);
            for image in 0..g.batch {
                let first = image * g.in_channels + block.start;
                // SAFETY: these channels belong to this task.
                unsafe { target.slice(first * pixels, block.len() * pixels) }.fill(T::ZERO);
            }
            let (rows, tile) = (ColumnRows { group: 0, rows: depth }, Tile::new(g, 0..wide));
            // SAFETY: as above.
            unsafe { fold_back(g, &target, &rows, &tile, columns, wide) };
        },
    );
}

/// The channels of a sheet's images that each task of the input's gradient owns.
pub(super) fn channel_blocks(g: &Geometry, sheets: usize, threads: usize) -> List<Range<usize>> {
    let channels = 72usize.div_ceil(g.taps())..=DEPTH.div_ceil(g.taps());
    share(g.group_in(), g.groups * sheets, channels, 1, threads)
}

/// `columns = w^T dy` for some rows of a group's column matrix and some columns of a sheet; `transposed` has room for
/// the same amount.
fn spread<T: Scalar>(
    g: &Geometry,
    weight: &[T],
    depth: &ColumnRows,
    (dy, sheet, range): (&Sheets<'_, T>, usize, &Range<usize>),
    columns: &mut [T],
    transposed: &mut [T],
) {
    let (ColumnRows { group, rows: depth }, stride) = (depth, range.len());
    for out in cut(g.group_out(), g.group_out().div_ceil(OUTPUTS), 1) {
        let target = if out.start == 0 { Write::Overwrite } else { Write::AddTo };
        let channels = group * g.group_out() + out.start..group * g.group_out() + out.end;
        let filters = &weight[channels.start * g.depth() + depth.start..];
        let filters = Matrix::new(filters, out.len(), depth.len(), g.depth());
        let dy = dy.matrix(g, sheet, channels, range.clone());
        if is_turned(stride) {
            // Too few columns to fill vectors: the product's vectors run along the weights' rows instead.
            let product = MatrixMut::new(transposed, stride, depth.len(), depth.len());
            multiply(product, dy.transposed(), filters, target, g.factors());
        } else {
            let product = MatrixMut::new(columns, depth.len(), stride, stride);
            multiply(product, filters.transposed(), dy, target, g.factors());
        }
    }
    if is_turned(stride) {
        turn(transposed, depth.len(), stride, columns);
    }
}

/// The tasks of the weights' gradient: one for each group, block of the column matrix's rows, and part of the tiles.
pub(super) struct WeightCut {
    pub blocks: List<Range<usize>>,
    /// A sheet and some of its columns.
    pub tiles: List<(usize, Range<usize>)>,
    pub parts: List<Range<usize>>,
}

impl WeightCut {
    pub fn new(g: &Geometry, sheets: usize, threads: usize) -> Self {
        let columns = g.columns() / sheets;
        let blocks = share(g.depth(), g.groups, 64..=DEEPEST, 64, threads);
        let tiles: List<_> = (0..sheets)
            .flat_map(|sheet| cut(columns, columns.div_ceil(INNER), VECTOR).map(move |range| (sheet, range)))
            .collect();
        let parts = enough_tasks(threads).div_ceil(g.groups * blocks.len()).min(tiles.len());
        let parts = cut(tiles.len(), parts, 1).collect();
        Self { blocks, tiles, parts }
    }
}

/// `dw = dy columns^T`. A task owns some columns of `dw` and goes over the whole batch. Where that would leave threads
/// without work, it goes over a part of the batch and writes to its own copy; the copies are added at the end, always
/// in the same order.
fn weight_gradient<T: Scalar>(g: &Geometry, x: &[T], dy: &Sheets<'_, T>, dw: &mut [T]) {
    let as_they_lie = pointwise::is_wide(g);
    let WeightCut { blocks, tiles, parts } = WeightCut::new(g, dy.count, threads());
    let tiles: List<_> = parts.iter().map(|range| &tiles[range.clone()]).collect();
    let mut copies = Scratch::new((tiles.len() - 1) * g.weight_len());
    let (first, others) = (Shared::new(dw), Shared::new(&mut copies));
    for_each_task(
        g.groups * tiles.len() * blocks.len(),
        || Scratch::new(DEEPEST * INNER),
        |columns, task| {
            let (rest, block) = (task / blocks.len(), &blocks[task % blocks.len()]);
            let (part, group) = (rest / g.groups, rest % g.groups);
            let start = group * g.group_out() * g.depth() + block.start;
            let (target, start) =
                if part == 0 { (&first, start) } else { (&others, (part - 1) * g.weight_len() + start) };
            let channels = group * g.group_out()..(group + 1) * g.group_out();
            for (i, (sheet, range)) in tiles[part].iter().enumerate() {
                let stride = range.len();
                let unfolded = if as_they_lie {
                    let start = (sheet * g.in_channels + block.start) * g.positions() + range.start;
                    Matrix::new(&x[start..], block.len(), stride, g.positions())
                } else {
                    let offset = sheet * dy.columns;
                    let tile = Tile::new(g, offset + range.start..offset + range.end);
                    let rows = ColumnRows { group, rows: block.clone() };
                    unfold(g, x, rows, &tile, &mut columns[..block.len() * stride], stride);
                    Matrix::new(columns, block.len(), stride, stride)
                };
                // SAFETY: this block of this part's copy belongs to this task.
                let product = unsafe { MatrixMut::shared(target, start, g.group_out(), block.len(), g.depth()) };
                let mode = if i == 0 { Write::Overwrite } else { Write::AddTo };
                let dy = dy.matrix(g, *sheet, channels.clone(), range.clone());
                multiply(product, dy, unfolded.transposed(), mode, g.factors());
            }
        },
    );
    for copy in copies.chunks_exact(g.weight_len()) {
        add_to(Rectifier::Identity, copy, dw);
    }
}

/// `db`, the gradient of the bias: for each channel the sum over batch and positions.
pub fn bias_gradient<T: Scalar>(g: &Geometry, dy: &[T], db: &mut [T]) {
    let positions = g.positions();
    for_each_piece(db, TOGETHER, |number, db| {
        vectorised(
            #[inline(always)]
            || {
                for (channel, db) in (number * TOGETHER..).zip(db) {
                    let planes = dy.chunks_exact(positions).skip(channel).step_by(g.out_channels);
                    *db = planes.fold(T::ZERO, |total, plane| total + sum(plane));
                }
            },
        );
    });
}
