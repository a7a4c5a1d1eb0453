//! The weights' gradient: `G^T [sum over tiles of (A dy A^T) (B^T x B)^T] G`.

use std::ops::Range;

use super::filters;
use super::grid::Grid;
use super::tiles::{COMPONENTS, Components, Strips, View, data_tiles, padded, slope_tiles};
use super::transform::TAPS;
use super::{
    BLOCK, FEW_TILES, FEWEST, FILTERS, NEAR, TILES, TOGETHER, block, for_each_channel, input_planes, output_planes,
};
use crate::engine::cpu::op::conv2d::cpu::cut;
use crate::engine::cpu::op::conv2d::geometry::Geometry;
use crate::engine::cpu::op::parallel::{Shared, for_each, for_each_piece, for_each_task, threads};
use crate::engine::cpu::op::product::{Factors, Matrix, MatrixMut, Write, multiply_by_strips, transpose};
use crate::engine::cpu::op::scalar::Scalar;
use crate::engine::cpu::op::scratch::{List, Scratch};
use crate::network::Extent;

/// `dw`, from the layer's input and its output's gradient.
pub fn weight_gradient<T: Scalar>(g: &Geometry, x: &[T], dy: &[T], dw: &mut [T]) {
    let sum = TileSum { g, grid: Grid::new(g.winograd_images(), g.out_height, g.out_width), x, dy };
    let len = COMPONENTS * g.out_channels * g.in_channels;
    let parts = parts(&sum.grid, len, threads());
    if parts.is_none() && padded(sum.grid.tiles()) <= FEW_TILES {
        return sum.by_filters(dw);
    }
    let components = match parts {
        Some(parts) => sum.apart(&parts, len),
        None => sum.together(len),
    };
    filters::transformed_back(g.out_channels, g.in_channels, &components, dw);
}

/// The rows of tiles that each task adds up, where a sum has `len` scalars; `None` where all tasks add to one sum.
pub(super) fn parts(grid: &Grid, len: usize, threads: usize) -> Option<List<Range<usize>>> {
    let parts = grid.even_pieces(2 * threads);
    (len <= FILTERS && parts.len() > 1 && grid.tiles() >= parts.len() * FEWEST).then_some(parts)
}

/// The sum over all tiles.
struct TileSum<'a, T> {
    g: &'a Geometry,
    grid: Grid,
    x: &'a [T],
    dy: &'a [T],
}

impl<T: Scalar> TileSum<'_, T> {
    /// Small matrices: each task adds up a part of the tiles, in its own copy.
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
                // SAFETY: the room belongs to this task, which uses it for one thing at a time.
                unsafe {
                    (0..self.g.in_channels).for_each(|channel| piece.gather_data(channel, strips, &data));
                    (0..self.g.out_channels).for_each(|channel| piece.gather_slopes(channel, strips, &slopes));
                    let (from, to) = (self.g.in_channels, self.g.out_channels);
                    for at in 0..COMPONENTS {
                        let target = MatrixMut::shared(&copy, at * from * to, to, from, from);
                        piece.multiply(at, 0..to, &gathered, piece.data(at, &data), target, mode);
                    }
                }
            }
        });
        copies
    }

    /// Large matrices: all threads go through the tiles together, each with some of the components.
    fn together(&self, len: usize) -> Scratch<T> {
        let (from, to) = (self.g.in_channels, self.g.out_channels);
        let mut components = Scratch::new(len);
        let shared = Shared::new(&mut components);
        // There are no more passes over the matrices than over the tiles.
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
            // SAFETY: nobody uses the tiles meanwhile.
            unsafe { piece.gather(&gathered) };
            for_each(COMPONENTS * blocks, |task| {
                let start = task % blocks * block;
                let (at, rows) = (task / blocks, start..(start + block).min(to));
                // SAFETY: a task has these rows of a component for itself, and nothing is gathered meanwhile.
                unsafe {
                    let target = MatrixMut::shared(&shared, (at * to + start) * from, rows.len(), from, from);
                    piece.multiply(at, rows, &gathered, piece.data(at, &data), target, mode);
                }
            });
        }
        components
    }

    /// For so few tiles that most of what is read and written is the gradient: a task adds up the gradient of some
    /// filters, a piece at a time, and transforms it back at once.
    fn by_filters(&self, dw: &mut [T]) {
        let (from, to) = (self.g.in_channels, self.g.out_channels);
        let piece = Piece::new(self, 0..self.grid.all_rows());
        let room = |channels: usize| Scratch::new(COMPONENTS * channels * piece.stride);
        let (mut data, mut slopes) = (room(from), room(to));
        let gathered = Gathered { data: &Shared::new(&mut data), slopes: &Shared::new(&mut slopes) };
        // SAFETY: nobody uses the tiles meanwhile.
        unsafe { piece.gather(&gathered) };
        // Turned once here instead of in each product.
        let mut turned = room(from);
        for_each_piece(&mut turned, from * piece.stride, |component, turned| {
            // SAFETY: nothing is gathered any more; a component has as many numbers either way.
            unsafe {
                let data = gathered.data.get(component * turned.len(), turned.len()).as_ptr();
                transpose::copy(data, [1, piece.stride], [piece.stride, from], turned.as_mut_ptr(), from);
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
                    let data = &turned[component * from * piece.stride + inputs.start..];
                    let data = Matrix::new(data, piece.stride, inputs.len(), from);
                    let target = MatrixMut::new(sums, outputs.len(), inputs.len(), inputs.len());
                    // SAFETY: nothing is gathered any more.
                    unsafe { piece.multiply(component, outputs.clone(), &gathered, data, target, Write::Overwrite) };
                }
                for (row, output) in outputs.clone().enumerate() {
                    // SAFETY: these filters belong to this task.
                    let dw =
                        unsafe { dw.slice((output * from + inputs.start) * TAPS * TAPS, inputs.len() * TAPS * TAPS) };
                    filters::transform_back(std::iter::once(&*sums), (row * inputs.len(), len), dw);
                }
            }
        });
    }
}

/// The transformed tiles of all input channels, and of the output's gradient.
struct Gathered<'a, 'b, T> {
    data: &'a Shared<'b, T>,
    slopes: &'a Shared<'b, T>,
}

/// Some rows of tiles.
struct Piece<'a, 'b, T> {
    of: &'a TileSum<'b, T>,
    rows: Range<usize>,
    stride: usize,
}

impl<'a, 'b, T: Scalar> Piece<'a, 'b, T> {
    fn new(of: &'a TileSum<'b, T>, rows: Range<usize>) -> Self {
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

    /// The tiles of all channels, by all threads.
    ///
    /// # Safety
    /// Nobody else may use them meanwhile.
    unsafe fn gather(&self, gathered: &Gathered<'_, '_, T>) {
        let (from, to) = (self.of.g.in_channels, self.of.g.out_channels);
        for_each_channel(
            from + to,
            || Strips::new(self.stride),
            // SAFETY: a task has its channel for itself.
            |strips, task| unsafe {
                match task.checked_sub(from) {
                    None => self.gather_data(task, strips, gathered.data),
                    Some(channel) => self.gather_slopes(channel, strips, gathered.slopes),
                }
            },
        );
    }

    /// One component's sums for some output channels and the input channels of `data`.
    ///
    /// # Safety
    /// No task may write to the component's tiles.
    unsafe fn multiply(
        &self,
        component: usize,
        outputs: Range<usize>,
        gathered: &Gathered<'_, '_, T>,
        data: Matrix<'_, T>,
        target: MatrixMut<'_, T>,
        mode: Write,
    ) {
        let first = component * self.of.g.out_channels + outputs.start;
        // SAFETY: by the caller's promise.
        let slopes = unsafe { self.tiles(first, outputs.len(), gathered.slopes) };
        multiply_by_strips(target, slopes, data, mode, Factors::Exact, self.of.g.blocking.product_columns);
    }

    /// One component of all input channels, turned.
    ///
    /// # Safety
    /// As for [`Self::multiply`].
    unsafe fn data<'c>(&self, component: usize, data: &'c Shared<'_, T>) -> Matrix<'c, T> {
        let from = self.of.g.in_channels;
        // SAFETY: by the caller's promise.
        unsafe { self.tiles(component * from, from, data) }.transposed()
    }

    /// Some rows of tiles. Zeros fill the last register, in which tiles and zeros stand in any order.
    ///
    /// # Safety
    /// As for [`Self::multiply`].
    unsafe fn tiles<'c>(&self, first: usize, rows: usize, tiles: &'c Shared<'_, T>) -> Matrix<'c, T> {
        // SAFETY: by the caller's promise.
        let tiles = unsafe { tiles.get(first * self.stride, rows * self.stride) };
        Matrix::new(tiles, rows, self.stride, self.stride)
    }
}
