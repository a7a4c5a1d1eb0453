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
use crate::published_check::FAMILIES;
use batchstep::analysis::mechanisms::formulas::Family;
use batchstep::predict::published_kernels::model::{Assumptions, KernelModel};
use batchstep::predict::published_kernels::validation::{
    Errors, Prediction, convolutions, of_layers_left_out, predictions,
};
use batchstep::predict::published_kernels::{PATH, Published};

/// The full model first.
const ASSUMPTIONS: [(Assumptions, &str); 4] = [
    (Assumptions::BOTH, "padding and rounds"),
    (Assumptions { padding: false, rounds: true }, "without padding"),
    (Assumptions { padding: true, rounds: false }, "without rounds"),
    (Assumptions { padding: false, rounds: false }, "without both"),
];

/// Each GPU in turn; one model of all the others.
fn of_gpus_left_out(published: &Published, gpu: usize, assumed: Assumptions) -> Vec<Prediction> {
    let others = published.launches.iter().filter(|launch| launch.gpu != gpu);
    predictions(published, convolutions(published, gpu), &KernelModel::fit(published, others, assumed))
}

type LeftOut = fn(&Published, usize, Assumptions) -> Vec<Prediction>;

pub fn run() -> Result<(), Box<dyn Error>> {
    let path = argument(1).map_or_else(|| PathBuf::from(PATH), PathBuf::from);
    let published = Published::read(&path).map_err(|error| error.to_string())?;
    let kinds: [(LeftOut, &str); 2] = [(of_layers_left_out, "Layers left out"), (of_gpus_left_out, "GPUs left out")];
    for (left_out, title) in kinds {
        let of_all = |assumed| (0..published.gpus.len()).flat_map(|gpu| left_out(&published, gpu, assumed)).collect();
        let all: [Vec<Prediction>; 4] = ASSUMPTIONS.map(|(assumed, _)| of_all(assumed));
        println!("### {title}\n");
        let columns = ASSUMPTIONS.map(|(_, name)| name);
        println!("| convolutions | count | {} |\n|---|---|{}", columns.join(" | "), "---|".repeat(columns.len()));
        for (family, name) in FAMILIES.into_iter().filter(|(family, _)| *family != Family::Dense) {
            line(name, &all, |prediction| prediction.family == family);
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
