//! How far predicted step times are from measured ones: with batch sizes left out, networks left out, a device left out. Tables for
//! docs/prediction.md.
//!
//! ```text
//! batchstep run experiments/predict/generated_cpu.toml
//! batchstep run experiments/predict/generated_dense_cpu.toml
//! batchstep run experiments/predict/generated_dense_cpu.toml --out results/generated_dense_cpu_again
//! cargo run --release --example tables -- prediction_error results/generated_cpu results/generated_dense_cpu results/generated_dense_cpu_again
//! ```
//!
//! For two runs of every batch size, only the tables with batch sizes left out are printed. `--beyond RUN...` prints only how far off predictions beyond the measured sizes are, on any runs.
//!
//! `--jumps RUN AGAIN` names a run whose networks jump, and the same once more; `--four RUN` adds networks by name, such as those of experiments/predict/predict_four_cpu.toml; `--chart FILE` draws predicted against measured; `--features FILE` writes the work of the steps as CSV for
//! scripts/prediction-baseline, a gradient-boosted tree.

mod batch_sizes;
mod networks;
mod table;

use std::error::Error;
use std::path::{Path, PathBuf};

use batchstep::chart::{self, Chart, Paper, PredictedPoint, Prediction};
use batchstep::predict::model::Estimate;

use crate::{arguments, collected};
use batch_sizes::{after_jumps, batch_sizes, beyond};
use networks::{named_networks, other_networks, table_of, threads};
use table::Case;

type Failure = Box<dyn Error>;

pub fn run() -> Result<(), Failure> {
    let mut arguments = arguments();
    let (mut runs, mut features, mut chart, mut four, mut jumps) = (Vec::new(), None, None, None, None);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--jumps" => jumps = arguments.next().map(PathBuf::from).zip(arguments.next().map(PathBuf::from)),
            "--four" => four = arguments.next().map(PathBuf::from),
            "--chart" => chart = arguments.next().map(PathBuf::from),
            "--beyond" => return beyond(&arguments.map(PathBuf::from).collect::<Vec<_>>()),
            "--features" => features = arguments.next().map(PathBuf::from),
            _ => runs.push(PathBuf::from(argument)),
        }
    }
    if let [dense, again] = &runs[..] {
        batch_sizes(dense, again)?;
        return jumps.map_or(Ok(()), |(run, again)| after_jumps(&run, &again));
    }
    let [networks, dense, again] = &runs[..] else {
        return Err(
            "give three runs: of many networks, of every batch size, and of every batch size again; or the last two"
                .into(),
        );
    };
    let folder = std::env::temp_dir().join(format!("prediction-error-{}", std::process::id()));
    let database = collected(&runs.iter().cloned().chain(four.clone()).collect::<Vec<_>>(), &folder)?;
    batch_sizes(dense, again)?;
    if let Some((run, again)) = jumps {
        after_jumps(&run, &again)?;
    }
    let mut against = Vec::new();
    let steps = other_networks(&database, networks, &mut against)?;
    if let Some(run) = four {
        named_networks(&database, &run)?;
    }
    if let Some(path) = chart {
        draw(against, &path)?;
    }
    if let Some(path) = features {
        std::fs::write(path, table_of(&steps))?;
    }
    threads(&steps, networks)?;
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}

/// Predicted against measured step times of networks that were left out.
fn draw(against: Vec<Case>, path: &Path) -> Result<(), Failure> {
    let point = |case: Case| {
        let Estimate { seconds, low, high } = case.estimate;
        PredictedPoint { x: case.truth, value: seconds, low, high, ..PredictedPoint::default() }
    };
    let held = against.iter().filter(|case| case.estimate.holds(case.truth)).count();
    let chart = Prediction {
        title: "Networks that were left out".to_owned(),
        summary: format!("{held} of {} measured step times lie in the interval of 90 %.", against.len()),
        against: against.into_iter().map(point).collect(),
        caption: vec!["cargo run --release --example tables -- prediction_error RUN RUN RUN --chart FILE".to_owned()],
        ..Prediction::default()
    };
    Ok(chart::write(&Paper::default(), &Chart::Prediction(chart), path)?)
}
