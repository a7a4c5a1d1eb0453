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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffer {
    pub name: String,
    pub bytes: usize,
    pub life: Life,
}

/// The offset of each buffer, in bytes, and the total size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arena {
    pub offsets: Vec<usize>,
    pub bytes: usize,
}

/// A call, and the last call that may run at the same time.
#[derive(Clone, Copy)]
pub struct Lasting<'a> {
    pub call: &'a Call,
    pub end: usize,
}

impl Arena {
    /// Places every buffer; each call comes with the last call that may run at the same time. A buffer that no call
    /// uses gets offset 0.
    pub fn new<'a>(buffers: &[Buffer], calls: impl Iterator<Item = Lasting<'a>>) -> Self {
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

fn spans<'a>(buffers: &[Buffer], calls: impl Iterator<Item = Lasting<'a>>) -> Vec<Option<Span>> {
    let kept = |buffer: &Buffer| (buffer.life == Life::Kept).then_some(Span { first: 0, last: usize::MAX });
    let mut spans: Vec<Option<Span>> = buffers.iter().map(kept).collect();
    for (first, Lasting { call, end }) in calls.enumerate() {
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
        calls: impl Iterator<Item = Lasting<'a>> + Clone,
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
                    problems.push(format!("{} and {} overlap", first.name, second.name));
                }
            }
            if !arena.offsets[a].is_multiple_of(ALIGNMENT) || arena.offsets[a] + first.bytes > arena.bytes {
                problems.push(format!("{} is misplaced", first.name));
            }
        }
        let mut written: Vec<Vec<Range<usize>>> = vec![Vec::new(); buffers.len()];
        for (index, Lasting { call, .. }) in calls.enumerate() {
            for slice in call.reads() {
                let Buffer { name, life, .. } = &buffers[slice.buffer.0];
                if *life == Life::Step && !covered(&written[slice.buffer.0], slice) {
                    problems.push(format!("call {index} reads {name} before it is written"));
                }
            }
            for slice in call.writes() {
                written[slice.buffer.0].push(slice.offset..slice.offset + slice.bytes);
            }
            for slice in call.reads().into_iter().chain(call.writes()) {
                let buffer = &buffers[slice.buffer.0];
                if slice.offset + slice.bytes > buffer.bytes {
                    problems.push(format!("call {index} exceeds {}", buffer.name));
                }
            }
        }
        problems
    }

    /// Calls one after the other.
    pub fn in_turn(calls: &[Call]) -> impl Iterator<Item = Lasting<'_>> + Clone {
        calls.iter().enumerate().map(|(end, call)| Lasting { call, end })
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

    fn buffer(name: &str, bytes: usize, life: Life) -> Buffer {
        Buffer { name: name.to_owned(), bytes, life }
    }

    fn zero(buffer: usize, bytes: usize) -> Call {
        Call::Zero(Slice::new(buffer, 0, bytes))
    }

    #[test]
    fn buffers_that_live_at_other_times_share_memory_and_kept_ones_do_not() {
        let buffers = [
            buffer("early", 2 * ALIGNMENT, Life::Step),
            buffer("late", ALIGNMENT, Life::Step),
            buffer("kept", ALIGNMENT, Life::Kept),
            buffer("unused", ALIGNMENT, Life::Step),
        ];
        let calls = [zero(0, 2 * ALIGNMENT), zero(2, 1), zero(1, ALIGNMENT)];
        let arena = Arena::new(&buffers, check::in_turn(&calls));
        assert_eq!(arena.offsets[..3], [0, 0, 2 * ALIGNMENT]);
        assert_eq!(arena.bytes, 3 * ALIGNMENT);
        assert_eq!(check::problems(&buffers[..3], check::in_turn(&calls), &arena), Vec::<String>::new());
    }

    #[test]
    fn the_check_finds_faults() {
        let buffers = [buffer("a", 8, Life::Step), buffer("b", 8, Life::Step)];
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
        assert_eq!(problems, ["b and a overlap", "call 1 reads a before it is written", "call 1 exceeds b"]);
    }
}
