//! How far forecast times of convolutions are from published ones, with layers left out of the fit and with whole GPUs left out, and
//! what padding and rounds of blocks add.
//!
//! ```text
//! scripts/fetch-published
//! cargo run --release --example tables -- forecast_error [results/published/kernels.parquet]
//! ```

use std::error::Error;
use std::path::PathBuf;

use crate::argument;
use batchstep::analysis::mechanisms::formulas::Family;
use batchstep::predict::published_kernels::model::Assumptions;
use batchstep::predict::published_kernels::validation::{Errors, LeftOut, Prediction, predictions};
use batchstep::predict::published_kernels::{PATH, Published};

pub fn run() -> Result<(), Box<dyn Error>> {
    let path = argument(1).map_or_else(|| PathBuf::from(PATH), PathBuf::from);
    let published = Published::read(&path).map_err(|error| error.to_string())?;
    for (left_out, title) in [(LeftOut::Layers, "Layers left out"), (LeftOut::Gpu, "GPUs left out")] {
        let all = Assumptions::ALL.map(|assumed| predictions(&published, left_out, assumed));
        println!("### {title}\n");
        let columns: Vec<&str> = Assumptions::ALL.iter().map(|assumed| assumed.name()).collect();
        println!("| convolutions | count | {} |\n|---|---|{}", columns.join(" | "), "---|".repeat(columns.len()));
        for family in [Family::NonFusedWinograd, Family::FusedWinograd, Family::ImplicitProduct] {
            line(family.name(), &all, |prediction| prediction.family == family);
        }
        for (place, gpu) in published.gpus.iter().enumerate() {
            line(&gpu.name, &all, |prediction| prediction.gpu == place);
            line(&format!("{}, non-fused Winograd", gpu.name), &all, |prediction| {
                prediction.gpu == place && prediction.family == Family::NonFusedWinograd
            });
        }
        line("all", &all, |_| true);
        let right = all[0].iter().filter(|prediction| prediction.family_is_right).count();
        let chosen = Errors::of(all[0].iter().map(|prediction| prediction.chosen_error));
        println!(
            "\nWith the kernel that the model finds fastest in place of the measured one: {}; of the measured family in {:.0} % of {}.\n",
            percent(chosen),
            100.0 * right as f64 / all[0].len() as f64,
            all[0].len()
        );
    }
    Ok(())
}

/// A line of the table; none without a prediction.
fn line(name: &str, all: &[Vec<Prediction>], wanted: impl Fn(&Prediction) -> bool) {
    let errors = |predictions: &Vec<Prediction>| {
        Errors::of(predictions.iter().filter(|prediction| wanted(prediction)).map(|prediction| prediction.error))
    };
    let errors: Vec<Errors> = all.iter().map(errors).collect();
    if errors[0].count > 0 {
        let cells: Vec<String> = errors.iter().map(|errors| percent(*errors)).collect();
        println!("| {name} | {} | {} |", errors[0].count, cells.join(" | "));
    }
}

/// Median and 90th percentile.
fn percent(errors: Errors) -> String {
    format!("{:.1} %, {:.0} %", 100.0 * errors.median, 100.0 * errors.percentile_90)
}
