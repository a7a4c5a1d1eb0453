//! Places buffers in one stretch of memory, where each buffer is used only during a part of a step.
//!
//! Buffers are placed by size, the largest first, each at the lowest offset that is free while it is used: "greedy by size" of Pisarchyk and Lee,
//! "Efficient memory management for deep neural net inference", 2020, <https://arxiv.org/abs/2001.03288>, who found it within 2 % of the lower bound on
//! convolutional networks.

use std::ops::Range;

/// The first and the last moment at which a buffer is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub first: usize,
    pub last: usize,
}

impl Span {
    pub fn overlaps(self, other: Self) -> bool {
        self.first <= other.last && other.first <= self.last
    }
}

/// The offset of each buffer, and the bytes of all together. A buffer is given by its bytes, rounded up to the
/// alignment of offsets, and by its span; a buffer that is never used gets offset 0.
pub fn place(buffers: &[(usize, Option<Span>)]) -> (Vec<usize>, usize) {
    let (mut offsets, mut bytes) = (vec![0; buffers.len()], 0);
    let used = |id: usize| buffers[id].1.map(|span| (id, span));
    let mut order: Vec<(usize, Span)> = (0..buffers.len()).filter_map(used).collect();
    order.sort_by_key(|&(id, _)| std::cmp::Reverse(buffers[id].0));
    for (at, &(id, span)) in order.iter().enumerate() {
        let size = buffers[id].0;
        let placed = order[..at].iter().filter(|(_, other)| span.overlaps(*other));
        let mut in_use: Vec<Range<usize>> =
            placed.map(|&(other, _)| offsets[other]..usize::saturating_add(offsets[other], buffers[other].0)).collect();
        in_use.sort_unstable_by_key(|range| range.start);
        offsets[id] = first_gap(&in_use, size);
        bytes = bytes.max(offsets[id].saturating_add(size));
    }
    (offsets, bytes)
}

/// The lowest offset at which `size` bytes fit between ranges that are sorted by their start.
fn first_gap(in_use: &[Range<usize>], size: usize) -> usize {
    let mut end = 0usize;
    for range in in_use {
        if end.saturating_add(size) <= range.start {
            break;
        }
        end = end.max(range.end);
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: the two of 30 bytes are used at the same time; the one of 20 lies where the first was, and the one of
    /// 10 after it.
    #[test]
    fn buffers_share_memory_when_they_are_used_at_different_times() {
        let span = |first, last| Some(Span { first, last });
        let buffers = [(10, span(2, 3)), (30, span(0, 1)), (30, span(1, 3)), (20, span(2, 2)), (50, None)];
        assert_eq!(place(&buffers), (vec![20, 0, 30, 0, 0], 60));
    }

    #[test]
    fn a_gap_is_used_where_it_is_large_enough() {
        assert_eq!(first_gap(&[], 8), 0);
        assert_eq!(first_gap(&[0..4, 10..14], 6), 4);
        assert_eq!(first_gap(&[0..4, 10..14], 7), 14);
        // The second range ends within the first.
        assert_eq!(first_gap(&[0..20, 5..10, 20..21], 1), 21);
    }
}
