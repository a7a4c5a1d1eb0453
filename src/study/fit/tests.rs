use super::*;
use crate::engine::refusing::Refusing;
use crate::settings::EngineName;
use crate::study::fit::results::{SAME, SAME_EPOCHS};
use crate::study::tests::{Ran, in_memory, on_cpu, parse};

fn spec(body: &str) -> Fit {
    parse("fit", body, Fit::of).expect("valid")
}

/// Runs a study in memory, continuing after the rows in `stored`.
fn run_study(spec: &Fit, stored: &[FitRow]) -> Ran<Fit> {
    in_memory(spec, on_cpu(spec), &(), stored)
}

#[test]
fn each_fit_has_a_row_for_each_update_and_one_before_and_its_surface_belongs_to_the_last() {
    let spec = spec("[sweep]\nbatch_size = [16, 30]\n[engine]\nname = [\"cpu\", \"candle\"]\n[measure]\nepochs = 4");
    let Ran { rows, details: surface, outcome, .. } = run_study(&spec, &[]);
    assert!(outcome.complete && !outcome.out_of_time);
    assert_eq!(rows.len(), 4 * 5);
    assert!(rows.iter().all(|row| row.status == Status::Ok && row.prepare_time_s.is_some_and(|s| s > 0.0)));
    assert_eq!(rows[..5].iter().map(|row| row.epoch).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
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
    let stored: Vec<FitRow> = run_study(&spec, &[]).rows.into_iter().filter(|row| row.cell == 0).collect();
    let Ran { rows, outcome, .. } = run_study(&spec, &stored);
    assert!(outcome.complete && rows.iter().all(|row| row.cell == 1 && row.visit == 1) && rows.len() == 3);
}

#[test]
fn a_fit_by_the_replacement_of_a_refused_algorithm_is_not_marked_as_checked() {
    let spec = spec("[sweep]\nbatch_size = [9, 16]\n[measure]\nepochs = 2");
    let engines = Engines::of(EngineName::Cpu, Box::new(Refusing::at(16)));
    let Ran { rows, said, .. } = in_memory(&spec, engines, &(), &[]);
    assert_eq!(rows.len(), 2 * 3);
    assert!(rows.iter().all(|row| row.qualified == Some(row.batch_size == 9)), "{rows:?}");
    assert!(said.len() == 1 && said[0].contains(Refusing::SAID), "{said:?}");
}

#[test]
fn a_large_surface_is_stored_with_evenly_spaced_rows_and_columns() {
    let spec = spec("");
    let mut engines = on_cpu(&spec);
    let workload = spec.plan(&(), &mut engines).expect("a plan").cells[0].step.workload.clone();
    let workload = Workload { batch_size: 500 * 500, ..workload };
    let output = vec![0.0; workload.batch_size];
    let stored = surface(&workload, &FitRow::default(), &output);
    assert_eq!(stored.len(), 167 * 167, "every third of 500 rows and columns");
    assert!((stored[1].x - stored[0].x - 18.0 / 499.0).abs() < 1e-6);
}

/// What PyTorch's fits did; see the script.
#[derive(serde::Deserialize)]
struct FitCase {
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
fn cases() -> Vec<FitCase> {
    serde_json::from_str(include_str!("../../../tests/fixtures/peaks.json")).expect("JSON")
}

fn fitted(case: &FitCase, engines: &str, updates: usize) -> Vec<FitRow> {
    let FitCase { seed, points, learning_rate, .. } = case;
    let spec = spec(&format!(
        "[sweep]\nbatch_size = {points}\n[train]\nlearning_rate = {learning_rate}\n[engine]\nname = {engines}\nthreads = 1\n\
         [measure]\nepochs = {updates}\nseed = {seed}"
    ));
    run_study(&spec, &[]).rows
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
