//! The weights' gradient: `G^T [sum over tiles of (A dy A^T) (B^T x B)^T] G`.

use std::ops::Range;

use super::filters;
use super::grid::Grid;
use super::tiles::{COMPONENTS, Components, Strips, View, data_tiles, padded, slope_tiles};
use super::{FEWEST, FILTERS, TILES, TOGETHER, block, input_planes, output_planes};
use crate::engine::cpu::op::conv2d::geometry::Geometry;
use crate::engine::cpu::op::parallel::{Shared, for_each_task, threads};
use crate::engine::cpu::op::product::{Factors, Matrix, MatrixMut, Write, multiply_by_strips};
use crate::engine::cpu::op::scalar::Scalar;
use crate::engine::cpu::op::scratch::{List, Scratch};
use crate::network::Extent;

/// `dw`, from the layer's input and its output's gradient.
pub fn weight_gradient<T: Scalar>(g: &Geometry, x: &[T], dy: &[T], dw: &mut [T]) {
    let sum = Sum { g, grid: Grid::new(g.winograd_images(), g.out_height, g.out_width), x, dy };
    let len = COMPONENTS * g.out_channels * g.in_channels;
    let components = match parts(&sum.grid, len, threads()) {
        Some(parts) => sum.apart(&parts, len),
        None => sum.together(len),
    };
    filters::transformed_back(g.out_channels, g.in_channels, &components, dw);
}

/// Rows of tiles that a task adds up, where a sum has `len` scalars; `None` where all tasks add to one sum.
pub(super) fn parts(grid: &Grid, len: usize, threads: usize) -> Option<List<Range<usize>>> {
    let parts = grid.even_pieces(2 * threads);
    (len <= FILTERS && parts.len() > 1 && grid.tiles() >= parts.len() * FEWEST).then_some(parts)
}

/// The sum over all tiles.
struct Sum<'a, T> {
    g: &'a Geometry,
    grid: Grid,
    x: &'a [T],
    dy: &'a [T],
}

impl<T: Scalar> Sum<'_, T> {
    /// Small matrices: each task adds up a part of the tiles, in a copy of its own.
    fn apart(&self, parts: &[Range<usize>], len: usize) -> Scratch<T> {
        let mut copies = Scratch::new(parts.len() * len);
        let shared = Shared::new(&mut copies);
        let pieces = parts.iter().flat_map(|part| self.grid.cut(part.clone(), TILES));
        let stride = pieces.map(|rows| padded(rows.len() * self.grid.columns)).max().unwrap_or(0);
        let scratch = || {
            let room = |channels: usize| Scratch::new(COMPONENTS * channels * stride);
            (Strips::new(stride), room(self.g.in_channels), room(self.g.out_channels))
        };
        for_each_task(parts.len(), scratch, |(strips, data, slopes), task| {
            let (data, slopes) = (Shared::new(data), Shared::new(slopes));
            let gathered = Gathered { data: &data, slopes: &slopes };
            // SAFETY: this copy belongs to this task.
            let copy = Shared::new(unsafe { shared.slice(task * len, len) });
            for (i, rows) in self.grid.cut(parts[task].clone(), TILES).enumerate() {
                let piece = Piece::new(self, rows);
                let mode = if i == 0 { Write::Overwrite } else { Write::AddTo };
                // SAFETY: the room belongs to this task, which does one thing after the other.
                unsafe {
                    (0..self.g.in_channels).for_each(|channel| piece.gather_data(channel, strips, &data));
                    (0..self.g.out_channels).for_each(|channel| piece.gather_slopes(channel, strips, &slopes));
                    let all = || 0..self.g.out_channels;
                    (0..COMPONENTS).for_each(|at| piece.multiply(at, all(), &gathered, &copy, mode));
                }
            }
        });
        copies
    }

    /// Large ones: all threads go through the tiles together, each with some of the components.
    fn together(&self, len: usize) -> Scratch<T> {
        let (from, to) = (self.g.in_channels, self.g.out_channels);
        let mut components = Scratch::new(len);
        let shared = Shared::new(&mut components);
        // No more passes over the matrices than over the tiles.
        let room = TOGETHER.max(2 * len) / (COMPONENTS * (from + to));
        let pieces = self.grid.pieces(room.max(TILES));
        let stride = padded(pieces.iter().map(Range::len).max().unwrap_or(0) * self.grid.columns);
        let (mut data, mut slopes) = (Scratch::new(COMPONENTS * from * stride), Scratch::new(COMPONENTS * to * stride));
        let (data, slopes) = (Shared::new(&mut data), Shared::new(&mut slopes));
        let gathered = Gathered { data: &data, slopes: &slopes };
        let block = block(to);
        let blocks = to.div_ceil(block);
        for (i, rows) in pieces.iter().enumerate() {
            let piece = Piece::new(self, rows.clone());
            let mode = if i == 0 { Write::Overwrite } else { Write::AddTo };
            for_each_task(
                from + to,
                || Strips::new(stride),
                // SAFETY: a task has its channel for itself.
                |strips, task| unsafe {
                    match task.checked_sub(from) {
                        None => piece.gather_data(task, strips, &data),
                        Some(channel) => piece.gather_slopes(channel, strips, &slopes),
                    }
                },
            );
            for_each_task(
                COMPONENTS * blocks,
                || (),
                |(), task| {
                    let start = task % blocks * block;
                    let rows = start..(start + block).min(to);
                    // SAFETY: a task has these rows of a component for itself, and nothing is gathered meanwhile.
                    unsafe { piece.multiply(task / blocks, rows, &gathered, &shared, mode) };
                },
            );
        }
        components
    }
}

/// The transformed tiles of all input channels, and those of the output's gradient.
struct Gathered<'a, 'b, T> {
    data: &'a Shared<'b, T>,
    slopes: &'a Shared<'b, T>,
}

/// Some rows of tiles.
struct Piece<'a, 'b, T> {
    of: &'a Sum<'b, T>,
    rows: Range<usize>,
    stride: usize,
}

impl<'a, 'b, T: Scalar> Piece<'a, 'b, T> {
    fn new(of: &'a Sum<'b, T>, rows: Range<usize>) -> Self {
        let stride = padded(rows.len() * of.grid.columns);
        Self { of, rows, stride }
    }

    /// # Safety
    /// No other task may use this channel's place in `data`.
    unsafe fn gather_data(&self, channel: usize, strips: &mut Strips<T>, data: &Shared<'_, T>) {
        let planes = input_planes(self.of.g);
        let before = Extent::new(self.of.g.padding.top, self.of.g.padding.left);
        let view = View { values: self.of.x, planes, channel, rows: self.rows.clone(), before };
        // SAFETY: by the caller's promise.
        let into = unsafe { Components::new(data, channel * self.stride, planes.channels * self.stride) };
        data_tiles(&self.of.grid, &view, strips, into);
    }

    /// # Safety
    /// As for [`Self::gather_data`].
    unsafe fn gather_slopes(&self, channel: usize, strips: &mut Strips<T>, slopes: &Shared<'_, T>) {
        let planes = output_planes(self.of.g);
        let view = View { values: self.of.dy, planes, channel, rows: self.rows.clone(), before: Extent::square(0) };
        // SAFETY: by the caller's promise.
        let into = unsafe { Components::new(slopes, channel * self.stride, planes.channels * self.stride) };
        slope_tiles(&self.of.grid, &view, strips, into);
    }

    /// Some output channels' rows of one component.
    ///
    /// # Safety
    /// No other task may write to the component's tiles, or use these rows of it in `into`.
    unsafe fn multiply(
        &self,
        component: usize,
        rows: Range<usize>,
        gathered: &Gathered<'_, '_, T>,
        into: &Shared<'_, T>,
        mode: Write,
    ) {
        let (from, to) = (self.of.g.in_channels, self.of.g.out_channels);
        // SAFETY: by the caller's promise.
        let (data, slopes) = unsafe {
            let slopes = gathered.slopes.slice((component * to + rows.start) * self.stride, rows.len() * self.stride);
            (gathered.data.slice(component * from * self.stride, from * self.stride), slopes)
        };
        // With the zeros that fill the last register, among which its tiles are in any order.
        let data = Matrix::new(data, from, self.stride, self.stride).transposed();
        let slopes = Matrix::new(slopes, rows.len(), self.stride, self.stride);
        let start = (component * to + rows.start) * from;
        // SAFETY: by the caller's promise.
        let target = unsafe { MatrixMut::shared(into, start, rows.len(), from, from) };
        multiply_by_strips(target, slopes, data, mode, Factors::Exact, self.of.g.blocking.product_columns);
    }
}
