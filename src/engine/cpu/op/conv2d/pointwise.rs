//! Convolutions of one tap and stride 1: an image as it lies in memory is the matrix that others have to unfold. Images of few positions are copied side by side into one.

use std::ops::Range;

use super::cpu::{cut, enough_tasks};
use super::geometry::Geometry;
use super::unfold::copy;
use crate::engine::cpu::op::activation::{self, Rectifier};
use crate::engine::cpu::op::filters::Filters;
use crate::engine::cpu::op::parallel::{Shared, for_each_task, threads};
use crate::engine::cpu::op::product::{Factors, Matrix, MatrixMut, Write, multiply};
use crate::engine::cpu::op::scalar::{Scalar, vectorised};
use crate::engine::cpu::op::scratch::{List, Scratch};
use crate::network::{Extent, Padding};

/// With fewer positions in an image than this, several images are better unfolded into one matrix.
const POSITIONS: usize = 128;
/// Positions in one product, about; a multiple of the 64 that are computed at once with AVX-512.
const COLUMNS: usize = 256;
const UNIT: usize = 64;

/// Whether a convolution is of this kind.
pub fn suits(g: &Geometry) -> bool {
    let plain = g.kernel == Extent::square(1) && g.stride == Extent::square(1) && g.padding == Padding::default();
    // With fewer columns it pays to unfold them once for all tasks.
    plain && g.groups == 1 && g.columns() >= UNIT
}

/// Whether each image by itself is wide enough.
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

/// `dx = w^T dy`.
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

/// A task for each tile of the positions and each block of the target channels, of some images: of each, or of several that are all one tile.
pub(super) struct Cut {
    pub images: List<Range<usize>>,
    pub tiles: List<Range<usize>>,
    pub blocks: List<Range<usize>>,
}

impl Cut {
    pub fn new(images: usize, positions: usize, to: usize, threads: usize) -> Self {
        let wanted = enough_tasks(threads);
        let (images, tiles): (List<_>, List<_>) = if positions >= POSITIONS {
            (cut(images, images, 1).collect(), cut(positions, positions.div_ceil(COLUMNS), UNIT).collect())
        } else {
            let (fewest, most) = (images * positions / COLUMNS, (images * positions).div_ceil(UNIT));
            (
                cut(images, wanted.clamp(fewest.max(1), most.max(fewest).max(1)), 1).collect(),
                cut(positions, 1, 1).collect(),
            )
        };
        let pieces = wanted.div_ceil(images.len() * tiles.len()).min(to.div_ceil(UNIT));
        Self { images, tiles, blocks: cut(to, pieces, 8).collect() }
    }
}

/// For each image `target = weight source`.
struct Product<F> {
    images: usize,
    positions: usize,
    /// Channels of target and source.
    sizes: (usize, usize),
    factors: Factors,
    /// Some rows of the weights: one for each target channel, as long as there are source channels.
    weight: F,
}

impl<F> Product<F> {
    /// `finish` gets each target channel and its values as they have been written.
    fn run<'a, T: Scalar + 'a>(&self, source: &'a [T], target: &mut [T], finish: impl Fn(usize, &mut [T]) + Sync)
    where
        F: Fn(Range<usize>) -> Matrix<'a, T> + Sync,
    {
        let ((to, from), positions) = (self.sizes, self.positions);
        let Cut { images, tiles, blocks } = Cut::new(self.images, positions, to, threads());
        let target = Shared::new(target);
        let together =
            if positions >= POSITIONS { 0 } else { images.iter().map(Range::len).max().unwrap_or(0) * positions };
        let longest = blocks.iter().map(Range::len).max().unwrap_or(0);
        for_each_task(
            images.len() * tiles.len() * blocks.len(),
            || (Scratch::new(from * together), Scratch::new(longest * together)),
            |(columns, products), task| {
                let (rest, rows) = (task / blocks.len(), &blocks[task % blocks.len()]);
                let (images, tile) = (&images[rest / tiles.len()], &tiles[rest % tiles.len()]);
                let start = |image: usize, row: usize| (image * to + row) * positions + tile.start;
                let weight = (self.weight)(rows.clone());
                if together == 0 {
                    let image = images.start;
                    let values = &source[image * from * positions + tile.start..];
                    let values = Matrix::new(values, from, tile.len(), positions);
                    let start = start(image, rows.start);
                    // SAFETY: these channels of these positions belong to this task.
                    let product = unsafe { MatrixMut::shared(&target, start, rows.len(), tile.len(), positions) };
                    multiply(product, weight, values, Write::Overwrite, self.factors);
                } else {
                    let wide = images.len() * positions;
                    side_by_side(&source[images.start * from * positions..], from, positions, wide, columns);
                    let product = MatrixMut::new(products, rows.len(), wide, wide);
                    let values = Matrix::new(columns, from, wide, wide);
                    multiply(product, weight, values, Write::Overwrite, self.factors);
                }
                for (row, image) in rows.clone().flat_map(|row| images.clone().map(move |image| (row, image))) {
                    // SAFETY: as above, and the product is written.
                    let to = unsafe { target.slice(start(image, row), tile.len()) };
                    if together > 0 {
                        let place = (row - rows.start) * images.len() + image - images.start;
                        copy(to, &products[place * positions..][..positions]);
                    }
                    finish(row, to);
                }
            },
        );
    }
}

/// Writes channels of some images as rows of `wide` values, image after image.
fn side_by_side<T: Scalar>(source: &[T], channels: usize, positions: usize, wide: usize, to: &mut [T]) {
    vectorised(
        #[inline(always)]
        || {
            for (channel, row) in to.chunks_exact_mut(wide).take(channels).enumerate() {
                for (image, to) in row.chunks_exact_mut(positions).enumerate() {
                    copy(to, &source[(image * channels + channel) * positions..][..positions]);
                }
            }
        },
    );
}
