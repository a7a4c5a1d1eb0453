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

use super::counters::{Events, ProcessTimes};
use super::root::FilesystemRoot;
pub use others::Others;
pub use outside::Outside;
pub use processors::Processors;
pub use threads::Account;
use threads::Threads;

/// The longest wait for an idle processor when a thread is woken: interrupting an idle processor of a virtual machine takes up to 50 us. A thread
/// that sleeps between pieces of work has many such waits, and no other program causes them.
const WAKE_S: f64 = 50e-6;
/// What an involuntary switch counts for where the kernel does not say how long a thread waited: the shortest slice that Linux gives
/// (kernel/sched/fair.c, `base_slice_ns`: 0.7 ms for one processor, more for several).
const SLICE_S: f64 = 0.7e-3;

/// A helper that works for a part of the step is a part of a thread; more parts than this beside as many threads as processors are one too many.
const CROWDED: f64 = 0.5;
/// They wait for each other only if together they have this share of the processors' time; else another program has it.
const OWN: f64 = 0.75;

/// What happened to one thread between two readings.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Span {
    /// Seconds on a processor.
    pub run_s: f64,
    /// Seconds in which it was ready and had none. `None`: the kernel does not count them.
    pub wait_s: Option<f64>,
    /// How often it was given a processor.
    pub times: f64,
}

/// What happened to the threads of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Witnessed {
    /// Seconds on a processor, over all threads together.
    pub processor_s: f64,
    /// Seconds in which a thread was ready and had no processor, over all threads together. `None`: the kernel does not count them.
    pub wait_s: Option<f64>,
    /// The same for the thread that waited longest.
    pub longest_wait_s: Option<f64>,
    /// How much earlier the step would have ended if no thread had waited: the longest wait of a thread that also ran, unless more is known, see [`Witnessed::by_team`].
    /// `None`: the kernel counts no waits.
    pub delay_s: Option<f64>,
    /// How long another program held a thread up: the longest wait beyond the time for waking, or, if waits are not counted, an estimate from the
    /// involuntary switches. `None`: more threads were ready than there are processors, so they waited for each other.
    pub interrupted_s: Option<f64>,
    /// `None`: nobody counted them.
    pub events: Option<Events>,
}

impl Witnessed {
    /// The sum over a step's threads, which may use `processors` processors.
    pub fn of(threads: &[Span], events: Option<Events>, processors: usize) -> Self {
        let waits = || threads.iter().map(|thread| thread.wait_s);
        let ready = || threads.iter().map(|thread| thread.run_s + thread.wait_s.unwrap_or(0.0));
        let longest = ready().fold(0.0, f64::max);
        let processor_s: f64 = threads.iter().map(|thread| thread.run_s).sum();
        let most_s = processors as f64 * longest;
        let crowded = ready().sum::<f64>() > most_s + CROWDED * longest && processor_s > OWN * most_s;
        let beyond = |thread: &Span| Some((thread.wait_s? - thread.times * WAKE_S).max(0.0));
        let switches = events.map(|events| events.involuntary_switches);
        let mut waits_of_those_that_ran =
            threads.iter().filter(|thread| thread.run_s > 0.0).map(|thread| thread.wait_s);
        let interrupted: Option<f64> = threads.iter().map(beyond).try_fold(0.0, |most, one| Some(f64::max(most, one?)));
        Self {
            processor_s,
            wait_s: waits().sum(),
            longest_wait_s: waits().try_fold(0.0, |most, one| Some(f64::max(most, one?))),
            delay_s: waits_of_those_that_ran.try_fold(0.0, |most, one| Some(f64::max(most, one?))),
            interrupted_s: interrupted.or(switches.map(|number| number * SLICE_S)).filter(|_| !crowded),
            events,
        }
    }

    /// The same for `threads` threads that share the work of a step of `step_s` seconds and, over all of them, only polled for `polled_s` seconds. Without waits each would do an equal part of
    /// the work, so serial parts count as delay, too. It is known also where the kernel counts no waits.
    pub fn by_team(self, step_s: f64, threads: usize, polled_s: f64) -> Self {
        let work_s = (self.processor_s - polled_s) / threads as f64;
        Self { delay_s: Some(step_s - work_s), ..self }
    }

    /// What its waits come from: `schedstat`, or `switches` where the kernel counts no waits.
    pub fn source(&self) -> &'static str {
        if self.wait_s.is_some() { "schedstat" } else { "switches" }
    }
}

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
                Witnessed::of(&[Span { run_s, ..Span::default() }], Some(since.events()), processors)
            }
            threads => Witnessed::of(threads, Some(since.events()), processors),
        }
    }

    /// Seconds that the hypervisor took from the processors that this process may use, since [`Witness::begin`].
    pub fn steal_s(&self) -> Option<f64> {
        Some((self.processors.stolen_s()? - self.stolen_s?).max(0.0))
    }
}

#[cfg(test)]
mod tests;
