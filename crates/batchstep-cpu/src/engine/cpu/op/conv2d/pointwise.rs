//! Convolutions of one tap and stride 1: an image in memory already is the matrix that other convolutions have to
//! unfold. Images of few positions are copied side by side into one matrix.

use std::ops::Range;

use super::cpu::{by_image, cut, enough_tasks};
use super::geometry::Geometry;
use super::unfold::copy;
use crate::engine::cpu::op::activation::{self, Rectifier};
use crate::engine::cpu::op::filters::Filters;
use crate::engine::cpu::op::parallel::{Shared, for_each_piece, for_each_task, threads};
use crate::engine::cpu::op::product::{Factors, Matrix, MatrixMut, Write, multiply};
use crate::engine::cpu::op::scalar::{Scalar, vectorised};
use crate::engine::cpu::op::scratch::{List, Scratch};

/// With fewer positions in an image than this, several images are better unfolded into one matrix.
const POSITIONS: usize = 128;
/// Channels that a task copies.
const TOGETHER: usize = 8;
/// About how many positions one product has; a multiple of the 64 that AVX-512 computes at once.
const COLUMNS: usize = 256;
const UNIT: usize = 64;

/// Whether a convolution is of this kind.
pub fn suits(g: &Geometry) -> bool {
    // With fewer columns it is faster to unfold them once for all tasks.
    g.is_pointwise() && g.groups == 1 && g.columns() >= UNIT
}

/// Whether each image is wide enough by itself.
pub fn is_wide(g: &Geometry) -> bool {
    suits(g) && g.positions() >= POSITIONS
}

/// `y = rectifier(w x + bias)`.
pub fn forward<T: Scalar>(g: &Geometry, x: &[T], filters: Filters<'_, T>, y: &mut [T]) {
    let product = Product {
        images: g.batch,
        positions: g.positions(),
        sizes: (g.out_channels, g.in_channels),
        factors: g.factors(),
        weight: |rows: Range<usize>| {
            Matrix::new(&filters.weight[rows.start * g.in_channels..], rows.len(), g.in_channels, g.in_channels)
        },
    };
    let sheet = (g.positions() < POSITIONS).then(|| side_by_side(x, g.batch, g.in_channels, g.positions()));
    let x = sheet.as_deref().unwrap_or(x);
    let range = filters.rectifier.range();
    let plain = filters.bias.is_none() && filters.rectifier == Rectifier::Identity;
    product.run(x, y, |channel, y| {
        if !plain {
            finish(range, filters.bias(channel), y);
        }
    });
}

fn finish<T: Scalar>(range: activation::Range<T>, bias: T, y: &mut [T]) {
    vectorised(
        #[inline(always)]
        || y.iter_mut().for_each(|y| *y = range.clamp(*y + bias)),
    );
}

/// `dx = w^T dy`; images of few positions side by side in `dy`.
pub fn input_gradient<T: Scalar>(g: &Geometry, weight: &[T], dy: &[T], dx: &mut [T]) {
    let product = Product {
        images: g.batch,
        positions: g.positions(),
        sizes: (g.in_channels, g.out_channels),
        factors: g.factors(),
        weight: |rows: Range<usize>| {
            Matrix::new(&weight[rows.start..], g.out_channels, rows.len(), g.in_channels).transposed()
        },
    };
    product.run(dy, dx, |_, _| ());
}

/// A task for each of some tiles of the columns (positions, counted over the whole batch) and each of some blocks of the
/// target channels. Where images are used as they lie in memory, a tile belongs to one image.
pub(super) fn tiles_and_blocks(images: usize, positions: usize, to: usize, threads: usize) -> [List<Range<usize>>; 2] {
    let (sheets, columns) = if positions >= POSITIONS { (images, positions) } else { (1, images * positions) };
    let of = |sheet: usize| {
        let shifted = move |tile: Range<usize>| sheet * columns + tile.start..sheet * columns + tile.end;
        cut(columns, columns.div_ceil(COLUMNS), UNIT).map(shifted)
    };
    let tiles: List<_> = (0..sheets).flat_map(of).collect();
    let pieces = enough_tasks(threads).div_ceil(tiles.len()).min(to.div_ceil(UNIT));
    [tiles, cut(to, pieces, 8).collect()]
}

/// For each image `target = weight source`.
struct Product<F> {
    images: usize,
    positions: usize,
    /// Channels of target and source.
    sizes: (usize, usize),
    factors: Factors,
    /// Some rows of the weights: one for each target channel, with a value for each source channel.
    weight: F,
}

impl<F> Product<F> {
    /// Images of few positions lie side by side in the source. `finish` gets each target channel and its values after
    /// they have been written.
    fn run<'a, T: Scalar + 'a>(&self, source: &[T], target: &mut [T], finish: impl Fn(usize, &mut [T]) + Sync)
    where
        F: Fn(Range<usize>) -> Matrix<'a, T> + Sync,
    {
        let ((to, from), positions) = (self.sizes, self.positions);
        let [tiles, blocks] = tiles_and_blocks(self.images, positions, to, threads());
        let target = Shared::new(target);
        let together = positions < POSITIONS;
        let largest = |ranges: &[Range<usize>]| ranges.iter().map(Range::len).max().unwrap_or(0);
        let room = if together { largest(&tiles) * largest(&blocks) } else { 0 };
        for_each_task(
            tiles.len() * blocks.len(),
            || Scratch::new(room),
            |products, task| {
                let (tile, rows) = (&tiles[task / blocks.len()], &blocks[task % blocks.len()]);
                let (image, position, wide) = (tile.start / positions, tile.start % positions, tile.len());
                let weight = (self.weight)(rows.clone());
                let (values, product) = if together {
                    let values = Matrix::new(&source[tile.start..], from, wide, self.images * positions);
                    (values, MatrixMut::new(products, rows.len(), wide, wide))
                } else {
                    let values = &source[image * from * positions + position..];
                    let start = (image * to + rows.start) * positions + position;
                    // SAFETY: these channels of these positions belong to this task.
                    let product = unsafe { MatrixMut::shared(&target, start, rows.len(), wide, positions) };
                    (Matrix::new(values, from, wide, positions), product)
                };
                multiply(product, weight, values, Write::Overwrite, self.factors);
                for (place, row) in rows.clone().enumerate() {
                    for (image, part) in by_image(tile.clone(), positions) {
                        // SAFETY: as above, and the product is written.
                        let to = unsafe { target.slice((image * to + row) * positions + part.start, part.len()) };
                        if together {
                            let first = place * wide + image * positions + part.start - tile.start;
                            copy(to, &products[first..][..part.len()]);
                        }
                        finish(row, to);
                    }
                }
            },
        );
    }
}

/// Channels of all images as rows, image after image.
pub(super) fn side_by_side<T: Scalar>(source: &[T], images: usize, channels: usize, positions: usize) -> Scratch<T> {
    let mut sheet = Scratch::new(source.len());
    for_each_piece(&mut sheet, TOGETHER * images * positions, |number, rows| {
        vectorised(
            #[inline(always)]
            || {
                for (channel, row) in (number * TOGETHER..).zip(rows.chunks_exact_mut(images * positions)) {
                    for (image, to) in row.chunks_exact_mut(positions).enumerate() {
                        copy(to, &source[(image * channels + channel) * positions..][..positions]);
                    }
                }
            },
        );
    });
    sheet
}
