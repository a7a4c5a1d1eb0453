//! Splits rows by the stride, so that what a tap reads is contiguous, and joins them again.

use super::K;
use crate::engine::cpu::op::conv2d::geometry::Geometry;
use crate::engine::cpu::op::scalar::{Scalar, vectorised};

/// Rows that are split into phases of equal length; the later phases may have a last column that is not used.
#[derive(Clone, Copy)]
pub(super) struct Phases {
    pub stride: usize,
    /// Columns of a row.
    pub width: usize,
}

impl Phases {
    pub(super) fn of_input(g: &Geometry) -> Self {
        Self { stride: g.stride.width, width: g.width }
    }

    /// Columns of a phase.
    pub(super) fn columns(self) -> usize {
        self.width.div_ceil(self.stride)
    }

    /// The room that `rows` rows need; none where there is nothing to split.
    pub(super) fn room(self, rows: usize) -> usize {
        if self.stride == 1 { 0 } else { self.stride * rows * self.columns() }
    }

    /// The columns that each tap reads for each column of the output, in `rows` rows of the input.
    pub(super) fn taps_forward(self, left: usize, rows: usize) -> [Option<Tap>; K] {
        std::array::from_fn(|j| {
            let stride = self.stride as isize;
            let column = j as isize - left as isize;
            let (phase, shift) = (column.rem_euclid(stride), column.div_euclid(stride));
            let columns = self.width.saturating_sub(phase as usize).div_ceil(self.stride);
            Some(Tap { start: phase * (rows * self.columns()) as isize, shift, columns })
        })
    }

    /// The columns of the output's gradient that each tap reads for each column of a phase of the input's gradient;
    /// `None` for a tap that reads none.
    pub(super) fn taps_backward(self, left: usize, phase: usize, columns: usize) -> [Option<Tap>; K] {
        std::array::from_fn(|j| {
            let (column, stride) = ((phase + left) as isize - j as isize, self.stride as isize);
            (column % stride == 0).then_some(Tap { start: 0, shift: column / stride, columns })
        })
    }

    /// Splits rows into the first phase of all of them, then the second, and so on.
    pub(super) fn split<T: Scalar>(self, rows: &[T], to: &mut [T]) {
        let (columns, size) = (self.columns(), rows.len() / self.width * self.columns());
        if self.is_even() {
            let (even, odd) = to.split_at_mut(size);
            let pairs = rows.as_chunks::<2>().0;
            return vectorised(
                #[inline(always)]
                || {
                    let (even, odd) = (&mut even[..pairs.len()], &mut odd[..pairs.len()]);
                    for (i, pair) in pairs.iter().enumerate() {
                        even[i] = pair[0];
                        odd[i] = pair[1];
                    }
                },
            );
        }
        for (r, row) in rows.chunks_exact(self.width).enumerate() {
            for phase in 0..self.stride {
                let to = &mut to[phase * size + r * columns..][..columns];
                to.iter_mut().zip(row.iter().skip(phase).step_by(self.stride)).for_each(|(to, from)| *to = *from);
            }
        }
    }

    /// The reverse of [`Phases::split`].
    pub(super) fn join<T: Scalar>(self, phases: &[T], rows: &mut [T]) {
        let (columns, size) = (self.columns(), rows.len() / self.width * self.columns());
        if self.is_even() {
            let pairs = rows.as_chunks_mut::<2>().0;
            return vectorised(
                #[inline(always)]
                || {
                    let (even, odd) = (&phases[..pairs.len()], &phases[size..][..pairs.len()]);
                    for (i, pair) in pairs.iter_mut().enumerate() {
                        *pair = [even[i], odd[i]];
                    }
                },
            );
        }
        for (r, row) in rows.chunks_exact_mut(self.width).enumerate() {
            for phase in 0..self.stride {
                let from = &phases[phase * size + r * columns..][..columns];
                row.iter_mut().skip(phase).step_by(self.stride).zip(from).for_each(|(to, from)| *to = *from);
            }
        }
    }

    /// Whether each row consists of whole pairs.
    fn is_even(self) -> bool {
        self.stride == 2 && self.width.is_multiple_of(2)
    }
}

/// Where a column of a filter reads for column c of the result: at `start + c + shift` from the beginning of a row, if
/// `c + shift` is in `columns`.
#[derive(Clone, Copy)]
pub(super) struct Tap {
    pub start: isize,
    pub shift: isize,
    pub columns: usize,
}
