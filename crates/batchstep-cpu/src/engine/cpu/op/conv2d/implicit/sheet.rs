//! Planes with the zeros around them, laid out so that the values that one tap of a filter reads at all output
//! positions are one contiguous part. Rows lie one after the other with the zeros between them, so a step down is a
//! step of one row's length. The sums at the places between the rows are computed too, but not used.

use std::ops::Range;

use super::super::unfold::copy;
use crate::engine::cpu::blocking::VECTOR;
use crate::engine::cpu::op::scalar::{Scalar, vectorised};
use crate::engine::cpu::op::scratch::List;

/// Which values of a source the outputs read along one axis.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    /// Values of the source.
    pub len: usize,
    /// Consecutive values that one output reads.
    pub taps: usize,
    /// Zeros before the source.
    pub before: usize,
    pub outputs: usize,
}

/// A plane of the source, laid out for some rows of outputs.
#[derive(Clone, Copy, Debug)]
pub struct Sheet {
    rows: Axis,
    columns: Axis,
    /// The distance from one row to the next.
    pub pitch: usize,
    /// Numbers of a plane.
    pub len: usize,
}

impl Sheet {
    /// For at most `most` rows of outputs at a time.
    pub fn new(rows: Axis, columns: Axis, most: usize) -> Self {
        let width = columns.outputs + columns.taps - 1;
        // The zeros to the right of a row are those to the left of the next one.
        let right = width.saturating_sub(columns.before + columns.len);
        let pitch = width - columns.before.min(right);
        let len = ((most + rows.taps - 2) * pitch + width).next_multiple_of(VECTOR);
        Self { rows, columns, pitch, len }
    }

    /// The number of sums for `rows` rows of outputs, including the unused ones between the rows.
    pub fn sums(&self, rows: usize) -> usize {
        (rows - 1) * self.pitch + self.columns.outputs
    }

    /// Where each tap reads its first value.
    pub fn places(&self) -> List<usize> {
        let (taps, pitch) = (self.columns.taps, self.pitch);
        (0..self.rows.taps * taps).map(|tap| tap / taps * pitch + tap % taps).collect()
    }

    /// Lays out a plane for some rows of outputs.
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
