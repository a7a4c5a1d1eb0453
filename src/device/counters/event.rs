//! One counter of one thread.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::FromRawFd;

use perf_event_open_sys::bindings as sys;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counter {
    Cycles,
    Instructions,
    CacheReferences,
    CacheMisses,
    BranchMisses,
    PageFaults,
    ContextSwitches,
    Migrations,
    /// Processor time, in nanoseconds.
    TaskClock,
}

impl Counter {
    /// All counters, in the order of [`super::Counts`].
    pub const ALL: [Self; 9] = [
        Self::Cycles,
        Self::Instructions,
        Self::CacheReferences,
        Self::CacheMisses,
        Self::BranchMisses,
        Self::PageFaults,
        Self::ContextSwitches,
        Self::Migrations,
        Self::TaskClock,
    ];

    pub fn name(self) -> &'static str {
        self.facts().0
    }

    /// Whether the kernel counts it, rather than the processor.
    pub(super) fn is_software(self) -> bool {
        self.facts().1 == sys::PERF_TYPE_SOFTWARE
    }

    /// Whether it counts only events in the kernel: without the kernel it stays 0.
    pub(super) fn is_of_the_kernel(self) -> bool {
        matches!(self, Self::ContextSwitches | Self::Migrations)
    }

    /// The name of its column, and its type and number for perf_event_open.
    fn facts(self) -> (&'static str, u32, u32) {
        let hardware = |name, number| (name, sys::PERF_TYPE_HARDWARE, number);
        let software = |name, number| (name, sys::PERF_TYPE_SOFTWARE, number);
        match self {
            Self::Cycles => hardware("cycles", sys::PERF_COUNT_HW_CPU_CYCLES),
            Self::Instructions => hardware("instructions", sys::PERF_COUNT_HW_INSTRUCTIONS),
            Self::CacheReferences => hardware("cache_references", sys::PERF_COUNT_HW_CACHE_REFERENCES),
            Self::CacheMisses => hardware("cache_misses", sys::PERF_COUNT_HW_CACHE_MISSES),
            Self::BranchMisses => hardware("branch_misses", sys::PERF_COUNT_HW_BRANCH_MISSES),
            Self::PageFaults => software("page_faults", sys::PERF_COUNT_SW_PAGE_FAULTS),
            Self::ContextSwitches => software("context_switches", sys::PERF_COUNT_SW_CONTEXT_SWITCHES),
            Self::Migrations => software("migrations", sys::PERF_COUNT_SW_CPU_MIGRATIONS),
            Self::TaskClock => software("task_clock_s", sys::PERF_COUNT_SW_TASK_CLOCK),
        }
    }
}

/// Where an event must happen to be counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    All,
    User,
}

/// A counter of a thread and of the threads that it starts from now on; it counts from the moment it is opened.
#[derive(Debug)]
pub(super) struct Event {
    pub counter: Counter,
    file: File,
}

impl Event {
    /// `thread`: its number; 0: the calling one.
    pub fn open(counter: Counter, thread: libc::pid_t, scope: Scope) -> io::Result<Self> {
        let (_, type_, number) = counter.facts();
        let mut attributes = sys::perf_event_attr { type_, config: number.into(), ..Default::default() };
        attributes.size = size_of::<sys::perf_event_attr>() as u32;
        attributes.read_format = u64::from(sys::PERF_FORMAT_TOTAL_TIME_ENABLED | sys::PERF_FORMAT_TOTAL_TIME_RUNNING);
        attributes.set_inherit(1);
        if scope == Scope::User {
            attributes.set_exclude_kernel(1);
        }
        attributes.set_exclude_hv(1);
        let (any_cpu, no_group) = (-1, -1);
        let flags = libc::c_ulong::from(sys::PERF_FLAG_FD_CLOEXEC);
        // SAFETY: the attributes outlive the call, and their size is in them.
        let descriptor =
            unsafe { perf_event_open_sys::perf_event_open(&raw mut attributes, thread, any_cpu, no_group, flags) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just created this descriptor, and nothing else owns it.
        Ok(Self { counter, file: unsafe { File::from_raw_fd(descriptor) } })
    }

    /// The state of the counter.
    pub fn read(&self) -> io::Result<CounterCount> {
        let mut bytes = [0; CounterCount::BYTES];
        (&self.file).read_exact(&mut bytes)?;
        Ok(CounterCount::parse(bytes))
    }
}

/// The kernel's answer to a read: the count, and the nanoseconds for which the counter was enabled and for which it
/// ran. They differ where more counters are enabled than the processor has; the counters then take turns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CounterCount {
    pub value: u64,
    pub enabled_ns: u64,
    pub running_ns: u64,
}

impl CounterCount {
    pub const BYTES: usize = 24;

    /// Three words in the machine's order, as perf_event_open(2) lays them out for the read format above.
    pub fn parse(bytes: [u8; Self::BYTES]) -> Self {
        let (words, _) = bytes.as_chunks();
        let word = |at: usize| u64::from_ne_bytes(words[at]);
        Self { value: word(0), enabled_ns: word(1), running_ns: word(2) }
    }

    /// The count since `before`, scaled to the whole time: a counter that ran for half of it counted half. `None` where
    /// it was enabled but never ran.
    pub fn since(self, before: Self) -> Option<f64> {
        let value = self.value.saturating_sub(before.value) as f64;
        let enabled = self.enabled_ns.saturating_sub(before.enabled_ns);
        let running = self.running_ns.saturating_sub(before.running_ns);
        match (enabled, running) {
            (0, _) => Some(value),
            (_, 0) => None,
            (enabled, running) => Some(value * enabled as f64 / running as f64),
        }
    }
}
