//! Visits that other programs disturb, with accounts as a kernel would write them.

use std::collections::VecDeque;
use std::path::PathBuf;

use crate::device::root::tests::planted;
use crate::device::witness::Witness;
use crate::engine::{SetupTimes, Step, StepTimes};
use crate::error::Result;
use crate::run::schedule::VisitLength;
use crate::run::{History, Measured, Ready, StepReadings, measure};
use crate::spec::Experiment;
use crate::spec::plan::Plan;
use crate::store::StepRow;

/// A number above the largest that Linux gives to a thread.
const THREAD: &str = "proc/self/task/9000001/schedstat";
/// Milliseconds of a step's own work.
const WORK_MS: u64 = 10;

/// A step whose thread waits for the next of `waits_ms` in each step, and for nothing once they are used up.
struct Interrupted {
    account: PathBuf,
    waits_ms: VecDeque<u64>,
    /// Milliseconds on a processor and of waiting so far, and how often it was given one.
    so_far: [u64; 3],
}

impl Step for Interrupted {
    fn run(&mut self) -> Result<StepTimes> {
        let wait_ms = self.waits_ms.pop_front().unwrap_or(0);
        let [run_ms, waited_ms, times] = &mut self.so_far;
        *run_ms += WORK_MS;
        *waited_ms += wait_ms;
        *times += 1;
        let text = format!("{} {} {times}\n", *run_ms * 1_000_000, *waited_ms * 1_000_000);
        std::fs::write(&self.account, text).expect("written");
        Ok(StepTimes { step_s: 1e-3 * (WORK_MS + wait_ms) as f64, ..StepTimes::default() })
    }
}

/// A visit of `k` steps whose first ones wait for so long, in milliseconds.
fn visited(k: usize, waits_ms: &[u64]) -> Measured {
    let (folder, root) = planted(&[
        (THREAD, "1000000 0 1\n"),
        ("proc/self/status", "Cpus_allowed_list:\t0\n"),
        ("proc/stat", "cpu0 1 0 0 0 0 0 0 30 0 0\n"),
        ("proc/9000007/stat", "9000007 (rustc) R 1 1 0\n"),
    ]);
    let mut witness = Witness::open(&root);
    let account = folder.path().join(THREAD);
    let mut step = Interrupted { account, waits_ms: waits_ms.iter().copied().collect(), so_far: [1, 0, 1] };
    let ready = Ready { started_s: 0.0, prepare_s: 0.0, setup: SetupTimes::default() };
    let beside = StepReadings { counters: None, witness: Some(&mut witness), in_this_process: true, held_up: false };
    measure(&mut step, ready, VisitLength { steps: k, warmup: 0 }, &|_| false, beside).expect("measured")
}

#[test]
fn a_visit_continues_until_it_has_its_undisturbed_steps() {
    let seen = visited(3, &[0, 8, 0, 9]);
    assert_eq!(seen.seen.disturbed(), [Some(false), Some(true), Some(false), Some(true), Some(false)]);
    assert_eq!((seen.counts_from, seen.steady, seen.cut_short), (0, true, false));
    assert_eq!(seen.steal_s, Some(0.0));
    assert_eq!(seen.others, Some([("rustc".to_owned(), 1)].into()));
    let quiet = visited(3, &[]);
    assert_eq!((quiet.steps.len(), quiet.others), (3, None));
}

#[test]
fn a_visit_that_other_programs_never_leave_alone_ends() {
    let seen = visited(5, &[8; 100]);
    assert_eq!((seen.steps.len(), seen.counts_from), (2, 0));
    let waits: Vec<Option<f64>> = seen.steps.iter().map(|step| step.times.witnessed?.longest_wait_s).collect();
    assert!(waits.iter().all(|wait_s| wait_s.is_some_and(|wait_s| (wait_s - 0.008).abs() < 1e-9)), "{waits:?}");
}

/// Two cells, three blocks; a time of 1 s, or where it was disturbed of 9.
fn history(disturbed: [[bool; 3]; 2]) -> History {
    let text = "version = 1\nname = \"a\"\n[sweep]\nbatch_size = [1, 2]\n[engine]\nname = \"synthetic\"\n[synthetic]\n";
    let plan = Plan::new(&Experiment::parse(text, "a.toml").expect("valid")).expect("plans");
    let mut history = History::new(&plan);
    for block in 0..3 {
        for (cell, of_cell) in disturbed.iter().enumerate() {
            let is_disturbed = of_cell[block];
            let visit = (2 * block + cell) as i64;
            let time = if is_disturbed { 9.0 } else { 1.0 };
            history.record(&[StepRow {
                block: block as i64,
                cell: cell as i64,
                visit,
                order: visit,
                step_time_s: Some(time),
                disturbed: Some(is_disturbed),
                ..StepRow::default()
            }]);
        }
    }
    history
}

#[test]
fn disturbed_visits_count_only_where_there_are_too_few_others() {
    let history = history([[false, true, false], [true, true, false]]);
    let times = |cell: usize| history.cells[cell].visits().flat_map(|(_, times)| times.to_vec()).collect::<Vec<_>>();
    assert_eq!((times(0), times(1)), (vec![1.0, 1.0], vec![9.0, 9.0, 1.0]));
    assert_eq!(history.visits_until(2).count(), 5);
    // After two blocks the first cell had one undisturbed visit, and so needed both: a run that is resumed decides as this one did.
    assert_eq!((history.visits_until(1).count(), history.made_until(1)), (4, 4));
    let tally = history.tally;
    assert_eq!((tally.witnessed, tally.disturbed, tally.disturbed_visits), (6, 3, 3));
}
