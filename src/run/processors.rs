//! The processors that other programs leave idle.
//!
//! A step that needs fewer processors than the process may use is measured on idle cores, with one thread on each: a program on the other hyper-thread of a
//! core takes a part of its units, which no account of the kernel shows. Linux keeps threads apart as well, but puts a thread on a busy core for
//! milliseconds until it balances the load.
//!
//! Sources: the lines of the processors in `/proc/stat` (proc_stat(5)); `/sys/devices/system/cpu/cpu*/topology/thread_siblings_list`.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::device::cgroup::{ResourceLimits, list, ranges};
use crate::device::cpu::FOLDER;
use crate::device::root::FilesystemRoot;
use crate::device::witness::busy_by_processor;
use crate::engine::threads::{allowed_processors, keep_within};
use crate::units::human;

/// How long it is watched. The kernel counts in ticks of 10 ms.
const WATCHED: Duration = Duration::from_millis(300);
/// The largest share of that time in which another program may have run on an idle core: the kernel's own threads run everywhere now and then.
const IDLE: f64 = 0.1;

/// The choice of processors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuietProcessors {
    /// One of each core that is idle, in ascending order.
    pub processors: Vec<usize>,
    /// Cores that the process may use and that other programs use now.
    pub busy_cores: usize,
    /// Whether some core has several hyper-threads, of which one is used.
    pub of_several: bool,
}

impl QuietProcessors {
    /// The processors to measure `threads` threads on; `None` where the process may use no others, or too few cores are idle. Watches the machine for 0.3 s.
    pub fn now(threads: usize) -> Option<Self> {
        let root = FilesystemRoot::system();
        let before = busy_by_processor(&root);
        thread::sleep(WATCHED);
        let after = busy_by_processor(&root);
        let share = |(cpu, busy_s): (usize, f64)| Some((cpu, (busy_s - before.get(&cpu)?) / WATCHED.as_secs_f64()));
        Self::of(&root, threads, &after.into_iter().filter_map(share).collect())
    }

    /// The same from the share of the time in which each processor was busy.
    fn of(root: &FilesystemRoot, threads: usize, busy: &BTreeMap<usize, f64>) -> Option<Self> {
        let allowed = ResourceLimits::read(root).cpus;
        if threads >= allowed.len() {
            return None;
        }
        let mut cores: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for &cpu in &allowed {
            let siblings = root.text(Path::new(FOLDER).join(format!("cpu{cpu}/topology/thread_siblings_list")));
            let siblings =
                siblings.map(|text| list(&text)).filter(|all| all.contains(&cpu)).unwrap_or_else(|| vec![cpu]);
            cores.entry(siblings[0]).or_insert(siblings);
        }
        let is_idle =
            |siblings: &&Vec<usize>| siblings.iter().all(|cpu| busy.get(cpu).is_some_and(|share| *share < IDLE));
        let idle: Vec<&Vec<usize>> = cores.values().filter(is_idle).collect();
        // A core may have hyper-threads that the process may not use.
        let first = |siblings: &&Vec<usize>| siblings.iter().copied().find(|cpu| allowed.contains(cpu));
        let mut processors: Vec<usize> = idle.iter().filter_map(first).collect();
        processors.sort_unstable();
        let is_choice = processors.len() >= threads.max(1) && processors.len() < allowed.len();
        let of_several = cores.values().any(|siblings| siblings.len() > 1);
        is_choice.then(|| Self { busy_cores: cores.len() - processors.len(), processors, of_several })
    }
}

impl fmt::Display for QuietProcessors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let chosen = human::counted(self.processors.len() as u64, "processor");
        write!(f, "measured on {chosen} ({})", ranges(&self.processors))?;
        if self.of_several {
            f.write_str(", one of each core")?;
        }
        match self.busy_cores {
            0 => Ok(()),
            1 => f.write_str(": other programs use the other core"),
            busy => write!(f, ": other programs use the other {} cores", human::count(busy as u64)),
        }
    }
}

/// Keeps this thread, and the threads and processes that it starts, to some processors, until it is dropped.
#[derive(Debug)]
pub struct Kept(Vec<usize>);

impl Kept {
    /// `None` where the system does not allow it.
    pub fn to(choice: &QuietProcessors) -> Option<Self> {
        let all = allowed_processors();
        keep_within(&choice.processors).then_some(Self(all))
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        keep_within(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::root::tests::planted;

    /// Four cores with two hyper-threads each, as Linux numbers them on a single socket.
    fn four_cores(allowed: &str) -> (tempfile::TempDir, FilesystemRoot) {
        let mut files = vec![("proc/self/status".to_owned(), format!("Cpus_allowed_list:\t{allowed}\n"))];
        for cpu in 0..8 {
            let siblings = format!("{},{}\n", cpu % 4, cpu % 4 + 4);
            files.push((format!("sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"), siblings));
        }
        planted(&files)
    }

    fn chosen(allowed: &str, threads: usize, busy: &[usize]) -> Option<(Vec<usize>, usize)> {
        let (_guard, root) = four_cores(allowed);
        let busy = (0..8).map(|cpu| (cpu, if busy.contains(&cpu) { 0.9 } else { 0.03 })).collect();
        QuietProcessors::of(&root, threads, &busy).map(|choice| (choice.processors, choice.busy_cores))
    }

    #[test]
    fn each_thread_has_an_idle_core_for_itself() {
        assert_eq!(chosen("0-7", 2, &[]), Some((vec![0, 1, 2, 3], 0)));
        // A program on the other hyper-thread of core 1, and one on core 2.
        assert_eq!(chosen("0-7", 2, &[5, 2]), Some((vec![0, 3], 2)));
        assert_eq!(chosen("4-7", 1, &[5]), Some((vec![4, 6, 7], 1)));
    }

    #[test]
    fn the_processors_stay_where_there_is_no_better_choice() {
        assert_eq!(chosen("0-7", 8, &[1]), None, "all are needed");
        assert_eq!(chosen("0-7", 3, &[5, 2]), None, "two cores are idle");
        assert_eq!(chosen("0-3", 1, &[]), None, "all that it may use are idle");
        assert_eq!(chosen("0-3", 1, &[0, 1, 2, 3]), None, "none is idle");
        let (_guard, root) = planted(&[("proc/self/status", "Name:\tbatchstep\n")]);
        assert_eq!(QuietProcessors::of(&root, 1, &BTreeMap::new()), None, "nothing is known");
    }

    /// A machine of one processor, or without idle ones, has no choice.
    #[test]
    fn a_choice_on_this_machine_is_of_its_processors() {
        let allowed = ResourceLimits::read(&FilesystemRoot::system()).cpus;
        if let Some(choice) = QuietProcessors::now(1) {
            assert!(!choice.processors.is_empty() && choice.processors.iter().all(|cpu| allowed.contains(cpu)));
        }
    }
}
