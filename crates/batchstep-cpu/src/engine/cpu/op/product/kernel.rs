//! Products by blocks of the target that stay in registers: six rows of four registers each, or of two registers where
//! the processor has only 16.
//!
//! The left side is read in place, one number of each row at a time, whatever its strides. The right side is read a
//! register at a time. It is read in place where its rows are contiguous and close together, or are read hardly more
//! than once; otherwise some of its rows and columns are first copied into panels as wide as a block, which stay in the
//! second-level cache.

use pulp::{Simd, WithSimd};

use super::{Matrix, MatrixMut, Places, transpose};
use crate::engine::cpu::blocking::{ROWS, next_rows};
use crate::engine::cpu::op::scalar::Scalar;
use crate::engine::cpu::op::scratch::Scratch;

/// The most registers of a row of a block.
const WIDE: usize = 4;
/// Rows of the right side that are multiplied before the next ones: they use 1 KiB of each row of the left side.
const DEPTH: usize = 256;
/// The same for a right side with so few columns that more rows take no more memory.
const DEEPEST: usize = 2048;
/// Numbers in the panels: 256 KiB in float32, a quarter of a typical second-level cache.
const PANELS: usize = 1 << 16;
/// Rows of the target for which the right side is not copied: it is read once for each block of them.
const FEW: usize = 2 * ROWS;
/// The largest distance of rows that counts as close together.
const CLOSE: usize = 512;

/// `target = a b`, or `target += a b`; the matrices fit.
pub(super) struct Product<'a, T> {
    pub target: MatrixMut<'a, T>,
    pub a: Matrix<'a, T>,
    pub b: Matrix<'a, T>,
    pub adds: bool,
}

/// Some rows and columns of the right side, in panels.
#[derive(Clone, Copy)]
struct Panels<'a, T> {
    places: Option<Places<'a>>,
    start: *const T,
    /// The distance from one panel to the next.
    apart: usize,
    /// The distance from one row to the next.
    stride: usize,
    rows: usize,
    /// Columns of all panels.
    columns: usize,
    /// Columns of one panel.
    wide: usize,
    /// Their place in the product.
    first_row: usize,
    first_column: usize,
    /// Whether the product is added to the target.
    adds: bool,
}

impl<T: Scalar> WithSimd for Product<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let (columns, inner) = (self.b.columns, self.b.rows);
        let lanes = T::lanes::<S>();
        let wide = if S::REGISTER_COUNT >= 32 { WIDE } else { WIDE / 2 } * lanes;
        let pitch = columns.clamp(1, wide).next_multiple_of(lanes);
        let depth = (DEPTH * wide / pitch).min(DEEPEST).min(inner.max(1));
        let is_close = self.target.rows <= FEW || self.b.row_stride <= CLOSE;
        let in_place = self.b.places.is_some() || self.b.column_stride == 1 && is_close;
        let group =
            if in_place { columns } else { (PANELS / depth / pitch * pitch).min(columns.next_multiple_of(pitch)) };
        let mut room = Scratch::new(if in_place { 0 } else { depth * group });
        let mut first_row = 0;
        // Runs once even where there is nothing to add up: the target becomes zero.
        while first_row < inner.max(1) {
            let rows = depth.min(inner - first_row);
            for first_column in (0..columns).step_by(group.max(1)) {
                let columns = group.min(columns - first_column);
                let first = if self.b.places.is_some() { 0 } else { first_row * self.b.row_stride };
                let place = first + first_column * self.b.column_stride;
                let start = self.b.elements.as_ptr().wrapping_add(place);
                let adds = self.adds || first_row > 0;
                let (apart, stride, places) = (wide, self.b.row_stride, self.b.places);
                let own = Panels { places, start, apart, stride, rows, columns, wide, first_row, first_column, adds };
                let panels = if in_place {
                    own
                } else {
                    let copied = Panels { start: room.as_ptr(), apart: depth * pitch, stride: pitch, ..own };
                    // SAFETY: these rows and columns are inside the matrix, whose constructor checked its elements, and
                    // there is room for them.
                    unsafe { self.copy(simd, start, copied, room.as_mut_ptr()) };
                    copied
                };
                self.multiply(simd, panels);
            }
            first_row += depth;
        }
    }
}

impl<T: Scalar> Product<'_, T> {
    /// Copies rows and columns of the right side to their panels.
    ///
    /// # Safety
    /// The rows and columns must exist, and there must be room for them.
    #[inline(always)]
    unsafe fn copy<S: Simd>(&self, simd: S, from: *const T, to: Panels<'_, T>, room: *mut T) {
        let lanes = T::lanes::<S>();
        let (row_stride, column_stride) = (self.b.row_stride, self.b.column_stride);
        for first in (0..to.columns).step_by(to.wide) {
            let width = to.wide.min(to.columns - first);
            let from = from.wrapping_add(first * column_stride);
            let room = room.wrapping_add(first / to.wide * to.apart);
            if column_stride != 1 {
                // SAFETY: by the caller's promise.
                unsafe { transpose::copy(from, [row_stride, column_stride], [to.rows, width], room, to.stride) };
                continue;
            }
            let last = (width - 1) / lanes * lanes;
            let mask = T::mask(simd, 0..width - last);
            for row in 0..to.rows {
                let (from, to) = (from.wrapping_add(row * row_stride), room.wrapping_add(row * to.stride));
                // SAFETY: by the caller's promise.
                unsafe {
                    for at in (0..last).step_by(lanes) {
                        let values = from.add(at).cast::<T::Vector<S>>().read_unaligned();
                        to.add(at).cast::<T::Vector<S>>().write_unaligned(values);
                    }
                    T::store(simd, mask, to.add(last), T::load(simd, mask, from.add(last)));
                }
            }
        }
    }

    /// Multiplies all rows of the left side by some panels.
    #[inline(always)]
    fn multiply<S: Simd>(&self, simd: S, panels: Panels<'_, T>) {
        let mut row = 0;
        while row < self.target.rows {
            let rows = next_rows(self.target.rows - row);
            match rows {
                1 => self.rows::<S, 1>(simd, panels, row),
                2 => self.rows::<S, 2>(simd, panels, row),
                3 => self.rows::<S, 3>(simd, panels, row),
                4 => self.rows::<S, 4>(simd, panels, row),
                5 => self.rows::<S, 5>(simd, panels, row),
                _ => self.rows::<S, ROWS>(simd, panels, row),
            }
            row += rows;
        }
    }

    /// `R` rows of the left side, from `row` on.
    #[inline(always)]
    fn rows<S: Simd, const R: usize>(&self, simd: S, panels: Panels<'_, T>, row: usize) {
        for column in (0..panels.columns).step_by(panels.wide) {
            let width = panels.wide.min(panels.columns - column);
            let panel = panels.start.wrapping_add(column / panels.wide * panels.apart);
            // SAFETY: these rows and columns are inside the panels and the matrices, whose constructors checked their
            // elements.
            unsafe {
                match panels.places {
                    Some(places) => {
                        let next = places.walk(panel, panels.first_row);
                        self.registers::<S, R>(simd, panels, next, [row, column, width]);
                    }
                    None => {
                        let mut at = 0;
                        let next = move || {
                            at += 1;
                            panel.wrapping_add((at - 1) * panels.stride)
                        };
                        self.registers::<S, R>(simd, panels, next, [row, column, width]);
                    }
                }
            }
        }
    }

    /// A block with the number of registers that its width needs.
    ///
    /// # Safety
    /// As for [`Product::block`].
    #[inline(always)]
    unsafe fn registers<S: Simd, const R: usize>(
        &self,
        simd: S,
        panels: Panels<'_, T>,
        next: impl FnMut() -> *const T,
        place: [usize; 3],
    ) {
        // SAFETY: by the caller's promise.
        unsafe {
            match place[2].div_ceil(T::lanes::<S>()) {
                1 => self.block::<S, R, 1>(simd, panels, next, place),
                2 => self.block::<S, R, 2>(simd, panels, next, place),
                3 => self.block::<S, R, 3>(simd, panels, next, place),
                _ => self.block::<S, R, WIDE>(simd, panels, next, place),
            }
        }
    }

    /// One block of the target: `R` rows, and as many columns as the width says, from a place on. The last of the `V`
    /// registers may be only partly filled. `next` gives the rows of the panel, one after the other.
    ///
    /// # Safety
    /// The rows and columns must exist in the matrices and in the panel.
    #[inline(always)]
    unsafe fn block<S: Simd, const R: usize, const V: usize>(
        &self,
        simd: S,
        panels: Panels<'_, T>,
        mut next: impl FnMut() -> *const T,
        [row, column, width]: [usize; 3],
    ) {
        let lanes = T::lanes::<S>();
        let Matrix { elements, row_stride, column_stride, .. } = self.a;
        let a = elements.as_ptr().wrapping_add(row * row_stride + panels.first_row * column_stride);
        let to = self.target.pointer.wrapping_add(row * self.target.stride + panels.first_column + column);
        let mask = T::mask(simd, 0..width - (V - 1) * lanes);
        let zero = T::splat(simd, T::ZERO);
        let mut sums = [[zero; V]; R];
        for k in 0..panels.rows {
            let b = next();
            let mut values = [zero; V];
            for (v, values) in values.iter_mut().enumerate() {
                // SAFETY: by the caller's promise, and the mask has the lanes inside the matrix.
                *values = unsafe {
                    match v + 1 < V {
                        true => b.add(v * lanes).cast::<T::Vector<S>>().read_unaligned(),
                        false => T::load(simd, mask, b.wrapping_add(v * lanes)),
                    }
                };
            }
            for (r, sums) in sums.iter_mut().enumerate() {
                // SAFETY: by the caller's promise.
                let factor = unsafe { *a.wrapping_add(r * row_stride + k * column_stride) };
                let factor = T::splat(simd, factor);
                for (sum, values) in sums.iter_mut().zip(values) {
                    *sum = T::multiply_add(simd, factor, values, *sum);
                }
            }
        }
        for (r, sums) in sums.iter().enumerate() {
            for (v, sum) in sums.iter().enumerate() {
                let to = to.wrapping_add(r * self.target.stride + v * lanes);
                // SAFETY: by the caller's promise; the target is not aliased.
                unsafe {
                    if v + 1 < V {
                        let to = to.cast::<T::Vector<S>>();
                        to.write_unaligned(if panels.adds { T::plus(simd, *sum, to.read_unaligned()) } else { *sum });
                    } else {
                        let sum = if panels.adds { T::plus(simd, *sum, T::load(simd, mask, to)) } else { *sum };
                        T::store(simd, mask, to, sum);
                    }
                }
            }
        }
    }
}
