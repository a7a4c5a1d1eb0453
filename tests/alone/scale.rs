//! Many cells: memory and time for each cell do not grow.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use batchstep::engine::open::{DeviceChoice, Engines};
use batchstep::error::Result;
use batchstep::run::{self, History, Observer, Progress, RowContext, RowSink, Sweep};
use batchstep::spec::Experiment;
use batchstep::spec::plan::{Cell, Plan};
use batchstep::store::{LayerRow, StepRow};

const SPEC: &str = "version = 1\nname = \"scale\"\n[sweep]\nbatch_size = \"1..=10000\"\n[engine]\nname = \"synthetic\"\n[synthetic]\nnoise = { sd = \"1%\" }\n[measure]\nblocks = { min = 2, max = 2 }\nsteps_per_visit = 3\n";

/// Counts its rows and keeps none.
#[derive(Default)]
struct Counting(AtomicUsize);

impl RowSink for Counting {
    fn append(&self, visit: &[StepRow]) -> Result<()> {
        self.0.fetch_add(visit.len(), Ordering::Relaxed);
        Ok(())
    }

    fn append_layers(&self, _layers: &[LayerRow]) -> Result<()> {
        Ok(())
    }
}

/// Records time and memory at each visit of the second block, in which every cell is already known.
struct Watching {
    seen: RefCell<Vec<(f64, f64)>>,
}

impl Observer for Watching {
    fn visited(&mut self, _cell: &Cell, _median_s: Option<f64>, progress: Progress) {
        if progress.visits.is_multiple_of(1000) {
            self.seen.borrow_mut().push((processor_s(), resident_mb()));
        }
    }

    fn warn(&mut self, message: &str) {
        panic!("{message}");
    }
}

/// Resident memory in 10^6 bytes.
fn resident_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("a process has a status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a resident size");
    line.trim().strip_suffix("kB").expect("in kB").trim().parse::<f64>().expect("a number") * 1.024e-3
}

/// Processor time of this process in seconds: other processes that run meanwhile do not count.
fn processor_s() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes one timespec.
    let result = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    assert_eq!(result, 0);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

#[test]
#[ignore = "slow"]
fn ten_thousand_cells_take_the_same_time_and_little_memory_each() {
    let _alone = crate::alone();
    let experiment = Experiment::parse(SPEC, "scale.toml").expect("valid");
    let plan = Plan::new(&experiment).expect("plans");
    let mut engines =
        Engines::open(&experiment.engine.name, DeviceChoice::Cpu, experiment.synthetic.as_ref()).expect("opens");
    let mut device = engines.open_device();
    let sink = Counting::default();
    let mut watching = Watching { seen: RefCell::default() };
    let sweep = Sweep {
        plan: &plan,
        measure: &experiment.measure,
        facts: RowContext::new("scale".into(), &plan, &mut engines).expect("facts"),
        engines: &mut engines,
        device: device.as_mut(),
        witness: None,
        sink: &sink,
        observer: &mut watching,
        interrupted: &AtomicBool::new(false),
        hung: &|_| (),
    };
    let outcome = run::run(sweep, History::new(&plan)).expect("runs");
    assert_eq!(outcome.cells.len(), 10_000);
    assert!(sink.0.into_inner() >= 60_000);

    let seen = watching.seen.into_inner();
    // The median over spans of 1000 visits: early in the first block, and late in the second, when all cells are known.
    let median = |from: usize, to: usize| {
        let mut spans: Vec<f64> = seen[from..to].windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
        spans.sort_by(f64::total_cmp);
        spans[spans.len() / 2]
    };
    let (early, late) = (median(0, 8), median(12, 19));
    assert!(late < 2.0 * early, "1000 visits took {early} s at first, and {late} s in the end");
    // It grows by 2 MB; rows that were kept would be 60 MB and more.
    let (first, growth) = (seen[2].1, seen[18].1 - seen[2].1);
    assert!(first > 1.0 && growth < 10.0, "memory grew by {growth} MB over 16,000 visits, from {first} MB");
}
