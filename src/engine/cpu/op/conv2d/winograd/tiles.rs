//! Planes taken apart into transformed tiles, and put together from them.
//!
//! The tiles of a few rows of tiles are handled together, so that all arithmetic runs along them in vectors: a `strip` holds one
//! pixel row of each row of tiles, one after the other, [`STEP`] pixels for each tile.

use std::ops::Range;

use super::super::unfold::copy;
use super::transform::{SIDE, STEP, data, output, output_adjoint};
use crate::engine::cpu::op::activation;
use crate::engine::cpu::op::parallel::Shared;
use crate::engine::cpu::op::scalar::{Scalar, vectorised};
use crate::engine::cpu::op::scratch::Scratch;
use crate::network::Extent;

/// The components of a transformed tile.
pub const COMPONENTS: usize = SIDE * SIDE;

/// Planes of one size, cut into tiles of `STEP` x `STEP` outputs; those at the right and at the bottom may stick out.
#[derive(Clone, Copy, Debug)]
pub struct Grid {
    pub batch: usize,
    /// Tiles of a plane along its height.
    pub rows: usize,
    /// Tiles of a plane along its width.
    pub columns: usize,
}

impl Grid {
    pub fn new(batch: usize, height: usize, width: usize) -> Self {
        Self { batch, rows: height.div_ceil(STEP), columns: width.div_ceil(STEP) }
    }

    /// Rows of tiles in the batch.
    pub fn all_rows(&self) -> usize {
        self.batch * self.rows
    }

    pub fn tiles(&self) -> usize {
        self.all_rows() * self.columns
    }

    /// Rows of tiles in pieces of at most `tiles` tiles, or of one row.
    pub fn pieces(&self, tiles: usize) -> Vec<Range<usize>> {
        self.cut(0..self.all_rows(), tiles).collect()
    }

    /// The same of some of the rows.
    pub fn cut(&self, rows: Range<usize>, tiles: usize) -> impl Iterator<Item = Range<usize>> {
        let most = (tiles / self.columns).max(1);
        let step = rows.len().div_ceil(rows.len().div_ceil(most).max(1)).max(1);
        rows.clone().step_by(step).map(move |start| start..(start + step).min(rows.end))
    }
}

/// A batch of planes: `channels` of `height` x `width` in each of `images`. A grid may have more images, of zeros.
#[derive(Clone, Copy, Debug)]
pub struct Planes {
    pub images: usize,
    pub channels: usize,
    pub height: usize,
    pub width: usize,
}

impl Planes {
    fn start(&self, image: usize, channel: usize) -> usize {
        (image * self.channels + channel) * self.height * self.width
    }
}

/// Room for the strips of one channel.
pub struct Strips<T: Scalar> {
    near: Scratch<T>,
    far: Scratch<T>,
}

impl<T: Scalar> Strips<T> {
    /// For at most `tiles` tiles at a time.
    pub fn new(tiles: usize) -> Self {
        Self { near: Scratch::new(SIDE * STEP * tiles), far: Scratch::new(SIDE * STEP * tiles) }
    }
}

/// The `N` rows of a matrix of `N` rows.
fn rows<const N: usize, T>(elements: &mut [T], len: usize) -> [&mut [T]; N] {
    let mut rows = elements.chunks_exact_mut(len);
    std::array::from_fn(|_| rows.next().unwrap_or_default())
}

/// One channel of a batch, in the rows of tiles `rows`, with `before` rows and columns of zeros above and to the left of its planes.
#[derive(Clone)]
pub struct View<'a, T> {
    pub values: &'a [T],
    pub planes: Planes,
    pub channel: usize,
    pub rows: Range<usize>,
    pub before: Extent,
}

impl<T: Scalar> View<'_, T> {
    /// Fills a strip with pixel row `row` of every row of tiles, from `shift` pixels to the right of each tile's first.
    #[inline(always)]
    fn strip(&self, grid: &Grid, row: usize, shift: usize, strip: &mut [T]) {
        for (strip, at) in strip.chunks_exact_mut(STEP * grid.columns).zip(self.rows.clone()) {
            let (image, tile_row) = (at / grid.rows, at % grid.rows);
            let inside = |&y: &usize| y < self.planes.height && image < self.planes.images;
            let y = (tile_row * STEP + row).checked_sub(self.before.height).filter(inside);
            let Some(y) = y else {
                strip.fill(T::ZERO);
                continue;
            };
            let blank = self.before.width.saturating_sub(shift).min(strip.len());
            let first = (blank + shift).saturating_sub(self.before.width).min(self.planes.width);
            let count = (strip.len() - blank).min(self.planes.width - first);
            let start = self.planes.start(image, self.channel) + y * self.planes.width + first;
            strip[..blank].fill(T::ZERO);
            copy(&mut strip[blank..blank + count], &self.values[start..start + count]);
            strip[blank + count..].fill(T::ZERO);
        }
    }
}

/// `B^T d B` of every tile: `into` begins with component 0 of the channel, and its components are `stride` apart.
pub fn data_tiles<T: Scalar>(grid: &Grid, view: &View<'_, T>, strips: &mut Strips<T>, into: Components<'_, '_, T>) {
    let tiles = view.rows.len() * grid.columns;
    let len = STEP * tiles;
    let (near, far) = (&mut strips.near[..SIDE * len], &mut strips.far[..SIDE * len]);
    vectorised(
        #[inline(always)]
        || {
            for (row, (near, far)) in near.chunks_exact_mut(len).zip(far.chunks_exact_mut(len)).enumerate() {
                view.strip(grid, row, 0, near);
                view.strip(grid, row, STEP, far);
            }
            for strips in [&mut *near, &mut *far] {
                let [a, b, c, d, e, f] = rows::<SIDE, T>(strips, len);
                for i in 0..len {
                    [a[i], b[i], c[i], d[i], e[i], f[i]] = data([a[i], b[i], c[i], d[i], e[i], f[i]]);
                }
            }
            for (row, (near, far)) in near.chunks_exact(len).zip(far.chunks_exact(len)).enumerate() {
                let (near, far) = (near.as_chunks::<STEP>().0, far.as_chunks::<STEP>().0);
                let [a, b, c, d, e, f] = into.components::<SIDE>(row * SIDE, tiles);
                for t in 0..tiles {
                    let ([d0, d1, d2, d3], [d4, d5, ..]) = (near[t], far[t]);
                    [a[t], b[t], c[t], d[t], e[t], f[t]] = data([d0, d1, d2, d3, d4, d5]);
                }
            }
        },
    );
}

/// `A dy A^T` of every tile, where it goes as in [`data_tiles`].
pub fn slope_tiles<T: Scalar>(grid: &Grid, view: &View<'_, T>, strips: &mut Strips<T>, into: Components<'_, '_, T>) {
    let tiles = view.rows.len() * grid.columns;
    let len = STEP * tiles;
    let strips = &mut strips.near[..SIDE * len];
    vectorised(
        #[inline(always)]
        || {
            for (row, strip) in strips.chunks_exact_mut(len).take(STEP).enumerate() {
                view.strip(grid, row, 0, strip);
            }
            {
                let [a, b, c, d, e, f] = rows::<SIDE, T>(strips, len);
                for i in 0..len {
                    [a[i], b[i], c[i], d[i], e[i], f[i]] = output_adjoint([a[i], b[i], c[i], d[i]]);
                }
            }
            for (row, strip) in strips.chunks_exact(len).enumerate() {
                let strip = strip.as_chunks::<STEP>().0;
                let [a, b, c, d, e, f] = into.components::<SIDE>(row * SIDE, tiles);
                for t in 0..tiles {
                    [a[t], b[t], c[t], d[t], e[t], f[t]] = output_adjoint(strip[t]);
                }
            }
        },
    );
}

/// Where the components of one channel's tiles lie among those of others.
#[derive(Clone, Copy)]
pub struct Components<'a, 'b, T> {
    values: &'a Shared<'b, T>,
    first: usize,
    stride: usize,
}

impl<'a, 'b, T> Components<'a, 'b, T> {
    /// Component 0 begins at `first`, and the components are `stride` apart.
    ///
    /// # Safety
    /// No other task may use these components while this lives.
    pub unsafe fn new(values: &'a Shared<'b, T>, first: usize, stride: usize) -> Self {
        Self { values, first, stride }
    }

    #[inline(always)]
    pub fn components<const N: usize>(&self, from: usize, tiles: usize) -> [&'a mut [T]; N] {
        assert!(self.stride >= tiles, "components overlap");
        // SAFETY: this channel's components are the caller's of `new`, and distinct ones do not overlap.
        std::array::from_fn(|i| unsafe { self.values.slice(self.first + (from + i) * self.stride, tiles) })
    }
}

/// What an output is made with, and where it goes.
pub struct Finish<'a, T> {
    pub planes: Planes,
    pub channel: usize,
    pub rows: Range<usize>,
    pub bias: T,
    pub range: activation::Range<T>,
    pub y: &'a Shared<'a, T>,
}

/// `A^T m A` of every tile, with bias and rectifier, to its place in the output.
///
/// # Safety
/// No other task may use this channel of these rows.
pub unsafe fn output_tiles<T: Scalar>(
    grid: &Grid,
    products: Components<'_, '_, T>,
    strips: &mut Strips<T>,
    finish: &Finish<'_, T>,
) {
    let tiles = finish.rows.len() * grid.columns;
    let len = STEP * tiles;
    let strips = &mut strips.near[..SIDE * len];
    vectorised(
        #[inline(always)]
        || {
            for (row, strip) in strips.chunks_exact_mut(len).enumerate() {
                let strip = strip.as_chunks_mut::<STEP>().0;
                let [a, b, c, d, e, f] = products.components::<SIDE>(row * SIDE, tiles);
                for t in 0..tiles {
                    strip[t] = output([a[t], b[t], c[t], d[t], e[t], f[t]]);
                }
            }
            let [a, b, c, d, e, f] = rows::<SIDE, T>(strips, len);
            for i in 0..len {
                let [y0, y1, y2, y3] = output([a[i], b[i], c[i], d[i], e[i], f[i]]);
                (a[i], b[i]) = (finish.value(y0), finish.value(y1));
                (c[i], d[i]) = (finish.value(y2), finish.value(y3));
            }
            for (row, strip) in [a, b, c, d].into_iter().enumerate() {
                // SAFETY: by the caller's promise.
                unsafe { finish.store(grid, row, strip) };
            }
        },
    );
}

impl<T: Scalar> Finish<'_, T> {
    #[inline(always)]
    fn value(&self, y: T) -> T {
        self.range.clamp(y + self.bias)
    }

    /// Writes pixel row `row` of every row of tiles.
    #[inline(always)]
    unsafe fn store(&self, grid: &Grid, row: usize, strip: &[T]) {
        for (strip, at) in strip.chunks_exact(STEP * grid.columns).zip(self.rows.clone()) {
            let (image, y) = (at / grid.rows, at % grid.rows * STEP + row);
            if y < self.planes.height && image < self.planes.images {
                let start = self.planes.start(image, self.channel) + y * self.planes.width;
                // SAFETY: by the caller's promise.
                let target = unsafe { self.y.slice(start, self.planes.width) };
                copy(target, &strip[..self.planes.width]);
            }
        }
    }
}
