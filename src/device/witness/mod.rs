//! What other programs do to a step: how long its threads waited for a processor, from the kernel's accounts.
//!
//! Sources: `/proc/<pid>/task/<thread>/schedstat`, the nanoseconds that a thread has run and waited on a run queue, and how often it was
//! given a processor (Documentation/scheduler/sched-stats.rst of Linux); clock_gettime(2) of each thread, since `schedstat` has the time of a
//! running thread as of the last tick; getrusage(2); the lines of the processors in `/proc/stat` (proc_stat(5)); `/proc/<pid>/stat` for the
//! names of other programs. `benches/witness.rs` measures what a reading costs.
//!
//! A kernel adds a wait to a thread's account when the wait ends. The thread that reads is running, so its own account is complete. A helper
//! that still waits shows as one that is ready to run and has not run since the reading before.

mod others;
mod outside;
mod processors;
mod threads;

use super::counters::ProcessTimes;
use super::root::FilesystemRoot;
pub use super::witnessed::{Span, Witnessed};
pub use others::Others;
pub use outside::Outside;
pub use processors::{Processors, busy_by_processor};
pub use threads::Account;
use threads::Threads;

/// Reads the accounts of this process from step to step.
#[derive(Debug)]
pub struct Witness {
    threads: Threads,
    usage: ProcessTimes,
    processors: Processors,
    /// Seconds that the hypervisor had taken when the visit began.
    stolen_s: Option<f64>,
    pub others: Others,
}

impl Witness {
    /// The witness of this process, whose `/proc` lies in `root`.
    pub fn open(root: &FilesystemRoot) -> Self {
        let processors = Processors::open(root);
        Self {
            threads: Threads::open(root, None),
            usage: ProcessTimes::now(),
            stolen_s: processors.stolen_s(),
            processors,
            others: Others::open(root),
        }
    }

    /// A visit begins: what was before belongs to none of its steps.
    pub fn begin(&mut self) {
        self.stolen_s = self.processors.stolen_s();
        self.threads.begin();
        self.usage = ProcessTimes::now();
    }

    /// What happened since the last call, or since [`Witness::begin`]. Takes a microsecond for each thread that computes.
    pub fn step(&mut self) -> Witnessed {
        let usage = ProcessTimes::now();
        let processors = self.processors.count();
        let since = usage.since(std::mem::replace(&mut self.usage, usage));
        match self.threads.step() {
            // Without /proc there are only the sums of the process.
            [] => {
                let run_s = since.user_s + since.system_s;
                Witnessed::of(&[Span { run_s, ..Span::default() }], Some(since.events), processors)
            }
            threads => Witnessed::of(threads, Some(since.events), processors),
        }
    }

    /// Seconds that the hypervisor took from the processors that this process may use, since [`Witness::begin`].
    pub fn steal_s(&self) -> Option<f64> {
        Some((self.processors.stolen_s()? - self.stolen_s?).max(0.0))
    }
}

#[cfg(test)]
mod tests;
