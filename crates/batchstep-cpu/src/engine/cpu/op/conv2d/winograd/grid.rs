//! How planes are cut into tiles, and the tiles into pieces for tasks.

use std::ops::Range;

use super::transform::STEP;
use crate::engine::cpu::blocking::VECTOR;
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

    /// Rows of tiles in at most `count` pieces of nearly the same length. Where pieces are long enough, all but the
    /// last are whole registers of tiles: a partly filled register takes as long as a full one.
    pub fn even_pieces(&self, count: usize) -> List<Range<usize>> {
        let rows = self.all_rows();
        let count = count.clamp(1, rows.max(1));
        let whole = if rows >= count * self.whole() { self.whole() } else { 1 };
        let end = |i: usize| (i * rows / count).next_multiple_of(whole).min(rows);
        (0..count).map(|i| end(i)..end(i + 1)).collect()
    }

    /// Rows whose tiles fill registers.
    fn whole(&self) -> usize {
        VECTOR >> self.columns.trailing_zeros().min(VECTOR.trailing_zeros())
    }

    /// [`Grid::pieces`] for some of the rows.
    pub fn cut(&self, rows: Range<usize>, tiles: usize) -> impl Iterator<Item = Range<usize>> {
        let most = (tiles / self.columns).max(1);
        let step = rows.len().div_ceil(rows.len().div_ceil(most).max(1)).max(1);
        let whole = step.next_multiple_of(self.whole());
        let step = if whole <= most { whole } else { step };
        rows.clone().step_by(step).map(move |start| start..(start + step).min(rows.end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Nine images of 16 x 16 have 36 rows of 4 tiles: two halves of 72 tiles are 5 registers of 16 each; 80 and 64
    // tiles are 5 and 4. Rows of 7 tiles fill whole registers 16 rows at a time, so none of three pieces of 14 rows
    // does.
    #[test]
    fn pieces_are_whole_registers_where_they_are_long_enough() {
        let pieces = |batch, side, count| Grid::new(batch, side, side).even_pieces(count).to_vec();
        assert_eq!(pieces(9, 16, 2), [0..20, 20..36]);
        assert_eq!(pieces(2, 28, 3), [0..4, 4..9, 9..14]);
        assert_eq!(pieces(7, 28, 2), [0..32, 32..49]);
        assert_eq!(Grid::new(9, 16, 16).cut(0..36, 100).collect::<Vec<_>>(), [0..20, 20..36]);
        assert_eq!(Grid::new(9, 16, 16).cut(0..36, 72).collect::<Vec<_>>(), [0..18, 18..36], "no more than 72 tiles");
    }
}
