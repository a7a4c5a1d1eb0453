//! What other processes took: the time in which our threads were ready and had no core, and the processor time of everyone else.
//!
//! Both from the kernel's accounts ([`crate::device::witness`]); what a hypervisor takes counts as others'.

use std::path::Path;

use crate::device::counters::ProcessTimes;
use crate::device::root::FilesystemRoot;
use crate::device::witness::{Account, Processors};

/// How the threads of a loader begin, as the kernel names them.
const LOADER: &str = "loader-";

/// Seconds that the calling thread has been ready without a core so far; 0 where the kernel does not count them.
pub fn thread_delay() -> f64 {
    Account::of(Path::new("/proc/thread-self")).unwrap_or_default().wait_ns as f64 * 1e-9
}

/// The state of all clocks at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Clocks {
    /// Seconds that the loader's threads, all together, have been ready without a core.
    pub workers_delay_s: f64,
    /// Processor time of all other threads of this process, also of those that have ended. Not their delay: a step's idle thread
    /// yields for a while before it sleeps, and then counts as ready.
    pub training_s: f64,
    /// Processor time of this process.
    pub own_s: f64,
    /// Processor time of all processes on the processors that this process may use; `None` if the kernel does not report it.
    pub all_s: Option<f64>,
}

impl Clocks {
    pub fn now() -> Self {
        let mut workers = Account::default();
        for entry in std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
            let path = entry.path();
            let name = std::fs::read_to_string(path.join("comm")).unwrap_or_default();
            if name.starts_with(LOADER) {
                // A thread that has just ended has done nothing since.
                let Account { run_ns, wait_ns, .. } = Account::of(&path).unwrap_or_default();
                workers.run_ns += run_ns;
                workers.wait_ns += wait_ns;
            }
        }
        let times = ProcessTimes::now();
        let own_s = times.user_s + times.system_s;
        let all_s = Processors::open(&FilesystemRoot::system()).busy_s();
        let [run_s, workers_delay_s] = [workers.run_ns, workers.wait_ns].map(|ns| ns as f64 * 1e-9);
        Self { workers_delay_s, training_s: own_s - run_s, own_s, all_s }
    }

    /// What came since `before`.
    pub fn since(self, before: Self) -> Self {
        Self {
            workers_delay_s: (self.workers_delay_s - before.workers_delay_s).max(0.0),
            training_s: (self.training_s - before.training_s).max(0.0),
            own_s: self.own_s - before.own_s,
            all_s: self.all_s.zip(before.all_s).map(|(after, before)| after - before),
        }
    }

    /// The sum of two spans.
    pub fn and(self, more: Self) -> Self {
        Self {
            workers_delay_s: self.workers_delay_s + more.workers_delay_s,
            training_s: self.training_s + more.training_s,
            own_s: self.own_s + more.own_s,
            all_s: self.all_s.zip(more.all_s).map(|(a, b)| a + b),
        }
    }

    /// Processor time of other processes.
    pub fn others_s(&self) -> Option<f64> {
        self.all_s.map(|all| (all - self.own_s).max(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn computing_counts_as_our_own_time() {
        let before = Clocks::now();
        let start = std::time::Instant::now();
        let mut value = 1.0f64;
        while start.elapsed().as_millis() < 30 {
            value = std::hint::black_box(value * 1.000_001);
        }
        let spent = Clocks::now().since(before);
        assert!(spent.own_s > 0.0 && spent.training_s > 0.0 && thread_delay() >= 0.0);
        assert!(spent.all_s.is_none_or(|all| all >= 0.0) && spent.others_s().is_none_or(|others| others >= 0.0));
    }
}
