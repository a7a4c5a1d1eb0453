//! The weights' gradient: `G^T [sum over tiles of (A dy A^T) (B^T x B)^T] G`.

use std::ops::Range;

use pulp::Arch;

use super::filters::{TransformBack, transformed_back};
use super::grid::Grid;
use super::tiles::{COMPONENTS, Strips, TileSource, Tiles, padded};
use super::transform::TAPS;
use super::{BLOCK, FEW_TILES, FEWEST, FILTERS, NEAR, TILES, TOGETHER, for_each_block, gather, sources};
use crate::engine::cpu::op::conv2d::cpu::cut;
use crate::engine::cpu::op::conv2d::geometry::Geometry;
use crate::engine::cpu::op::parallel::{Shared, for_each_piece, for_each_task, threads};
use crate::engine::cpu::op::product::{Factors, Matrix, MatrixMut, Write, multiply_by_strips, transpose};
use crate::engine::cpu::op::scalar::Scalar;
use crate::engine::cpu::op::scratch::{List, Scratch};

/// `dw`, from the layer's input and its output's gradient.
pub fn weight_gradient<T: Scalar>(g: &Geometry, x: &[T], dy: &[T], dw: &mut [T]) {
    let grid = Grid::new(g.winograd_images(), g.out_height, g.out_width);
    let (sizes, strip) = ([g.in_channels, g.out_channels], g.blocking.product_columns);
    let sum = TileSum { grid, sizes, sources: sources(g, x, dy), strip };
    let len = COMPONENTS * g.out_channels * g.in_channels;
    let parts = parts(&grid, len, threads());
    if parts.is_none() && padded(grid.tiles()) <= FEW_TILES {
        return sum.by_filters(dw);
    }
    let components = match parts {
        Some(parts) => sum.apart(&parts, len),
        None => sum.together(len),
    };
    transformed_back(g.out_channels, g.in_channels, &components, dw);
}

/// The rows of tiles that each task adds up, where a sum has `len` scalars; `None` where all tasks add to one sum.
pub(super) fn parts(grid: &Grid, len: usize, threads: usize) -> Option<List<Range<usize>>> {
    let parts = grid.even_pieces(2 * threads);
    (len <= FILTERS && parts.len() > 1 && grid.tiles() >= parts.len() * FEWEST).then_some(parts)
}

/// The sum over all tiles.
struct TileSum<'a, T> {
    grid: Grid,
    /// Channels of the input and of the output.
    sizes: [usize; 2],
    sources: [TileSource<'a, T>; 2],
    /// The most columns of a product in one call.
    strip: Option<usize>,
}

impl<T: Scalar> TileSum<'_, T> {
    /// Room for the tiles of the input and of the output's gradient.
    fn room(&self, stride: usize) -> [Scratch<T>; 2] {
        self.sizes.map(|channels| Scratch::new(COMPONENTS * channels * stride))
    }

    /// Some rows of tiles of the input, and of the output's gradient.
    fn tiles<'c>(&'c self, rows: &Range<usize>, [data, slopes]: &'c [Shared<'c, T>; 2]) -> [Tiles<'c, T>; 2] {
        let [of_data, of_slopes] = self.sources;
        [(of_data, data), (of_slopes, slopes)].map(|(source, room)| Tiles::new(source, self.grid, rows.clone(), room))
    }

    /// One component's sums for some output channels and the input channels of `data`.
    ///
    /// # Safety
    /// No task may write to the component's tiles.
    unsafe fn multiply(
        &self,
        component: usize,
        outputs: Range<usize>,
        slopes: &Tiles<'_, T>,
        data: Matrix<'_, T>,
        target: MatrixMut<'_, T>,
        mode: Write,
    ) {
        // SAFETY: by the caller's promise.
        let slopes = unsafe { slopes.matrix(component, outputs) };
        multiply_by_strips(target, slopes, data, mode, Factors::Exact, self.strip);
    }

    /// Small matrices: each task adds up a part of the tiles, in its own copy.
    fn apart(&self, parts: &[Range<usize>], len: usize) -> Scratch<T> {
        let mut copies = Scratch::new(parts.len() * len);
        let shared = Shared::new(&mut copies);
        let pieces = parts.iter().flat_map(|part| self.grid.cut(part.clone(), TILES));
        let stride = pieces.map(|rows| padded(rows.len() * self.grid.columns)).max().unwrap_or(0);
        let [from, to] = self.sizes;
        for_each_task(
            parts.len(),
            || (Strips::new(stride), self.room(stride)),
            |(strips, room), task| {
                let room = room.each_mut().map(|room| Shared::new(room));
                // SAFETY: this copy belongs to this task.
                let copy = Shared::new(unsafe { shared.slice(task * len, len) });
                for (i, rows) in self.grid.cut(parts[task].clone(), TILES).enumerate() {
                    let [data, slopes] = self.tiles(&rows, &room);
                    let mode = if i == 0 { Write::Overwrite } else { Write::AddTo };
                    // SAFETY: the room belongs to this task, which uses it for one thing at a time.
                    unsafe {
                        for tiles in [&data, &slopes] {
                            (0..tiles.channels()).for_each(|channel| tiles.gather(channel, strips));
                        }
                        for at in 0..COMPONENTS {
                            let target = MatrixMut::shared(&copy, at * from * to, to, from, from);
                            let data = data.matrix(at, 0..from).transposed();
                            self.multiply(at, 0..to, &slopes, data, target, mode);
                        }
                    }
                }
            },
        );
        copies
    }

    /// Large matrices: all threads go through the tiles together, each with some of the components.
    fn together(&self, len: usize) -> Scratch<T> {
        let [from, to] = self.sizes;
        let mut components = Scratch::new(len);
        let shared = Shared::new(&mut components);
        // There are no more passes over the matrices than over the tiles.
        let most = TOGETHER.max(2 * len) / (COMPONENTS * (from + to));
        let pieces = self.grid.pieces(most.max(TILES));
        let stride = padded(pieces.iter().map(Range::len).max().unwrap_or(0) * self.grid.columns);
        let mut room = self.room(stride);
        let room = room.each_mut().map(|room| Shared::new(room));
        for (i, rows) in pieces.iter().enumerate() {
            let [data, slopes] = self.tiles(rows, &room);
            let mode = if i == 0 { Write::Overwrite } else { Write::AddTo };
            // SAFETY: nobody uses the tiles meanwhile.
            unsafe { gather(&[&data, &slopes]) };
            for_each_block(to, |at, rows| {
                // SAFETY: a task has these rows of a component for itself, and nothing is gathered meanwhile.
                unsafe {
                    let target = MatrixMut::shared(&shared, (at * to + rows.start) * from, rows.len(), from, from);
                    self.multiply(at, rows, &slopes, data.matrix(at, 0..from).transposed(), target, mode);
                }
            });
        }
        components
    }

    /// For so few tiles that most of what is read and written is the gradient: a task adds up the gradient of some
    /// filters, a piece at a time, and transforms it back at once.
    fn by_filters(&self, dw: &mut [T]) {
        let ([from, to], stride) = (self.sizes, padded(self.grid.tiles()));
        let mut room = self.room(stride);
        let room = room.each_mut().map(|room| Shared::new(room));
        let [data, slopes] = self.tiles(&(0..self.grid.all_rows()), &room);
        // SAFETY: nobody uses the tiles meanwhile.
        unsafe { gather(&[&data, &slopes]) };
        // Turned once here instead of in each product.
        let mut turned = Scratch::new(COMPONENTS * from * stride);
        for_each_piece(&mut turned, from * stride, |component, turned| {
            // SAFETY: nothing is gathered any more; a component has as many numbers either way.
            unsafe {
                let data = room[0].get(component * turned.len(), turned.len()).as_ptr();
                transpose::copy(data, [1, stride], [stride, from], turned.as_mut_ptr(), from);
            }
        });
        let block = to.div_ceil(4 * threads()).min(BLOCK);
        let inputs: List<_> = cut(from, (COMPONENTS * block * from).div_ceil(NEAR), 64).collect();
        let most = inputs[0].len();
        let scratch = || Scratch::new(COMPONENTS * block * most);
        let dw = Shared::new(dw);
        for_each_task(to.div_ceil(block), scratch, |sums, task| {
            let outputs = task * block..((task + 1) * block).min(to);
            for inputs in &inputs {
                let len = outputs.len() * inputs.len();
                let sums = &mut sums[..COMPONENTS * len];
                for (component, sums) in sums.chunks_exact_mut(len).enumerate() {
                    let data = &turned[component * from * stride + inputs.start..];
                    let data = Matrix::new(data, stride, inputs.len(), from);
                    let target = MatrixMut::new(sums, outputs.len(), inputs.len(), inputs.len());
                    // SAFETY: nothing is gathered any more.
                    unsafe { self.multiply(component, outputs.clone(), &slopes, data, target, Write::Overwrite) };
                }
                for (row, output) in outputs.clone().enumerate() {
                    // SAFETY: these filters belong to this task.
                    let dw =
                        unsafe { dw.slice((output * from + inputs.start) * TAPS * TAPS, inputs.len() * TAPS * TAPS) };
                    let parts = std::iter::once(&*sums);
                    Arch::new().dispatch(TransformBack { parts, first: row * inputs.len(), stride: len, dw });
                }
            }
        });
    }
}
