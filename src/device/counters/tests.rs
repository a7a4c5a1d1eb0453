use std::hint::black_box;
use std::process::{Command, Stdio};

use super::event::CounterCount;
use super::session::sum;
use super::*;
use crate::device::root::tests::planted;

#[test]
fn the_probe_answers_and_never_fails() {
    let (_guard, root) = planted(&[("proc/sys/kernel/perf_event_paranoid", "4\n")]);
    let counters = Counters::probe(&root);
    assert_eq!(counters.paranoid, Some(4));
    assert_eq!(counters.refused.is_none(), counters.cycles);
    let lacks = |counter: Counter| counters.lacking.iter().any(|lacking| lacking.name == counter.name());
    assert_eq!((lacks(Counter::Cycles), lacks(Counter::Instructions)), (!counters.cycles, !counters.instructions));
    // A session counts what the probe found.
    let session = Session::begin();
    let counts = session.between(&session.read(), &session.read());
    for counter in Counter::ALL.into_iter().filter(|counter| !counter.is_software()) {
        assert_eq!(session.counts(counter), !lacks(counter), "{counter:?}: {counts:?}");
    }
}

#[test]
fn a_refusal_is_explained_in_words() {
    assert!(describe(&io::Error::from_raw_os_error(libc::EACCES)).contains("permit"));
    assert!(describe(&io::Error::from_raw_os_error(libc::ENOENT)).contains("virtual"));
}

/// What Linux 6.18 on x86-64 answered to two reads of counters in the read format in use, before and after a process wrote to 300
/// fresh pages: 24 bytes each, as `read` gave them.
#[cfg(target_endian = "little")]
#[test]
fn recorded_answers_of_the_kernel_are_read() {
    const FAULTS: [&str; 2] =
        ["000000000000000048be00000000000048be000000000000", "2c01000000000000c2670d0000000000c2670d0000000000"];
    const CLOCK: [&str; 2] =
        ["6e10000000000000f60f000000000000f60f000000000000", "e9c10f000000000049c10f000000000049c10f0000000000"];
    let counted = |recorded: [&str; 2]| {
        let [before, after] = recorded.map(|text| {
            let byte = |at: usize| u8::from_str_radix(&text[2 * at..][..2], 16).expect("two digits");
            CounterCount::parse(std::array::from_fn(byte))
        });
        after.since(before)
    };
    assert_eq!(counted(FAULTS), Some(300.0));
    // Nanoseconds: 1,032,681 - 4,206.
    assert_eq!(counted(CLOCK), Some(1_028_475.0));
}

#[test]
fn counts_are_corrected_for_taking_turns() {
    let count = |value, enabled_ns, running_ns| CounterCount { value, enabled_ns, running_ns };
    let before = count(1_000, 4_000, 2_000);
    // By hand: 3000 events while it ran for 1 of 4 microseconds are 12,000 for the whole time.
    assert_eq!(count(4_000, 8_000, 3_000).since(before), Some(12_000.0));
    assert_eq!(count(1_000, 8_000, 2_000).since(before), None, "wanted and never run");
    assert_eq!(before.since(before), Some(0.0), "a thread that slept");
}

/// By hand: the counter of one thread's cycles ran for half of the time, 2 x 1,500, and the other thread's for all of
/// it, 500.
#[test]
fn threads_are_added_up_after_each_was_corrected() {
    let answer = |value, enabled_ns, running_ns| Some(CounterCount { value, enabled_ns, running_ns });
    let cycles =
        |before: [Option<CounterCount>; 2], after: [Option<CounterCount>; 2]| sum(before.into_iter().zip(after));
    let begun = [answer(100, 1_000, 500), answer(7, 10, 10)];
    assert_eq!(cycles(begun, [answer(1_600, 3_000, 1_500), answer(507, 2_010, 2_010)]), Some(3_500.0));
    assert_eq!(cycles(begun, [answer(1_600, 3_000, 1_500), None]), None, "without a thread the sum would be too small");
    assert_eq!(cycles(begun, [answer(100, 3_000, 500), answer(507, 2_010, 2_010)]), None, "one never ran");
}

fn touch(pages: usize) {
    let bytes = pages * 4096;
    // SAFETY: a mapping of our own, written within its bounds and unmapped.
    unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let start = libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0);
        assert!(start != libc::MAP_FAILED);
        libc::madvise(start, bytes, libc::MADV_NOHUGEPAGE);
        for page in 0..pages {
            start.cast::<u8>().add(page * 4096).write_volatile(1);
        }
        libc::munmap(start, bytes);
    }
}

fn value(counts: &Counts, counter: Counter) -> Option<f64> {
    counts[counter as usize]
}

fn spin(seconds: f64) {
    let start = std::time::Instant::now();
    while start.elapsed().as_secs_f64() < seconds {
        black_box(0);
    }
}

#[test]
fn every_page_that_is_touched_first_is_a_page_fault_also_in_threads_started_later() {
    let session = Session::begin();
    let before = session.read();
    touch(3000);
    std::thread::spawn(|| touch(2000)).join().expect("ended");
    let counts = session.between(&before, &session.read());
    let faults = value(&counts, Counter::PageFaults).expect("always counted");
    // Other tests of this process fault as well, so there is no upper bound.
    assert!(faults >= 5000.0, "{faults}");
}

#[test]
fn the_kernels_counters_are_there_whatever_is_permitted() {
    for session in [Session::begin(), Session::default()] {
        let before = session.read();
        spin(0.03);
        let counts = session.between(&before, &session.read());
        for counter in [Counter::PageFaults, Counter::ContextSwitches, Counter::TaskClock] {
            assert!(value(&counts, counter).is_some_and(|value| value >= 0.0), "{counter:?}: {counts:?}");
        }
        assert!(value(&counts, Counter::TaskClock) > Some(0.005), "{counts:?}");
    }
    let none = Session::default();
    let counts = none.between(&none.read(), &none.read());
    assert_eq!(value(&counts, Counter::Cycles), None);
    let names: Vec<&str> = Counter::ALL.iter().map(|counter| counter.name()).collect();
    assert_eq!((names.len(), counts.len()), (9, 9));
}

/// A child process runs this test binary with only the test below, so that no other test disturbs the counts.
#[test]
fn perf_stat_counts_the_same() {
    if !Command::new("perf").arg("--version").stdout(Stdio::null()).status().is_ok_and(|status| status.success()) {
        return crate::needs::missing("perf", "perf is not installed");
    }
    let mut command = Command::new("perf");
    command.args(["stat", "-x", ";", "-e", "page-faults,task-clock", "--"]);
    command.arg(std::env::current_exe().expect("a path"));
    command.args(["--exact", "device::counters::tests::a_known_load", "--ignored", "--nocapture", "--test-threads=1"]);
    let output = command.output().expect("perf starts");
    let (out, seen) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let by_perf = |event: &str| -> Option<f64> {
        seen.lines().find(|line| line.contains(event))?.split(';').next()?.parse().ok()
    };
    let (Some(faults), Some(clock_ms)) = (by_perf("page-faults"), by_perf("task-clock")) else {
        return crate::needs::missing("perf", format!("perf stat counts nothing here: {seen}"));
    };
    let own = |name: &str| -> f64 {
        let line = out.lines().find_map(|line| line.trim().strip_prefix(name)).expect("the load's counts");
        line.trim().parse().expect("a number")
    };
    // perf sees the start and the end of the process as well: some hundred pages, some milliseconds.
    let rest = faults - own("page_faults");
    assert!((0.0..6000.0).contains(&rest), "perf counts {faults} page faults, we {}", own("page_faults"));
    let rest = clock_ms * 1e-3 - own("task_clock_s");
    assert!(
        rest > -0.02 && rest < 0.5 * clock_ms * 1e-3 + 0.2,
        "perf counts {clock_ms} ms, we {} s",
        own("task_clock_s")
    );
}

/// What [`perf_stat_counts_the_same`] runs below perf: 20,000 page faults and 0.2 s of processor time.
#[test]
#[ignore = "a load for perf stat, started by the test above"]
fn a_known_load() {
    let session = Session::begin();
    let before = session.read();
    touch(20_000);
    spin(0.2);
    let counts = session.between(&before, &session.read());
    for counter in [Counter::PageFaults, Counter::TaskClock] {
        println!("\n{} {}", counter.name(), value(&counts, counter).expect("counted"));
    }
    assert!(value(&counts, Counter::PageFaults) >= Some(20_000.0), "{counts:?}");
}
