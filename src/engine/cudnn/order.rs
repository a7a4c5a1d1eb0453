//! Which calls of a step wait for each other.
//!
//! In a backward pass only the update depends on the gradients of the weights. With two streams they run on a separate
//! stream, at the same time as the next layer's gradient: multiprocessors that the few blocks of one kernel leave idle
//! run blocks of the other.
//!
//! The side stream runs its calls in order, and starts each after all calls of the main stream that precede it in the
//! plan. The main stream waits for a call of the side stream
//! - where both touch the same memory and one of them writes it, as the update reads what the gradients write;
//! - before it starts the calls after the next layer's weight gradients, so that the side stream reads the gradients of
//!   the feature maps of one layer at a time, and memory does not grow.

use super::call::{Call, Slice};

/// One of the two streams of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepStream {
    Main,
    /// Runs beside the main stream.
    Side,
}

/// Which stream runs each call, and what it waits for; one entry for each call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Order(pub Vec<Scheduled>);

/// A call in its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scheduled {
    pub stream: StepStream,
    /// The call of the other stream that must finish before this one starts, where no earlier wait covers it.
    pub wait: Option<usize>,
    /// The last call that may run at the same time as this one, or itself.
    pub end: usize,
}

/// A call, and the stream that runs it.
#[derive(Clone, Copy)]
pub struct Assigned<'a> {
    pub call: &'a Call,
    pub stream: StepStream,
}

impl Order {
    /// The order of calls that are given as they are started.
    pub fn new(calls: &[Assigned]) -> Self {
        let waits = waits(calls);
        let scheduled = |index: usize| Scheduled {
            stream: calls[index].stream,
            wait: waits[index],
            end: end(index, calls, &waits),
        };
        Self((0..calls.len()).map(scheduled).collect())
    }
}

fn waits(calls: &[Assigned]) -> Vec<Option<usize>> {
    let mut waits = vec![None; calls.len()];
    // The last call of the main stream, the one that the side stream has waited for, and the side stream's calls that
    // the main stream has not waited for.
    let (mut tip, mut met) = (None, None);
    let mut pending: Vec<usize> = Vec::new();
    // The last call of the previous layer's weight gradients, and of the present layer's.
    let (mut before, mut present) = (None, None);
    for (index, &Assigned { call, stream }) in calls.iter().enumerate() {
        match stream {
            StepStream::Side => {
                if met != tip {
                    waits[index] = tip;
                    before = present;
                }
                (met, present) = (tip, Some(index));
                pending.push(index);
            }
            StepStream::Main => {
                let touched = pending.iter().copied().filter(|&side| conflict(calls[side].call, call)).max();
                let late = before.filter(|side| pending.contains(side));
                waits[index] = touched.max(late);
                pending.retain(|&side| Some(side) > waits[index]);
                tip = Some(index);
            }
        }
    }
    waits
}

fn end(index: usize, calls: &[Assigned], waits: &[Option<usize>]) -> usize {
    let after = index + 1..calls.len();
    match calls[index].stream {
        // Later calls of the side stream wait for it.
        StepStream::Main => index,
        StepStream::Side => {
            let mut main = after.filter(|&call| calls[call].stream == StepStream::Main);
            main.find(|&call| waits[call] >= Some(index)).unwrap_or(calls.len()).saturating_sub(1)
        }
    }
}

/// Whether two calls touch the same bytes of a buffer, and one writes them.
pub fn conflict(a: &Call, b: &Call) -> bool {
    let meet = |xs: &[Slice], ys: &[Slice]| xs.iter().any(|x| ys.iter().any(|y| overlap(x, y)));
    let (writes_a, writes_b) = (a.writes(), b.writes());
    meet(&writes_a, &writes_b) || meet(&writes_a, &b.reads()) || meet(&a.reads(), &writes_b)
}

fn overlap(a: &Slice, b: &Slice) -> bool {
    a.buffer == b.buffer && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::cudnn::call::{Arg, Kernel, Launch};
    use crate::engine::cudnn::element::Element;

    fn launch(args: Vec<Arg>) -> Call {
        let kernel = Kernel { operator: "test", name: "test", element: Element::F32 };
        Call::Launch(Launch { kernel, grid: [1; 3], block: [1; 3], shared_bytes: 0, args })
    }

    fn order(calls: &[(Call, StepStream)]) -> Order {
        Order::new(&calls.iter().map(|(call, stream)| Assigned { call, stream: *stream }).collect::<Vec<_>>())
    }

    #[test]
    fn the_gradients_of_weights_run_concurrently_and_the_update_waits_for_them() {
        let [dy, dx, dw] = [0, 1, 2].map(|buffer| Slice::new(buffer, 0, 8));
        let gradient = |of, to| (launch(vec![Arg::Read(of), Arg::Write(to)]), StepStream::Side);
        let main = |args| (launch(args), StepStream::Main);
        // The backward pass of two layers, each with its weights' gradient first, then the update.
        let mut calls = [
            main(vec![Arg::Write(dy)]),
            gradient(dy, Slice::new(2, 0, 4)),
            main(vec![Arg::Read(dy), Arg::Write(dx)]),
            main(vec![Arg::Update(dx)]),
            gradient(dx, Slice::new(2, 4, 4)),
            main(vec![Arg::Read(dx), Arg::Write(Slice::new(3, 0, 8))]),
            main(vec![Arg::Read(dw)]),
        ];
        // By hand: 4 waits for 3; 5 waits for the first layer's weights, since the second's have begun; 6 reads both.
        let found = order(&calls);
        assert_eq!(
            found.0.iter().map(|call| call.wait).collect::<Vec<_>>(),
            [None, Some(0), None, None, Some(3), Some(1), Some(4)]
        );
        assert_eq!(found.0.iter().map(|call| call.end).collect::<Vec<_>>(), [0, 4, 2, 3, 5, 5, 6]);

        // A call that writes to memory that the side stream reads must wait for that read.
        calls[3] = main(vec![Arg::Update(dy)]);
        assert_eq!(order(&calls).0[3].wait, Some(1));
    }

    #[test]
    fn calls_meet_where_they_share_a_byte_and_one_writes() {
        let read = |offset, bytes| launch(vec![Arg::Read(Slice::new(0, offset, bytes))]);
        let write = |buffer, offset, bytes| launch(vec![Arg::Write(Slice::new(buffer, offset, bytes))]);
        assert!(conflict(&read(0, 8), &write(0, 7, 4)) && conflict(&write(0, 7, 4), &read(0, 8)));
        assert!(conflict(&write(0, 0, 1), &write(0, 0, 1)));
        assert!(!conflict(&read(0, 8), &read(0, 8)), "both read");
        assert!(!conflict(&read(0, 8), &write(0, 8, 4)) && !conflict(&read(0, 8), &write(1, 0, 8)), "apart");
    }
}
