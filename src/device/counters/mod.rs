//! The processor's counters and the kernel's: cycles and instructions distinguish work from clock on a CPU; page faults,
//! context switches and migrations show what disturbed a step.
//!
//! Source: perf_event_open(2). [`Session`] counts for this process and all its threads; [`Counters`] says what may be
//! counted here, and why other events may not. Where a counter does not exist (in most virtual machines those of the
//! processor) its value is `None`. The kernel's counters always work: where perf_event_open refuses, their values come
//! from getrusage(2) and `/proc`.

mod event;
mod session;
#[cfg(test)]
mod tests;

use std::io;

use serde::{Deserialize, Serialize};

use super::root::FilesystemRoot;
pub use event::Counter;
use event::{Event, Scope};
pub use session::{Counts, ProcessTimes, Reading, Session, thread_time};

/// What perf_event_open allows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    pub cycles: bool,
    pub instructions: bool,
    /// Why cycles cannot be counted, in the words of the operating system.
    pub refused: Option<String>,
    /// Counters of the processor that cannot be used: their columns are null.
    #[serde(default)]
    pub lacking: Vec<Lacking>,
    /// Whether the kernel refuses because of a missing permission, which can be given.
    #[serde(default)]
    pub forbidden: bool,
    /// Whether the kernel's own counters, such as context switches, can be counted by perf_event_open.
    #[serde(default)]
    pub kernel: bool,
    /// Up to 2 an ordinary user may count in user space, up to 1 in the kernel as well
    /// (Documentation/admin-guide/sysctl/kernel.rst); Debian and Ubuntu add 3 and 4, which forbid both.
    pub paranoid: Option<i32>,
}

/// A counter that does not exist here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lacking {
    /// The name of its column: `cache_misses`.
    pub name: String,
    /// In the words of the operating system.
    pub why: String,
}

impl Counters {
    /// Tries the counters on this machine; the paranoid level is read from `root`.
    pub fn probe(root: &FilesystemRoot) -> Self {
        let open = |counter| Event::open(counter, 0, Scope::User);
        let cycles = open(Counter::Cycles);
        let processors = Counter::ALL.into_iter().filter(|counter| !counter.is_software());
        let lacking = processors.filter_map(|counter| {
            let why = describe(&open(counter).err()?);
            Some(Lacking { name: counter.name().to_owned(), why })
        });
        Self {
            instructions: open(Counter::Instructions).is_ok(),
            refused: cycles.as_ref().err().map(describe),
            forbidden: cycles.as_ref().err().is_some_and(is_forbidden),
            kernel: Event::open(Counter::ContextSwitches, 0, Scope::All).is_ok(),
            cycles: cycles.is_ok(),
            lacking: lacking.collect(),
            paranoid: root.number("/proc/sys/kernel/perf_event_paranoid"),
        }
    }
}

fn is_forbidden(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EACCES | libc::EPERM))
}

fn describe(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV) => {
            "this machine, most likely a virtual one, has no such counter".into()
        }
        Some(libc::ENOSYS) => "this kernel was built without performance events".into(),
        Some(libc::EACCES | libc::EPERM) => "the kernel, or the container, does not permit it".into(),
        _ => error.to_string(),
    }
}
