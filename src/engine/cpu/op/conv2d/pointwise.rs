//! Convolutions of one tap and stride 1: an image as it lies in memory is the matrix that others have to unfold.

use std::ops::Range;

use super::cpu::{cut, enough_tasks};
use super::geometry::Geometry;
use crate::engine::cpu::op::activation::{self, Rectifier};
use crate::engine::cpu::op::filters::Filters;
use crate::engine::cpu::op::parallel::{Shared, for_each_task};
use crate::engine::cpu::op::product::{Matrix, MatrixMut, Write, multiply};
use crate::engine::cpu::op::scalar::{Scalar, vectorised};
use crate::network::{Extent, Padding};

/// With fewer positions in an image than this, several images are better unfolded into one matrix.
const POSITIONS: usize = 128;
/// Positions in one product, about; a multiple of the 64 that are computed at once with AVX-512.
const COLUMNS: usize = 256;
const UNIT: usize = 64;

/// Whether a convolution is of this kind.
pub fn suits(g: &Geometry) -> bool {
    let plain = g.kernel == Extent::square(1) && g.stride == Extent::square(1) && g.padding == Padding::default();
    plain && g.groups == 1 && g.positions() >= POSITIONS
}

/// `y = rectifier(w x + bias)`, image by image.
pub fn forward<T: Scalar>(g: &Geometry, x: &[T], filters: Filters<'_, T>, y: &mut [T]) {
    let product = Product {
        images: g.batch,
        positions: g.positions(),
        sizes: (g.out_channels, g.in_channels),
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

/// `dx = w^T dy`, image by image.
pub fn input_gradient<T: Scalar>(g: &Geometry, weight: &[T], dy: &[T], dx: &mut [T]) {
    let product = Product {
        images: g.batch,
        positions: g.positions(),
        sizes: (g.in_channels, g.out_channels),
        weight: |rows: Range<usize>| {
            Matrix::new(&weight[rows.start..], g.out_channels, rows.len(), g.in_channels).transposed()
        },
    };
    product.run(dy, dx, |_, _| ());
}

/// A task for each tile of the positions and each block of the target channels, of each image.
pub(super) struct Cut {
    pub tiles: Vec<Range<usize>>,
    pub blocks: Vec<Range<usize>>,
}

impl Cut {
    pub fn new(images: usize, positions: usize, to: usize, threads: usize) -> Self {
        let tiles: Vec<_> = cut(positions, positions.div_ceil(COLUMNS), UNIT).collect();
        let pieces = enough_tasks(threads).div_ceil(images * tiles.len()).min(to.div_ceil(UNIT));
        Self { tiles, blocks: cut(to, pieces, 8).collect() }
    }
}

/// For each image `target = weight source`.
struct Product<F> {
    images: usize,
    positions: usize,
    /// Channels of target and source.
    sizes: (usize, usize),
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
        let Cut { tiles, blocks } = Cut::new(self.images, positions, to, rayon::current_num_threads());
        let target = Shared::new(target);
        for_each_task(
            self.images * tiles.len() * blocks.len(),
            || (),
            |(), task| {
                let (rest, rows) = (task / blocks.len(), &blocks[task % blocks.len()]);
                let (image, columns) = (rest / tiles.len(), &tiles[rest % tiles.len()]);
                let values = &source[image * from * positions + columns.start..];
                let values = Matrix::new(values, from, columns.len(), positions);
                let start = |row: usize| (image * to + row) * positions + columns.start;
                // SAFETY: these channels of these positions belong to this task.
                let product =
                    unsafe { MatrixMut::shared(&target, start(rows.start), rows.len(), columns.len(), positions) };
                multiply(product, (self.weight)(rows.clone()), values, Write::Overwrite);
                for row in rows.clone() {
                    // SAFETY: as above, and the product is written.
                    finish(row, unsafe { target.slice(start(row), columns.len()) });
                }
            },
        );
    }
}
