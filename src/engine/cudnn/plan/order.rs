//! Which calls of a step wait for one another.
//!
//! Nothing in a backward pass waits for the gradients of the weights but the update. With two streams they are put on one
//! of their own, and the next layer's gradient is computed beside them: what few blocks of one kernel leave idle, blocks
//! of the other use.
//!
//! The side stream runs its calls in their order, and starts none before the main stream's calls that stand before it are
//! done. The main stream waits for a call of the side stream
//! - where it touches the same memory, and one of the two writes it; for the update this is so by what it reads;
//! - before it begins what stands after the next gradients of weights, so that the gradients of maps which the side stream
//!   still reads are those of one layer at a time, and memory does not grow.

use super::{Planned, Stream};
use crate::engine::cudnn::call::{Call, Slice};

/// What the streams of a step wait for; one entry for each call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Order {
    pub streams: Vec<Stream>,
    /// The call of the other stream that must be done before this one starts, where that is not so already.
    pub waits: Vec<Option<usize>>,
    /// The last call that may run at the same time as this one, or itself.
    pub ends: Vec<usize>,
}

impl Order {
    pub fn new(calls: &[Planned]) -> Self {
        let streams: Vec<Stream> = calls.iter().map(|planned| planned.stream).collect();
        let waits = waits(calls);
        let ends = (0..calls.len()).map(|index| end(index, &streams, &waits)).collect();
        Self { streams, waits, ends }
    }
}

fn waits(calls: &[Planned]) -> Vec<Option<usize>> {
    let mut waits = vec![None; calls.len()];
    // The last call of the main stream, whether the side stream has waited for it, and what is not waited for there.
    let (mut tip, mut met) = (None, None);
    let mut pending: Vec<usize> = Vec::new();
    // The last call of the gradients of weights before the present ones, and of the present ones.
    let (mut before, mut present) = (None, None);
    for (index, planned) in calls.iter().enumerate() {
        match planned.stream {
            Stream::Side => {
                if met != tip {
                    waits[index] = tip;
                    before = present;
                }
                (met, present) = (tip, Some(index));
                pending.push(index);
            }
            Stream::Main => {
                let touched = pending.iter().copied().filter(|&side| conflict(&calls[side].call, &planned.call)).max();
                let late = before.filter(|side| pending.contains(side));
                waits[index] = touched.max(late);
                pending.retain(|&side| Some(side) > waits[index]);
                tip = Some(index);
            }
        }
    }
    waits
}

fn end(index: usize, streams: &[Stream], waits: &[Option<usize>]) -> usize {
    let after = index + 1..streams.len();
    match streams[index] {
        // What stands after it on the side stream waits for it.
        Stream::Main => index,
        Stream::Side => {
            let mut main = after.filter(|&call| streams[call] == Stream::Main);
            main.find(|&call| waits[call] >= Some(index)).map_or(streams.len(), |call| call).saturating_sub(1)
        }
    }
}

/// Whether two calls touch the same bytes of a buffer, and one writes them.
pub(super) fn conflict(a: &Call, b: &Call) -> bool {
    let meet = |xs: &[Slice], ys: &[Slice]| xs.iter().any(|x| ys.iter().any(|y| overlap(x, y)));
    let (writes_a, writes_b) = (a.writes(), b.writes());
    meet(&writes_a, &writes_b) || meet(&writes_a, &b.reads()) || meet(&a.reads(), &writes_b)
}

fn overlap(a: &Slice, b: &Slice) -> bool {
    a.buffer == b.buffer && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes
}
