//! Several PyTorch processes that train together: a request goes to all of them at once, and one that fails ends the step for all.
//!
//! In an all-reduce each process waits for the others. If one dies, the others see an error of their connection or,
//! with NCCL, nothing at all. So all answers are watched at the same time, and the error of the process that has ended
//! is reported first.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::engine::worker::Process;
use crate::error::Result;

/// How long the other processes have to report, after one has failed.
const GRACE: Duration = Duration::from_secs(3);
/// How long to wait for one process before checking the next.
const TURN: Duration = Duration::from_millis(2);

type Asked<'a> = (&'a mut Process, Option<Result<Value>>);

/// Asks all processes at the same time. After an error none of them can be used again.
///
/// # Errors
/// The error of the process that has ended, else the first one reported, with the process's place in the list;
/// [`crate::error::Kind::Engine`] where one stays silent for longer than `patience`.
pub fn ask(requests: Vec<(&mut Process, Value)>, patience: Duration) -> Result<Vec<Value>> {
    let mut asked: Vec<Asked> = Vec::new();
    for (process, request) in requests {
        process.send(&request);
        asked.push((process, None));
    }
    let start = Instant::now();
    let mut limit = patience;
    while asked.iter().any(|(_, answer)| answer.is_none()) && start.elapsed() < limit {
        for (process, answer) in asked.iter_mut().filter(|(_, answer)| answer.is_none()) {
            *answer = process.answer(TURN);
            if matches!(answer, Some(Err(_))) {
                limit = limit.min(start.elapsed() + GRACE);
            }
        }
    }
    // The process whose error explains the others: one that has ended, else the first with an error, else the first that
    // is silent.
    let rank = |(process, answer): &Asked| match answer {
        Some(Err(_)) => usize::from(!process.has_ended()),
        None => 2,
        Some(Ok(_)) => 3,
    };
    let of = asked.len();
    match (0..of).min_by_key(|&place| rank(&asked[place])).filter(|&place| rank(&asked[place]) < 3) {
        None => asked.into_iter().filter_map(|(_, answer)| answer).collect(),
        Some(place) => {
            let error = match asked.swap_remove(place) {
                (_, Some(Err(error))) => error,
                (process, _) => process.silent(patience),
            };
            Err(error.at(format!("process {} of {of}", place + 1)))
        }
    }
}
