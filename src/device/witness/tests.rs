use std::fs;
use std::path::Path;

use super::*;
use crate::device::root::tests::planted;

/// Numbers above the largest that Linux gives to a thread (include/linux/threads.h).
const MAIN: &str = "9000001";
const HELPER: &str = "9000002";

const MILLISECOND: u64 = 1_000_000;

/// A process of two threads; its accounts in milliseconds.
struct Process(tempfile::TempDir);

impl Process {
    fn new() -> (Self, Witness) {
        let (folder, root) = planted(&[
            ("proc/self/status", "Cpus_allowed_list:\t0-1\n"),
            (
                "proc/stat",
                "cpu  9 9 9 9 9 9 9 9\ncpu0 1 0 0 0 0 0 0 30 0 0\ncpu1 1 0 0 0 0 0 0 20 0 0\ncpu2 0 0 0 0 0 0 0 70\n",
            ),
        ]);
        let process = Self(folder);
        process.thread(MAIN, [10, 0, 1], 'R');
        process.thread(HELPER, [10, 0, 1], 'S');
        (process, Witness::open(&root))
    }

    fn thread(&self, number: &str, [run, wait, times]: [u64; 3], state: char) {
        let folder = self.0.path().join("proc/self/task").join(number);
        fs::create_dir_all(&folder).expect("a folder");
        let text = format!("{} {} {times}\n", run * MILLISECOND, wait * MILLISECOND);
        fs::write(folder.join("schedstat"), text).expect("written");
        fs::write(folder.join("stat"), format!("{number} (step-1 (a)) {state} 1 1 0\n")).expect("written");
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

fn milliseconds(seconds: Option<f64>) -> Option<f64> {
    seconds.map(|seconds| (1e6 * seconds).round() / 1e3)
}

#[test]
fn a_steps_waits_are_the_waits_of_its_threads() {
    let (process, mut witness) = Process::new();
    witness.begin();
    process.thread(MAIN, [14, 2, 2], 'R');
    process.thread(HELPER, [13, 5, 2], 'S');
    let seen = witness.step();
    assert_eq!(milliseconds(Some(seen.processor_s)), Some(7.0));
    assert_eq!((milliseconds(seen.wait_s), milliseconds(seen.longest_wait_s)), (Some(7.0), Some(5.0)));
    // Each was given a processor once more, which takes up to 50 us whatever else runs.
    assert_eq!(milliseconds(seen.interrupted_s), Some(4.95));
    assert_eq!(seen.source(), "schedstat");
    // A thread that is ready and ran no more would wait; this one sleeps.
    process.thread(MAIN, [14, 2, 2], 'S');
    let seen = witness.step();
    assert_eq!((seen.processor_s, seen.wait_s, seen.interrupted_s), (0.0, Some(0.0), Some(0.0)));
}

#[test]
fn what_came_before_a_visit_belongs_to_none_of_its_steps() {
    let (process, mut witness) = Process::new();
    process.thread(MAIN, [90, 70, 9], 'R');
    witness.begin();
    process.thread(MAIN, [91, 70, 9], 'R');
    let seen = witness.step();
    assert_eq!((milliseconds(Some(seen.processor_s)), seen.wait_s), (Some(1.0), Some(0.0)));
}

/// A kernel counts a wait when it ends.
#[test]
fn a_helper_that_still_waits_has_waited_for_the_whole_step() {
    let (process, mut witness) = Process::new();
    witness.begin();
    process.thread(HELPER, [11, 0, 1], 'R');
    witness.step();
    std::thread::sleep(std::time::Duration::from_millis(2));
    let seen = witness.step();
    assert!(seen.longest_wait_s >= Some(0.002), "{seen:?}");
    // It sleeps: it waits for work, and for no processor.
    process.thread(HELPER, [12, 0, 1], 'S');
    witness.step();
    assert_eq!(witness.step().longest_wait_s, Some(0.0));
}

#[test]
fn a_wait_that_ends_is_not_reported_twice() {
    let (process, mut witness) = Process::new();
    witness.begin();
    process.thread(HELPER, [11, 0, 1], 'R');
    witness.step();
    std::thread::sleep(std::time::Duration::from_millis(2));
    let told_s = witness.step().longest_wait_s.expect("counted");
    let all = 2000;
    process.thread(HELPER, [12, all, 2], 'R');
    let rest_s = witness.step().longest_wait_s.expect("counted");
    assert!((told_s + rest_s - 1e-3 * all as f64).abs() < 1e-6, "{told_s} and {rest_s}");
}

#[test]
fn threads_may_come_and_go() {
    let (process, mut witness) = Process::new();
    witness.begin();
    fs::remove_dir_all(process.path().join("proc/self/task").join(HELPER)).expect("removed");
    process.thread("9000003", [2, 1, 1], 'R');
    process.thread("9000004", [4, 0, 1], 'R');
    let seen = witness.step();
    // New threads are read from their beginning on.
    assert_eq!((milliseconds(Some(seen.processor_s)), milliseconds(seen.wait_s)), (Some(6.0), Some(1.0)));
}

#[test]
fn without_counted_waits_involuntary_switches_replace_them() {
    for text in ["0 0 0\n", ""] {
        let (folder, root) = planted(&[("proc/self/task/9000001/schedstat", text)]);
        let mut witness = Witness::open(&root);
        witness.begin();
        let seen = witness.step();
        assert_eq!((seen.wait_s, seen.longest_wait_s, seen.source()), (None, None, "switches"), "{text:?}");
        drop(folder);
    }
}

#[test]
fn steal_counts_only_the_processors_that_the_process_may_use() {
    let (process, mut witness) = Process::new();
    witness.begin();
    let text = "cpu0 1 0 0 0 0 0 0 40 0 0\ncpu1 1 0 0 0 0 0 0 30 0 0\ncpu2 0 0 0 0 0 0 0 99\n";
    fs::write(process.path().join("proc/stat"), text).expect("written");
    let ticks = 20.0;
    let steal_s = witness.steal_s().expect("counted");
    assert!((steal_s - ticks * 0.01).abs() < 1e-9, "{steal_s} at 100 ticks a second");
}

#[test]
fn other_programs_are_named_without_the_children_of_this_process() {
    let own = std::process::id();
    let stat = |number: u32, name: &str, state: char, parent: u32| {
        (format!("proc/{number}/stat"), format!("{number} ({name}) {state} {parent} 1 0\n"))
    };
    let (_folder, root) = planted(&[
        stat(own, "batchstep", 'R', 1),
        stat(9_000_002, "python3", 'R', own),
        stat(9_000_003, "python3", 'R', 9_000_002),
        stat(9_000_004, "rustc", 'R', 1),
        stat(9_000_005, "rustc", 'R', 9_000_004),
        stat(9_000_006, "sshd", 'S', 1),
        stat(9_000_007, "a (b) c", 'R', 1),
    ]);
    let mut others = Others::open(&root);
    let running = others.look().expect("the first look");
    assert_eq!(running, [("a (b) c".to_owned(), 1), ("rustc".to_owned(), 2)].into());
    // A second look a moment later would cost more than it says.
    assert_eq!(others.look(), None);
}

/// Beside the definitions above: this machine's own accounts.
#[test]
fn a_thread_that_computes_has_processor_time_here() {
    let mut witness = Witness::open(&FilesystemRoot::system());
    witness.begin();
    let start = std::time::Instant::now();
    while start.elapsed().as_millis() < 20 {
        std::hint::spin_loop();
    }
    let seen = witness.step();
    assert!(seen.processor_s > 0.0, "{seen:?}");
    assert!(seen.wait_s.is_none_or(|wait_s| seen.longest_wait_s.is_some_and(|longest_s| longest_s <= wait_s)));
}
