use std::cell::RefCell;

use super::*;
use crate::analysis::fits::{SAME, SAME_EPOCHS};
use crate::engine::open::DeviceChoice;
use crate::engine::refusing::Refusing;
use crate::spec::Spec;
use crate::spec::fit::Fit;

#[derive(Default)]
struct Memory(RefCell<Vec<FitRow>>, RefCell<Vec<SurfaceRow>>);

impl Ledger for Memory {
    fn append(&self, epochs: &[FitRow], surface: &[SurfaceRow]) -> Result<()> {
        self.0.borrow_mut().extend_from_slice(epochs);
        self.1.borrow_mut().extend_from_slice(surface);
        Ok(())
    }
}

#[derive(Default)]
struct Silent(Vec<String>);

impl Observer for Silent {
    fn fitted(&mut self, _: &str, _: &FitRow, _: Progress) {}
    fn warn(&mut self, message: &str) {
        self.0.push(message.to_owned());
    }
}

fn spec(body: &str) -> Fit {
    match Spec::parse(&format!("version = 1\nkind = \"fit\"\nname = \"t\"\n{body}"), "t.toml").expect("valid") {
        Spec::Fit(fit) => *fit,
        _ => panic!("a fit"),
    }
}

/// Runs a study in memory, continuing after the rows in `stored`.
fn run_study(spec: &Fit, stored: &[FitRow]) -> (Memory, Outcome) {
    let engines = Engines::open(&spec.experiment.engine.name, DeviceChoice::Cpu, None).expect("engines");
    let (memory, outcome, _) = run_with(spec, engines, stored);
    (memory, outcome)
}

/// The same on engines that are open, all cells checked before; also what the user reads.
fn run_with(spec: &Fit, mut engines: Engines, stored: &[FitRow]) -> (Memory, Outcome, Vec<String>) {
    let plan = Plan::new(&spec.experiment).expect("a plan");
    let facts = RunFacts::new("t".into(), &plan, &mut engines).expect("facts");
    let (memory, mut observer) = (Memory::default(), Silent::default());
    let study = Study {
        plan: &plan,
        epochs: spec.epochs,
        time_limit_s: spec.experiment.measure.time_limit_s,
        facts: facts.with_qualified(vec![Some(true); plan.cells.len()]),
        engines: &mut engines,
        ledger: &memory,
        observer: &mut observer,
        interrupted: &AtomicBool::new(false),
    };
    let outcome = run(study, stored).expect("it runs");
    (memory, outcome, observer.0)
}

#[test]
fn each_fit_has_a_row_for_each_update_and_one_before_and_its_surface_belongs_to_the_last() {
    let spec = spec("[sweep]\nbatch_size = [16, 30]\n[engine]\nname = [\"cpu\", \"candle\"]\n[measure]\nepochs = 4");
    let (memory, outcome) = run_study(&spec, &[]);
    assert_eq!(outcome, Outcome { complete: true, out_of_time: false });
    let rows = memory.0.into_inner();
    assert_eq!(rows.len(), 4 * 5);
    assert!(rows.iter().all(|row| row.status == Status::Ok && row.prepare_time_s.is_some_and(|s| s > 0.0)));
    assert_eq!(rows[..5].iter().map(|row| row.epoch).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    let surface = memory.1.into_inner();
    assert_eq!(surface.len(), 2 * (16 + 30));
    // The mean squared error of the stored surface is the loss of the last row: by hand, in double precision.
    for cell in 0..4 {
        let own: Vec<&SurfaceRow> = surface.iter().filter(|point| point.cell == cell).collect();
        let error = own.iter().map(|p| (p.fitted - p.height).powi(2)).sum::<f64>() / own.len() as f64;
        let last = rows.iter().rfind(|row| row.cell == cell).and_then(|row| row.loss).expect("a loss");
        assert!((error / last - 1.0).abs() < 1e-5, "{error} {last}");
    }
    // 30 points fill the grid of 6 x 6 except its last row.
    let last = surface.last().expect("a point");
    assert_eq!((last.row, last.column, last.x), (4, 5, 3.0));
}

#[test]
fn fits_that_are_stored_are_not_made_again() {
    let spec = spec("[sweep]\nbatch_size = [9, 16]\n[measure]\nepochs = 2");
    let (first, _) = run_study(&spec, &[]);
    let stored: Vec<FitRow> = first.0.into_inner().into_iter().filter(|row| row.cell == 0).collect();
    let (second, outcome) = run_study(&spec, &stored);
    let rows = second.0.into_inner();
    assert!(outcome.complete && rows.iter().all(|row| row.cell == 1 && row.visit == 1) && rows.len() == 3);
}

#[test]
fn a_fit_by_the_replacement_of_a_refused_algorithm_is_not_marked_as_checked() {
    let spec = spec("[sweep]\nbatch_size = [9, 16]\n[measure]\nepochs = 2");
    let engines = Engines::of(EngineName::Cpu, Box::new(Refusing::at(16)));
    let (memory, _, said) = run_with(&spec, engines, &[]);
    let rows = memory.0.into_inner();
    assert_eq!(rows.len(), 2 * 3);
    assert!(rows.iter().all(|row| row.qualified == Some(row.batch_size == 9)), "{rows:?}");
    assert!(said.len() == 1 && said[0].contains(Refusing::SAID), "{said:?}");
}

#[test]
fn a_large_surface_is_stored_with_evenly_spaced_rows_and_columns() {
    let spec = spec("");
    let workload = Plan::new(&spec.experiment).expect("a plan").cells[0].workload.clone();
    let workload = Workload { batch_size: 500 * 500, ..workload };
    let output = vec![0.0; workload.batch_size];
    let stored = surface(&workload, &FitRow::default(), &output);
    assert_eq!(stored.len(), 167 * 167, "every third of 500 rows and columns");
    assert!((stored[1].x - stored[0].x - 18.0 / 499.0).abs() < 1e-6);
}

/// What PyTorch's fits did; see the script.
#[derive(serde::Deserialize)]
struct Case {
    seed: u64,
    points: usize,
    learning_rate: f64,
    losses: Vec<Loss>,
    updates: usize,
    /// Errors after those updates of fits in single precision whose initial weights differ by at most one rounding, ascending.
    ends: Vec<f64>,
}

#[derive(serde::Deserialize)]
struct Loss {
    updates: usize,
    double: f64,
}

/// Expected values: `tests/fixtures/peaks.json`, produced by `scripts/fixtures/peaks.py` with PyTorch.
fn cases() -> Vec<Case> {
    serde_json::from_str(include_str!("../../tests/fixtures/peaks.json")).expect("JSON")
}

fn fitted(case: &Case, engines: &str, updates: usize) -> Vec<FitRow> {
    let Case { seed, points, learning_rate, .. } = case;
    let spec = spec(&format!(
        "[sweep]\nbatch_size = {points}\n[train]\nlearning_rate = {learning_rate}\n[engine]\nname = {engines}\nthreads = 1\n\
         [measure]\nepochs = {updates}\nseed = {seed}"
    ));
    run_study(&spec, &[]).0.0.into_inner()
}

#[test]
fn every_engine_follows_pytorch_from_the_same_seed() {
    for case in cases() {
        for row in fitted(&case, "[\"cpu\", \"candle\"]", SAME_EPOCHS) {
            let Some(expected) = case.losses.iter().find(|loss| loss.updates as i64 == row.epoch) else { continue };
            let own = row.loss.expect("a loss");
            assert!((own / expected.double - 1.0).abs() < SAME, "{row:?} {}", expected.double);
        }
    }
}

/// A fit of 2,000 updates ends where rounding leads it, so it is held against where roundings led PyTorch: among its ends, widened by a quarter
/// as sixteen do not span all. Seeds 1 and 3 fit, seed 8 loses most rectifiers, and seed 2 all of them, which leaves the variance.
#[test]
fn the_error_after_two_thousand_updates_is_among_pytorchs_errors() {
    for case in cases() {
        let rows = fitted(&case, "\"cpu\"", case.updates);
        let error = rows.last().and_then(|row| row.loss).expect("a loss");
        let (low, high) = (case.ends[0] / 1.25, case.ends[case.ends.len() - 1] * 1.25);
        assert_eq!(rows.len(), case.updates + 1);
        assert!(low < error && error < high, "seed {}: {error}, PyTorch {:?}", case.seed, case.ends);
        if case.ends[0] == case.ends[case.ends.len() - 1] {
            assert!((error / case.ends[0] - 1.0).abs() < 1e-5, "seed {}: {error}", case.seed);
        }
    }
}
