//! Planes with the zeros around them, laid out so that what one tap of a filter sees at all output positions is a part of them, in one piece: rows lie one after the other
//! with the zeros between them, so that a step down is a step of a row's length. The sums at the places between the rows are computed as well, and not used.

use std::ops::Range;

use super::super::unfold::copy;
use crate::engine::cpu::blocking::VECTOR;
use crate::engine::cpu::op::scalar::{Scalar, vectorised};
use crate::engine::cpu::op::scratch::List;

/// How outputs see the values of a source along one axis.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    /// Values of the source.
    pub len: usize,
    /// Those that an output sees, one after the other.
    pub taps: usize,
    /// Zeros before the source.
    pub before: usize,
    pub outputs: usize,
}

/// A plane of the source, as the outputs of some rows see it.
#[derive(Clone, Copy, Debug)]
pub struct Sheet {
    rows: Axis,
    columns: Axis,
    /// From one row to the next.
    pub pitch: usize,
    /// Numbers of a plane.
    pub len: usize,
}

impl Sheet {
    /// For at most so many rows of outputs at a time.
    pub fn new(rows: Axis, columns: Axis, most: usize) -> Self {
        let width = columns.outputs + columns.taps - 1;
        // The zeros to the right of a row are those to the left of the next one.
        let right = width.saturating_sub(columns.before + columns.len);
        let pitch = width - columns.before.min(right);
        let len = ((most + rows.taps - 2) * pitch + width).next_multiple_of(VECTOR);
        Self { rows, columns, pitch, len }
    }

    /// Sums for so many rows of outputs, with those between the rows.
    pub fn sums(&self, rows: usize) -> usize {
        (rows - 1) * self.pitch + self.columns.outputs
    }

    /// Where each tap sees its first value.
    pub fn places(&self) -> List<usize> {
        let (taps, pitch) = (self.columns.taps, self.pitch);
        (0..self.rows.taps * taps).map(|tap| tap / taps * pitch + tap % taps).collect()
    }

    /// Writes a plane as some rows of outputs see it.
    pub fn fill<T: Scalar>(&self, source: &[T], outputs: &Range<usize>, to: &mut [T]) {
        let (width, before) = (self.columns.len, self.columns.before);
        let seen = width.min(self.columns.outputs + self.columns.taps - 1 - before);
        vectorised(
            #[inline(always)]
            || {
                to.fill(T::ZERO);
                for place in 0..outputs.len() + self.rows.taps - 1 {
                    let row = (outputs.start + place).checked_sub(self.rows.before).filter(|row| *row < self.rows.len);
                    if let Some(row) = row {
                        copy(&mut to[place * self.pitch + before..][..seen], &source[row * width..][..seen]);
                    }
                }
            },
        );
    }
}
