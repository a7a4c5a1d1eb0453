//! How evenly a convolution's work is shared by the threads: the pieces into which it is cut, and the share of the
//! busiest thread.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use super::cpu_backward::{WeightCut, channel_blocks, is_narrow, sheets};
use super::geometry::Geometry;
use super::{Algorithm, Convolution, cpu, few_channels, implicit, pointwise, winograd};
use crate::network::Direction;

impl Convolution {
    /// The examples that `threads` threads could compute in the time that the busiest of them takes for its part of the
    /// batch, if time is proportional to the lengths of the pieces. This is the batch size where all threads get the
    /// same. `None` where the threads share each stage of the work.
    pub fn examples_of_the_busiest(&self, direction: Direction, threads: usize) -> Option<f64> {
        let pieces = self.pieces(direction, threads.max(1))?;
        let all: usize = pieces.iter().sum();
        let busiest = busiest(&pieces, threads.max(1));
        (all > 0).then(|| (self.geometry.batch * threads.max(1) * busiest) as f64 / all as f64)
    }

    /// The lengths of the pieces, in the order in which they are taken.
    fn pieces(&self, direction: Direction, threads: usize) -> Option<Vec<usize>> {
        let g = &self.geometry;
        match self.algorithm {
            Algorithm::Winograd => Some(lengths(&winograd::tasks(g, direction, threads)?)),
            Algorithm::FewChannels if direction != Direction::BackwardData => {
                Some(lengths(&few_channels::tasks(g, threads)))
            }
            Algorithm::Pointwise if direction == Direction::Forward => Some(by_columns(g, g.out_channels, threads)),
            Algorithm::Pointwise if direction == Direction::BackwardData => Some(by_columns(g, g.in_channels, threads)),
            Algorithm::Unfolded if direction == Direction::Forward => {
                let tiles = lengths(&cpu::column_tiles(&g.flattened(), threads)?);
                Some(tiles.repeat(g.groups))
            }
            Algorithm::Unfolded if direction == Direction::BackwardData => {
                let g = &g.flattened();
                if is_narrow(g) {
                    return None;
                }
                let blocks = lengths(&channel_blocks(g, sheets(g), threads));
                Some(blocks.repeat(g.groups * sheets(g)))
            }
            Algorithm::Implicit => Some(implicit::pieces(g, direction, threads)),
            Algorithm::Pointwise | Algorithm::Unfolded => Some(weight_pieces(&g.flattened(), threads)),
            Algorithm::FewChannels | Algorithm::Depthwise => None,
        }
    }
}

fn by_columns(g: &Geometry, to: usize, threads: usize) -> Vec<usize> {
    let [tiles, blocks] = pointwise::tiles_and_blocks(g.batch, g.positions(), to, threads);
    tiles.iter().flat_map(|tile| blocks.iter().map(|block| tile.len() * block.len())).collect()
}

fn weight_pieces(g: &Geometry, threads: usize) -> Vec<usize> {
    let cut = WeightCut::new(g, sheets(g), threads);
    let blocks = lengths(&cut.blocks);
    let columns = |part: &Range<usize>| -> usize { cut.tiles[part.clone()].iter().map(|(_, tile)| tile.len()).sum() };
    let parts = cut.parts.iter().flat_map(|part| vec![columns(part); g.groups]);
    parts.flat_map(|columns| blocks.iter().map(move |block| columns * block)).collect()
}

fn lengths(ranges: &[Range<usize>]) -> Vec<usize> {
    ranges.iter().map(Range::len).collect()
}

/// The work of the thread that ends last, where each thread takes the next piece when it has finished one.
fn busiest(pieces: &[usize], threads: usize) -> usize {
    let mut done: BinaryHeap<Reverse<usize>> = std::iter::repeat_n(Reverse(0), threads).collect();
    for piece in pieces {
        let Reverse(first) = done.pop().unwrap_or_default();
        done.push(Reverse(first + piece));
    }
    done.into_iter().map(|Reverse(work)| work).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::cpu::algorithm_choice::WinogradThreshold;
    use crate::network::{Conv2d, Padding, Shape};
    use crate::settings::Winograd;

    // Three pieces of 2 for two threads: one of them has two, the other one. Pieces of 5, 3, 3: 5 against 6.
    #[test]
    fn threads_take_the_next_piece_when_they_are_done_with_one() {
        assert_eq!([busiest(&[2, 2, 2], 2), busiest(&[5, 3, 3], 2), busiest(&[7], 4), busiest(&[], 2)], [4, 6, 7, 0]);
    }

    fn convolution(batch: usize, channels: usize, side: usize, kernel: usize) -> Convolution {
        let padding = Padding::all(kernel / 2);
        let layer = Conv2d { padding, ..Conv2d::square(channels, kernel) };
        let input = Shape::Maps { channels, height: side, width: side };
        Convolution::new(batch, input, &layer, Winograd::Any, WinogradThreshold::default()).unwrap()
    }

    // Images of 14 x 14 have 4 rows of 4 tiles. From 768 tiles on (48 images) a piece has at most 192 tiles, 48 rows.
    // With pieces of up to 40 rows, the 196 rows of 49 images would be 5 pieces, for which two threads need 3 rounds:
    // 120 rows instead of 98. With whole rounds there are 6 pieces, of 32 or 36 rows. Pieces are whole registers of 4
    // rows: for 31 images, one of four threads gets 20 and 16 rows, as if there were 144 rows instead of 124. Pieces of
    // 15 and 16 rows would take as long, since a partly filled register takes as long as a full one.
    #[test]
    fn winograds_pieces_are_as_many_for_each_thread() {
        let at = |batch, threads| {
            convolution(batch, 64, 14, 3).examples_of_the_busiest(Direction::Forward, threads).expect("pieces")
        };
        assert_eq!(at(48, 2), 48.0);
        for batch in 24..300 {
            for threads in 1..=4 {
                let over = at(batch, threads) / batch as f64;
                assert!((1.0..1.17).contains(&over), "{batch} images, {threads} threads: {over}");
            }
        }
    }

    // 1 x 1 on 16 x 16: an image is one tile of 256 positions, in one block of channels once there are 4 images for
    // each thread. With 9 images, one of two threads gets 5: the time of 10 examples.
    #[test]
    fn a_product_for_each_image_leaves_a_thread_with_one_more() {
        let at = |batch| convolution(batch, 64, 16, 1).examples_of_the_busiest(Direction::Forward, 2);
        assert_eq!([at(8), at(9), at(10), at(11)], [Some(8.0), Some(10.0), Some(10.0), Some(12.0)]);
        assert_eq!(convolution(9, 64, 16, 1).examples_of_the_busiest(Direction::Forward, 1), Some(9.0));
    }
}
