//! Several PyTorch processes that train together: a request goes to all of them at once, and one that fails ends the step for all.
//!
//! In an all-reduce each process waits for the others. If one dies, the others see an error of their connection or,
//! with NCCL, nothing at all. So all answers are watched at the same time, and the error of the process that has ended
//! is reported first.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::engine::worker::Process;
use crate::error::{Error, Result};

/// How long the other processes have to report, after one has failed.
const GRACE: Duration = Duration::from_secs(3);
/// How long to wait for one process before checking the next.
const TURN: Duration = Duration::from_millis(2);

/// A process, its request, and the result.
pub struct Asked<'a> {
    pub process: &'a mut Process,
    pub request: Value,
    answer: Option<Result<Value>>,
}

impl<'a> Asked<'a> {
    pub fn new(process: &'a mut Process, request: Value) -> Self {
        Self { process, request, answer: None }
    }
}

/// Asks all processes at the same time. After an error none of them can be used again.
///
/// # Errors
/// The error of the process that has ended, else the first one reported, with the process's place in the list;
/// [`crate::error::Kind::Engine`] where one stays silent for longer than `patience`.
pub fn ask(mut asked: Vec<Asked>, patience: Duration) -> Result<Vec<Value>> {
    asked.iter_mut().for_each(|one| one.process.send(&one.request));
    let start = Instant::now();
    let mut limit = patience;
    while asked.iter().any(|one| one.answer.is_none()) && start.elapsed() < limit {
        for one in asked.iter_mut().filter(|one| one.answer.is_none()) {
            one.answer = one.process.answer(TURN);
            if matches!(one.answer, Some(Err(_))) {
                limit = limit.min(start.elapsed() + GRACE);
            }
        }
    }
    let of = asked.len();
    if let Some(place) = worst(&mut asked) {
        let one = asked.swap_remove(place);
        let error = match one.answer {
            Some(Err(error)) => error,
            _ => one.process.silent(patience),
        };
        return Err(error.at(format!("process {} of {of}", place + 1)));
    }
    asked.into_iter().map(|one| one.answer.unwrap_or_else(|| Err(Error::engine("no answer")))).collect()
}

/// The place of the process whose error explains the others: one that has ended, else the first with an error, else the
/// first that is silent.
fn worst(asked: &mut [Asked]) -> Option<usize> {
    let failed: Vec<usize> = (0..asked.len()).filter(|&place| matches!(asked[place].answer, Some(Err(_)))).collect();
    let over = failed.iter().copied().find(|&place| asked[place].process.has_ended());
    over.or(failed.first().copied()).or_else(|| asked.iter().position(|one| one.answer.is_none()))
}
