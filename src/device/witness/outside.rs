//! What other programs do to the steps of another process, which says nothing about it itself.

use super::threads::Threads;
use super::{Span, Witnessed};
use crate::device::root::FilesystemRoot;

/// Reads the accounts of another process's threads over some steps that run one after another.
#[derive(Debug)]
pub struct Outside(Threads);

impl Outside {
    /// The process with that number, from now on.
    pub fn of(root: &FilesystemRoot, process: u32) -> Self {
        Self(Threads::open(root, Some(process)))
    }

    /// What happened to steps that took `steps_s` seconds, on `processors` processors; `None` where the kernel counts no waits. To be called when they have ended and the
    /// process sleeps: of a running one the kernel knows the time as of the last tick.
    pub fn steps(mut self, steps_s: &[f64], processors: usize) -> Option<Vec<Witnessed>> {
        let threads = self.0.step();
        let is_counted = !threads.is_empty() && threads.iter().all(|thread| thread.wait_s.is_some());
        is_counted.then(|| shared(threads, steps_s, processors))
    }
}

/// Gives each step its part of what happened to the threads during all of them. A step cannot have waited for longer than it took beyond its work, which is the same in
/// all, so waits belong to the steps in proportion to that.
fn shared(threads: &[Span], steps_s: &[f64], processors: usize) -> Vec<Witnessed> {
    let number = steps_s.len() as f64;
    let work_s = threads.iter().map(|thread| thread.run_s).fold(0.0, f64::max) / number;
    let beyond = |step_s: f64| (step_s - work_s).max(0.0);
    let all: f64 = steps_s.iter().map(|step_s| beyond(*step_s)).sum();
    let step = |&step_s: &f64| {
        let share = if all > 0.0 { beyond(step_s) / all } else { 0.0 };
        let part = |thread: &Span| Span {
            run_s: thread.run_s / number,
            wait_s: thread.wait_s.map(|wait_s| (wait_s * share).min(beyond(step_s))),
            times: thread.times / number,
        };
        Witnessed::of(&threads.iter().map(part).collect::<Vec<_>>(), None, processors)
    };
    steps_s.iter().map(step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn milliseconds(seconds: Option<f64>) -> f64 {
        (1e6 * seconds.expect("counted")).round() / 1e3
    }

    /// Three steps with 2 ms of work each; the thread waited 8 ms in all. The second took 4 ms beyond its work and the third 6, of 10 together.
    #[test]
    fn waits_belong_to_the_steps_that_took_longer() {
        let thread = Span { run_s: 6e-3, wait_s: Some(8e-3), times: 3.0 };
        let steps = shared(&[thread], &[2e-3, 6e-3, 8e-3], 2);
        let waits: Vec<f64> = steps.iter().map(|step| milliseconds(step.wait_s)).collect();
        assert_eq!(waits, [0.0, 3.2, 4.8]);
        // Being given a processor takes up to 50 us.
        assert_eq!(milliseconds(steps[1].interrupted_s), 3.15);
        assert_eq!(steps.iter().map(|step| milliseconds(Some(step.processor_s))).collect::<Vec<_>>(), [2.0; 3]);
        assert_eq!(steps[0].events, None);
    }

    /// It waited for a processor for 5 ms before its one step began, which took 0.1 ms more than its work.
    #[test]
    fn a_wait_between_steps_belongs_to_none() {
        let thread = Span { run_s: 2e-3, wait_s: Some(5e-3), times: 1.0 };
        assert_eq!(milliseconds(shared(&[thread], &[2.1e-3], 2)[0].wait_s), 0.1);
    }
}
