//! What a database costs: the time and the memory of collecting many runs, and the time of a prediction from them.
//!
//! ```text
//! batchstep run experiments/method/synthetic.toml
//! cargo run --release --example tables -- database_cost results/synthetic 10000
//! cargo run --release --example tables -- database_cost experiments/runs/2026-11-23-epyc-2-cores-quickstart 1000
//! ```
//!
//! The runs are copies of one run, each with a number of its own and on one of ten devices.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::{arguments, peak_bytes};
use batchstep::predict::database::{self, Database};
use batchstep::predict::{Devices, answer};
use batchstep::spec::Experiment;

pub fn run() -> Result<(), Box<dyn Error>> {
    let mut arguments = arguments();
    let (Some(template), Some(count)) = (arguments.next().map(PathBuf::from), arguments.next()) else {
        return Err("give a run directory, and how many runs to make of it".into());
    };
    let count: usize = count.parse()?;
    let folder = std::env::temp_dir().join(format!("database-cost-{}", std::process::id()));
    let runs: Vec<PathBuf> =
        (0..count).map(|number| copy(&template, &folder.join("runs"), number)).collect::<Result<_, _>>()?;
    let into = folder.join("database");

    let begun = Instant::now();
    let mut cells = 0;
    database::collect(&runs, &into, &mut |path, outcome| match outcome {
        database::Outcome::Added { cells: added } => cells += added,
        other => eprintln!("{}: {other:?}", path.display()),
    })?;
    println!(
        "collect: {count} runs, {cells} cells in {:.1} s, at most {:.0} kB of memory",
        begun.elapsed().as_secs_f64(),
        peak_bytes() / 1024.0
    );
    let begun = Instant::now();
    database::collect(&runs, &into, &mut |_, _| ())?;
    println!("collect again, nothing new: {:.1} s", begun.elapsed().as_secs_f64());

    let experiment = Experiment::read(&template.join("spec.toml"))?;
    let device = Database::open(&into)?.devices.first().cloned().ok_or("no device")?;
    for _ in 0..3 {
        let begun = Instant::now();
        let answer = answer(&Database::open(&into)?, &experiment, &Devices::Named(device.clone()))?;
        println!("predict: {} rows in {:.0} ms", answer.rows.len(), 1e3 * begun.elapsed().as_secs_f64());
    }
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}

/// A run directory that shares its tables with the template, and has a number and a device of its own.
fn copy(template: &Path, folder: &Path, number: usize) -> Result<PathBuf, Box<dyn Error>> {
    let run = folder.join(format!("{number:05}"));
    std::fs::create_dir_all(&run)?;
    for name in ["spec.toml", "jumps.json", "steps.parquet", "layers.parquet", "cells.parquet"] {
        let (from, to) = (template.join(name), run.join(name));
        if from.is_file() && std::fs::hard_link(&from, &to).is_err() {
            std::fs::copy(&from, &to)?;
        }
    }
    let mut environment: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(template.join("environment.json"))?)?;
    environment["run_id"] = format!("simulated-{number}").into();
    let engines = environment["engines"].as_array_mut().ok_or("no engines")?;
    for engine in engines {
        engine["device_name"] = format!("simulated device {}", number % 10).into();
    }
    std::fs::write(run.join("environment.json"), environment.to_string())?;
    Ok(run)
}
