//! Many cells: memory and time for each cell stay what they are.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use batchstep::engine::open::{DeviceChoice, Engines};
use batchstep::error::Result;
use batchstep::plan::{Cell, Plan};
use batchstep::run::{self, Bench, History, Ledger, Observer, Progress, RunFacts};
use batchstep::spec::Experiment;
use batchstep::store::{LayerRow, StepRow};

const SPEC: &str = "version = 1\nname = \"scale\"\n[sweep]\nbatch_size = \"1..=10000\"\n[engine]\nname = \"synthetic\"\n[synthetic]\nnoise = { sd = \"1%\" }\n[measure]\nblocks = { min = 2, max = 2 }\nsteps_per_visit = 3\n";

/// Counts what it is given and keeps nothing.
#[derive(Default)]
struct Counting(AtomicUsize);

impl Ledger for Counting {
    fn append(&self, visit: &[StepRow]) -> Result<()> {
        self.0.fetch_add(visit.len(), Ordering::Relaxed);
        Ok(())
    }

    fn append_layers(&self, _layers: &[LayerRow]) -> Result<()> {
        Ok(())
    }
}

/// Notes time and memory at each visit of the second block, in which every cell is known already.
struct Watching {
    started: Instant,
    seen: RefCell<Vec<(f64, f64)>>,
}

impl Observer for Watching {
    fn visited(&mut self, _cell: &Cell, _median_s: Option<f64>, progress: Progress) {
        if progress.visits.is_multiple_of(1000) {
            self.seen.borrow_mut().push((self.started.elapsed().as_secs_f64(), resident_mb()));
        }
    }

    fn block_ended(&mut self, _block: usize, _history: &History) {}

    fn warn(&mut self, message: &str) {
        panic!("{message}");
    }
}

/// Resident memory in 10^6 bytes; 0 where the system does not say.
fn resident_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<f64>().ok());
    kib.unwrap_or(0.0) * 1.024e-3
}

#[test]
fn ten_thousand_cells_take_the_same_time_and_little_memory_each() {
    let experiment = Experiment::parse(SPEC, "scale.toml").expect("valid");
    let plan = Plan::new(&experiment).expect("plans");
    let mut engines =
        Engines::open(&experiment.engine.name, DeviceChoice::Cpu, experiment.synthetic.as_ref()).expect("opens");
    let mut device = engines.open_device();
    let ledger = Counting::default();
    let mut watching = Watching { started: Instant::now(), seen: RefCell::default() };
    let bench = Bench {
        plan: &plan,
        measure: &experiment.measure,
        facts: RunFacts::new("scale".into(), &plan, &mut engines).expect("facts"),
        engines: &mut engines,
        device: device.as_mut(),
        ledger: &ledger,
        observer: &mut watching,
        interrupted: &AtomicBool::new(false),
        hung: &|_| (),
    };
    let outcome = run::run(bench, History::new(&plan)).expect("runs");
    assert_eq!(outcome.cells.len(), 10_000);
    assert!(ledger.0.into_inner() >= 60_000);

    let seen = watching.seen.into_inner();
    let span = |from: usize, to: usize| seen[to].0 - seen[from].0;
    // Without the judgement between the blocks; generous, since tests share the machine.
    let (early, late) = (span(0, 8).max(span(10, 14)), span(14, 18));
    assert!(late < 4.0 * early, "the last 4,000 visits took {late} s, the first 8,000 {early} s");
    // Other tests of this process allocate meanwhile; rows that were kept would be 60 MB and more.
    let growth = seen[18].1 - seen[2].1;
    assert!(growth < 40.0, "memory grew by {growth} MB over 16,000 visits");
}
