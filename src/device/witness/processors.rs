//! The accounts of the processors that this process may use.

use std::collections::BTreeMap;

use crate::device::cgroup::ResourceLimits;
use crate::device::root::FilesystemRoot;

#[derive(Clone, Debug)]
pub struct Processors {
    root: FilesystemRoot,
    allowed: Vec<usize>,
}

/// The places in a line of `/proc/stat`: user, nice, system, idle, iowait, irq, softirq, steal; guest time is part of user.
const BUSY: [usize; 6] = [0, 1, 2, 5, 6, 7];
const STEAL: [usize; 1] = [7];

impl Processors {
    /// The processors that this process may use; its `/proc` lies in `root`.
    pub fn open(root: &FilesystemRoot) -> Self {
        Self { root: root.clone(), allowed: ResourceLimits::read(root).cpus }
    }

    /// The number of processors; if the kernel does not report it, more than any step has threads.
    pub fn count(&self) -> usize {
        if self.allowed.is_empty() { usize::MAX } else { self.allowed.len() }
    }

    /// Seconds in which they were not idle, since the machine was started.
    pub fn busy_s(&self) -> Option<f64> {
        self.sum(&BUSY)
    }

    /// Seconds that a hypervisor took from them.
    pub fn stolen_s(&self) -> Option<f64> {
        self.sum(&STEAL)
    }

    fn sum(&self, places: &[usize]) -> Option<f64> {
        let mut each = by_processor(&self.root, places);
        each.retain(|cpu, _| self.allowed.contains(cpu));
        (!each.is_empty()).then(|| each.values().sum())
    }
}

/// For each processor of the machine the seconds in which it was not idle, since the machine was started.
pub fn busy_by_processor(root: &FilesystemRoot) -> BTreeMap<usize, f64> {
    by_processor(root, &BUSY)
}

/// Seconds, by the number of the processor.
fn by_processor(root: &FilesystemRoot, places: &[usize]) -> BTreeMap<usize, f64> {
    let of_processor = |line: &str| -> Option<(usize, f64)> {
        let (name, ticks) = line.split_once(' ')?;
        let number: usize = name.strip_prefix("cpu")?.parse().ok()?;
        let ticks: Vec<f64> = ticks.split_whitespace().map_while(|tick| tick.parse().ok()).collect();
        let sum = places.iter().filter_map(|&place| ticks.get(place)).sum::<f64>();
        Some((number, sum / ticks_per_second()))
    };
    root.text("/proc/stat").unwrap_or_default().lines().filter_map(of_processor).collect()
}

fn ticks_per_second() -> f64 {
    // SAFETY: asks for a constant.
    match unsafe { libc::sysconf(libc::_SC_CLK_TCK) } {
        ticks if ticks > 0 => ticks as f64,
        _ => 100.0,
    }
}
