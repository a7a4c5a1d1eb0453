//! How planes are cut into tiles, and the tiles into pieces for tasks.

use std::ops::Range;

use super::transform::STEP;
use crate::engine::cpu::op::scratch::List;

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
    pub fn pieces(&self, tiles: usize) -> List<Range<usize>> {
        self.cut(0..self.all_rows(), tiles).collect()
    }

    /// Rows of tiles in at most so many pieces of nearly the same length.
    pub fn even_pieces(&self, count: usize) -> List<Range<usize>> {
        let rows = self.all_rows();
        let count = count.clamp(1, rows.max(1));
        (0..count).map(|i| i * rows / count..(i + 1) * rows / count).collect()
    }

    /// The same of some of the rows.
    pub fn cut(&self, rows: Range<usize>, tiles: usize) -> impl Iterator<Item = Range<usize>> {
        let most = (tiles / self.columns).max(1);
        let step = rows.len().div_ceil(rows.len().div_ceil(most).max(1)).max(1);
        rows.clone().step_by(step).map(move |start| start..(start + step).min(rows.end))
    }
}
