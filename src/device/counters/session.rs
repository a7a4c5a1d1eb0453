//! All counters of this process and its threads.

use std::io;

use super::event::{Counter, CounterCount, Event, Scope};
use crate::device::witnessed::Events;

/// The counts between two readings, in the order of [`Counter::ALL`]; the task clock in seconds. `None`: this machine
/// does not count it.
pub type Counts = [Option<f64>; Counter::ALL.len()];

/// Processor time and events of the whole process, by getrusage(2).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ProcessTimes {
    pub user_s: f64,
    pub system_s: f64,
    pub events: Events,
}

impl ProcessTimes {
    /// The totals up to now, over all threads of this process.
    pub fn now() -> Self {
        // SAFETY: a structure of numbers, for which zeros are valid.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: the structure outlives the call.
        unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) };
        let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 * 1e-6;
        Self {
            user_s: seconds(usage.ru_utime),
            system_s: seconds(usage.ru_stime),
            events: Events {
                voluntary_switches: usage.ru_nvcsw as f64,
                involuntary_switches: usage.ru_nivcsw as f64,
                page_faults: (usage.ru_minflt + usage.ru_majflt) as f64,
            },
        }
    }

    pub fn since(self, before: Self) -> Self {
        Self {
            user_s: self.user_s - before.user_s,
            system_s: self.system_s - before.system_s,
            events: Events {
                voluntary_switches: self.events.voluntary_switches - before.events.voluntary_switches,
                involuntary_switches: self.events.involuntary_switches - before.events.involuntary_switches,
                page_faults: self.events.page_faults - before.events.page_faults,
            },
        }
    }
}

/// Processor time of the calling thread so far, in seconds.
pub fn thread_time() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure outlives the call; every thread has this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// Counters of every thread that exists when the session begins, and of the threads that these start later.
#[derive(Debug, Default)]
pub struct Session {
    events: Vec<Event>,
}

/// The state of all counters at one moment.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    answers: Vec<Option<CounterCount>>,
    process: ProcessTimes,
    migrations: Option<f64>,
}

impl Session {
    /// Opens all counters that this machine has. It never fails: unavailable counters are left out.
    pub fn begin() -> Self {
        let mut session = Self::default();
        let threads = threads();
        for counter in Counter::ALL {
            let Some(scope) = scope(counter) else { continue };
            let events: io::Result<Vec<Event>> =
                threads.iter().filter_map(|&thread| alive(Event::open(counter, thread, scope))).collect();
            // Without one of the threads the sum would be too small.
            session.events.extend(events.into_iter().flatten());
        }
        session
    }

    /// Reads all of them: a system call each.
    pub fn read(&self) -> Reading {
        Reading {
            answers: self.events.iter().map(|event| event.read().ok()).collect(),
            process: ProcessTimes::now(),
            migrations: if self.counts(Counter::Migrations) { None } else { migrations() },
        }
    }

    /// Whether the processor or the kernel counts it for this session.
    pub(super) fn counts(&self, counter: Counter) -> bool {
        self.events.iter().any(|event| event.counter == counter)
    }

    pub fn between(&self, before: &Reading, after: &Reading) -> Counts {
        let process = after.process.since(before.process);
        let value = |counter: Counter| {
            let answers = self.events.iter().zip(before.answers.iter().zip(&after.answers));
            let mut own = answers.filter(|(event, _)| event.counter == counter).peekable();
            if own.peek().is_none() {
                return match counter {
                    Counter::PageFaults => Some(process.events.page_faults),
                    Counter::ContextSwitches => Some(process.events.switches()),
                    Counter::TaskClock => Some(process.user_s + process.system_s),
                    Counter::Migrations => Some(after.migrations? - before.migrations?),
                    _ => None,
                };
            }
            let total = sum(own.map(|(_, (before, after))| (*before, *after)));
            total.map(|total| if counter == Counter::TaskClock { total * 1e-9 } else { total })
        };
        Counter::ALL.map(value)
    }
}

/// The count of one counter between two answers of each thread, corrected and added up. `None` if a thread's count is
/// not known.
pub(super) fn sum(threads: impl Iterator<Item = (Option<CounterCount>, Option<CounterCount>)>) -> Option<f64> {
    threads.map(|(before, after)| after?.since(before?)).sum()
}

/// Includes the kernel where that is permitted, since a task clock without it would leave out the time of system calls.
fn scope(counter: Counter) -> Option<Scope> {
    let may = |scope| Event::open(counter, 0, scope).is_ok();
    match counter {
        // The processor's events are counted only in user space: the kernel's work on a timer or a disk does not belong
        // to the step.
        _ if !counter.is_software() => may(Scope::User).then_some(Scope::User),
        _ if may(Scope::All) => Some(Scope::All),
        _ if counter.is_of_the_kernel() || counter == Counter::TaskClock => None,
        _ => may(Scope::User).then_some(Scope::User),
    }
}

/// A thread that has ended since it was listed is not a failure.
fn alive(opened: io::Result<Event>) -> Option<io::Result<Event>> {
    match opened {
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => None,
        opened => Some(opened),
    }
}

/// The threads of this process; at least the calling one.
fn threads() -> Vec<libc::pid_t> {
    let listed = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let threads: Vec<libc::pid_t> = listed.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    if threads.is_empty() { vec![0] } else { threads }
}

/// Migrations, from the statistics of the kernel's scheduler, if it was built with them.
fn migrations() -> Option<f64> {
    let of = |thread: libc::pid_t| -> Option<f64> {
        let text = std::fs::read_to_string(format!("/proc/self/task/{thread}/sched")).ok()?;
        let line = text.lines().find(|line| line.starts_with("se.nr_migrations"))?;
        line.rsplit_once(':')?.1.trim().parse().ok()
    };
    threads().into_iter().map(of).sum()
}
