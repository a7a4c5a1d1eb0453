//! Tables of predictions and what was measured.

use batchstep::predict::model::Estimate;
use batchstep::stats::quantile::{median, quantile};

/// One prediction and what was measured.
#[derive(Clone, Copy)]
pub struct Case {
    pub estimate: Estimate,
    pub truth: f64,
}

/// A line of a table: count, median and 90th percentile of the error, its signed median, coverage.
pub fn row(name: &str, cases: &[Case], has_interval: bool) {
    if cases.is_empty() {
        println!("| {name} | 0 | | | | |");
        return;
    }
    let mut absolute: Vec<f64> = cases.iter().map(|case| (case.estimate.seconds / case.truth - 1.0).abs()).collect();
    let mut signed: Vec<f64> = cases.iter().map(|case| case.estimate.seconds / case.truth - 1.0).collect();
    let held = cases.iter().filter(|case| case.estimate.holds(case.truth)).count() as f64 / cases.len() as f64;
    let coverage = if has_interval { format!("{:.0} %", 100.0 * held) } else { String::new() };
    println!(
        "| {name} | {} | {:.1} % | {:.1} % | {:+.1} % | {coverage} |",
        cases.len(),
        100.0 * median(&mut absolute),
        100.0 * quantile(&mut absolute, 0.9),
        100.0 * median(&mut signed),
    );
}

pub fn head(title: &str) {
    println!(
        "\n### {title}\n\n| prediction | steps | median error | 90th percentile | signed median | in the interval |"
    );
    println!("|---|---:|---:|---:|---:|---:|");
}

pub fn plain(seconds: f64) -> Estimate {
    Estimate::around(seconds, 0.0)
}
