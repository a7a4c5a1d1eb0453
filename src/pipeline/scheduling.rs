//! What other processes took: the time in which our threads were ready and had no core, and the processor time of everyone else.
//!
//! Sources: `/proc/<pid>/task/<thread>/schedstat`, whose second number is the nanoseconds that a thread has waited on a run queue
//! (Documentation/scheduler/sched-stats.rst of Linux), and the lines of the processors in `/proc/stat` (proc_stat(5)), where what a hypervisor
//! takes counts as others'.

use std::path::Path;

use crate::device::cgroup::ResourceLimits;
use crate::device::counters::ProcessTimes;
use crate::device::root::FilesystemRoot;

/// How the threads of a loader begin, as the kernel names them.
const LOADER: &str = "loader-";

/// Seconds that the calling thread has been ready without a core so far; 0 where the kernel does not count them.
pub fn thread_delay() -> f64 {
    Schedule::of(Path::new("/proc/thread-self")).unwrap_or_default().delay_s
}

/// What the scheduler counts of one thread.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Schedule {
    run_s: f64,
    delay_s: f64,
}

impl Schedule {
    fn of(thread: &Path) -> Option<Self> {
        let text = std::fs::read_to_string(thread.join("schedstat")).ok()?;
        let mut numbers = text.split_whitespace().map_while(|number| number.parse::<f64>().ok());
        Some(Self { run_s: numbers.next()? * 1e-9, delay_s: numbers.next()? * 1e-9 })
    }
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
    /// Of everyone on the processors that this process may use; `None` where the kernel does not say.
    pub all_s: Option<f64>,
}

impl Clocks {
    pub fn now() -> Self {
        let mut workers = Schedule::default();
        for entry in std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
            let path = entry.path();
            let name = std::fs::read_to_string(path.join("comm")).unwrap_or_default();
            if name.starts_with(LOADER) {
                // A thread that has just ended has done nothing since.
                let Schedule { run_s, delay_s } = Schedule::of(&path).unwrap_or_default();
                workers = Schedule { run_s: workers.run_s + run_s, delay_s: workers.delay_s + delay_s };
            }
        }
        let times = ProcessTimes::now();
        let own_s = times.user_s + times.system_s;
        let all_s = busy(&FilesystemRoot::system());
        Self { workers_delay_s: workers.delay_s, training_s: own_s - workers.run_s, own_s, all_s }
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

/// Seconds in which the allowed processors were not idle, since the machine was started.
fn busy(root: &FilesystemRoot) -> Option<f64> {
    let allowed = ResourceLimits::read(root).cpus;
    let text = root.text("/proc/stat")?;
    let of_processor = |line: &str| -> Option<f64> {
        let (name, ticks) = line.split_once(' ')?;
        let number: usize = name.strip_prefix("cpu")?.parse().ok()?;
        let ticks: Vec<f64> = ticks.split_whitespace().map_while(|tick| tick.parse().ok()).collect();
        // user nice system idle iowait irq softirq steal; guest time is part of user.
        let busy = [0, 1, 2, 5, 6, 7].iter().filter_map(|&place| ticks.get(place)).sum::<f64>();
        allowed.contains(&number).then_some(busy / ticks_per_second())
    };
    let each: Vec<f64> = text.lines().filter_map(of_processor).collect();
    (!each.is_empty()).then(|| each.iter().sum())
}

fn ticks_per_second() -> f64 {
    // SAFETY: asks for a constant.
    match unsafe { libc::sysconf(libc::_SC_CLK_TCK) } {
        ticks if ticks > 0 => ticks as f64,
        _ => 100.0,
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
