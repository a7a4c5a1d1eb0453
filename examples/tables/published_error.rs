//! How far predicted times on GPUs are from those that others published: of single kernels, with each GPU left out, and of whole training steps. Tables for
//! docs/prediction.md.
//!
//! ```text
//! scripts/fetch-published
//! cargo run --release --example tables -- published_error results/published/kernels.parquet experiments/predict/published_steps.csv
//! ```

use std::error::Error;
use std::path::PathBuf;

use crate::{arguments, collected};
use batchstep::predict::database::Database;
use batchstep::predict::model::Estimate;
use batchstep::predict::model::rates::left_out;
use batchstep::predict::{Devices, answer, published_kernels};
use batchstep::spec::Experiment;

type Failure = Box<dyn Error>;

pub fn run() -> Result<(), Failure> {
    let tables: Vec<PathBuf> = arguments().map(PathBuf::from).collect();
    let folder = std::env::temp_dir().join(format!("published-error-{}", std::process::id()));
    let database = collected(&tables, &folder)?;
    gpus(&database)?;
    whole_steps(&database)?;
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}

fn gpus(database: &Database) -> Result<(), Failure> {
    let devices = database.published_devices()?;
    if devices.is_empty() {
        return Ok(());
    }
    println!("### A GPU left out: single kernels that others measured\n");
    println!("| GPU | operation | kernels | median error | nine in ten within a factor of |\n|---|---|---:|---:|---:|");
    let published = published_kernels(database)?;
    for operation in ["conv2d", "dense"] {
        for errors in published.kernels.get(operation).map_or(Vec::new(), |kernels| left_out(kernels)) {
            let device = &published.devices[errors.device].name;
            let (kernels, median, factor) = (errors.kernels, 100.0 * errors.median, errors.radius.exp());
            println!("| {device} | {operation} | {kernels} | {median:.0} % | {factor:.2} |");
        }
    }
    Ok(())
}

/// The whole steps that others measured in float32, from the GPU's rates and the kernels.
fn whole_steps(database: &Database) -> Result<(), Failure> {
    let mut steps = database.published_steps()?;
    steps.retain(|step| step.precision == "fp32");
    if steps.is_empty() {
        return Ok(());
    }
    println!("\n### Whole steps that others measured, from the rates of the GPU and the kernels of others\n");
    println!(
        "| GPU | network | batch size | measured | predicted | off by | interval |\n|---|---|---:|---:|---:|---:|---|"
    );
    for step in steps {
        let spec = format!(
            "version = 1\nname = \"ask\"\n[model]\nname = \"{}\"\n[sweep]\nbatch_size = [{}]\n[train]\nprecision = \"fp32\"\n[engine]\nname = \"cudnn\"\n",
            step.model, step.batch_size
        );
        let asked = Devices::Named(step.device_name.clone());
        let found = answer(database, &Experiment::parse(&spec, "ask.toml")?, &asked)?;
        let Estimate { seconds, low, high } = found.rows[0].step;
        let holds = if found.rows[0].step.holds(step.step_time_s) { "holds it" } else { "does not hold it" };
        println!(
            "| {} | {} | {} | {:.0} ms | {:.0} ms | {:+.0} % | {:.0} to {:.0} ms, {holds} |",
            step.device_name,
            step.model,
            step.batch_size,
            1e3 * step.step_time_s,
            1e3 * seconds,
            100.0 * (seconds / step.step_time_s - 1.0),
            1e3 * low,
            1e3 * high
        );
    }
    Ok(())
}
