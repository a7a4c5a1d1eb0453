//! Where each buffer of a plan lies in one stretch of memory.
//!
//! A buffer that is kept from step to step has its own memory. Any other is alive from the first call that uses it to
//! the last call that may run at the same time as one that uses it, and shares memory with buffers that are alive at
//! other times, see [`placement`](crate::engine::placement).

use super::call::{BufferId, Call, Slice};
use crate::engine::placement::{Span, place};

/// Buffers begin at multiples of this many bytes: a multiple of what vector accesses (16), tensor-map copies (128) and
/// cuDNN's fastest kernels require.
pub const ALIGNMENT: usize = 512;

/// How long a buffer's content is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// From step to step.
    Kept,
    /// Within a step, while calls that use it may run.
    Step,
}

/// A buffer of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffer {
    pub bytes: usize,
    pub life: Life,
}

/// The offset of each buffer, in bytes, and the total size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arena {
    pub offsets: Vec<usize>,
    pub bytes: usize,
}

impl Arena {
    /// Places every buffer; each call comes with the last call that may run at the same time. A buffer that no call
    /// uses gets offset 0.
    pub fn new<'a>(buffers: &[Buffer], calls: impl Iterator<Item = (&'a Call, usize)>) -> Self {
        let sizes = buffers.iter().map(|buffer| buffer.bytes.next_multiple_of(ALIGNMENT));
        let (offsets, bytes) = place(&sizes.zip(spans(buffers, calls)).collect::<Vec<_>>());
        Self { offsets, bytes }
    }

    /// Every buffer in its own memory.
    pub fn apart(buffers: &[Buffer]) -> Self {
        let mut arena = Self { offsets: Vec::with_capacity(buffers.len()), bytes: 0 };
        for buffer in buffers {
            arena.offsets.push(arena.bytes);
            arena.bytes = arena.bytes.saturating_add(buffer.bytes).next_multiple_of(ALIGNMENT);
        }
        arena
    }

    /// The offset of a slice, in bytes.
    pub fn offset(&self, slice: Slice) -> usize {
        self.offsets[slice.buffer.0] + slice.offset
    }
}

fn spans<'a>(buffers: &[Buffer], calls: impl Iterator<Item = (&'a Call, usize)>) -> Vec<Option<Span>> {
    let kept = |buffer: &Buffer| (buffer.life == Life::Kept).then_some(Span { first: 0, last: usize::MAX });
    let mut spans: Vec<Option<Span>> = buffers.iter().map(kept).collect();
    for (first, (call, end)) in calls.enumerate() {
        for Slice { buffer: BufferId(id), .. } in call.reads().into_iter().chain(call.writes()) {
            let span = spans[id].get_or_insert(Span { first, last: end });
            span.last = span.last.max(end);
        }
    }
    spans
}

#[cfg(test)]
pub(super) mod check {
    use std::ops::Range;

    use super::*;

    /// What is wrong with a plan's memory: two buffers alive in the same place, a part that is read before anything was
    /// written there, or a slice beyond its buffer. Slow and obvious.
    pub fn problems<'a>(
        buffers: &[Buffer],
        calls: impl Iterator<Item = (&'a Call, usize)> + Clone,
        arena: &Arena,
    ) -> Vec<String> {
        let spans = spans(buffers, calls.clone());
        let mut problems = Vec::new();
        for (a, first) in buffers.iter().enumerate() {
            for (b, second) in buffers.iter().enumerate().take(a) {
                let (from_a, from_b) = (arena.offsets[a], arena.offsets[b]);
                let apart = from_a + first.bytes <= from_b || from_b + second.bytes <= from_a;
                let overlap = spans[a].zip(spans[b]).is_some_and(|(a, b)| a.overlaps(b));
                if overlap && !apart && first.bytes.min(second.bytes) > 0 {
                    problems.push(format!("buffers {b} and {a} overlap"));
                }
            }
            if !arena.offsets[a].is_multiple_of(ALIGNMENT) || arena.offsets[a] + first.bytes > arena.bytes {
                problems.push(format!("buffer {a} is misplaced"));
            }
        }
        let mut written: Vec<Vec<Range<usize>>> = vec![Vec::new(); buffers.len()];
        for (index, (call, _)) in calls.enumerate() {
            for slice in call.reads() {
                let BufferId(buffer) = slice.buffer;
                if buffers[buffer].life == Life::Step && !covered(&written[buffer], slice) {
                    problems.push(format!("call {index} reads buffer {buffer} before it is written"));
                }
            }
            for slice in call.writes() {
                written[slice.buffer.0].push(slice.offset..slice.offset + slice.bytes);
            }
            for slice in call.reads().into_iter().chain(call.writes()) {
                let BufferId(buffer) = slice.buffer;
                if slice.offset + slice.bytes > buffers[buffer].bytes {
                    problems.push(format!("call {index} exceeds buffer {buffer}"));
                }
            }
        }
        problems
    }

    /// Calls one after the other.
    pub fn in_turn(calls: &[Call]) -> impl Iterator<Item = (&Call, usize)> + Clone {
        calls.iter().zip(0..)
    }

    fn covered(written: &[Range<usize>], slice: Slice) -> bool {
        let mut parts = written.to_vec();
        parts.sort_unstable_by_key(|part| part.start);
        let mut end = slice.offset;
        for part in parts {
            if part.start <= end {
                end = end.max(part.end);
            }
        }
        end >= slice.offset + slice.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::cudnn::call::{Epilogue, Gemm, Product};

    #[test]
    fn the_check_finds_faults() {
        let buffers = [Buffer { bytes: 8, life: Life::Step }; 2];
        let calls = [
            Call::Zero(Slice::new(0, 0, 4)),
            Call::Gemm(Gemm {
                product: Product::plain(1, 1, 1),
                a: Slice::new(0, 0, 8),
                b: Slice::new(0, 0, 4),
                c: Slice::new(1, 4, 8),
                epilogue: Epilogue::Nothing,
            }),
        ];
        let arena = Arena { offsets: vec![0, 0], bytes: 8 };
        let problems = check::problems(&buffers, check::in_turn(&calls), &arena);
        assert_eq!(
            problems,
            ["buffers 0 and 1 overlap", "call 1 reads buffer 0 before it is written", "call 1 exceeds buffer 1"]
        );
    }
}
