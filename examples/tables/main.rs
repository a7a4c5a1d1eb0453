//! Makes the tables of the docs, and what they need: `cargo run --release --example tables -- NAME [ARGUMENT...]`. Each name is a file beside this
//! one, which says its arguments; `published_check` is a part of `published_grids`.

mod database_cost;
mod digit_folder;
mod forecast_error;
mod interference_share;
mod many_shards;
mod prediction_error;
mod published_check;
mod published_error;
mod published_grids;
mod steps_to_decide;
mod trust_simulation;

use std::error::Error;
use std::path::{Path, PathBuf};

use batchstep::predict::database::{self, Database, Outcome};

/// The arguments after the name.
fn arguments() -> impl Iterator<Item = String> {
    std::env::args().skip(2)
}

/// One of them, counted from 1.
fn argument(number: usize) -> Option<String> {
    arguments().nth(number - 1)
}

/// The most memory that this process has had, in bytes, as Linux counts it.
fn peak_bytes() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<f64>().ok()).unwrap_or(f64::NAN) * 1024.0
}

/// A database of these runs and tables; an error where one is refused.
fn collected(paths: &[PathBuf], folder: &Path) -> Result<Database, Box<dyn Error>> {
    let mut refused = Vec::new();
    database::collect(paths, folder, &mut |_, outcome| {
        if let Outcome::Refused(error) = outcome {
            refused.push(error.to_string());
        }
    })?;
    if refused.is_empty() { Ok(Database::open(folder)?) } else { Err(refused.join("\n").into()) }
}

fn main() -> Result<(), Box<dyn Error>> {
    match std::env::args().nth(1).unwrap_or_default().as_str() {
        "database_cost" => database_cost::run(),
        "digit_folder" => digit_folder::run(),
        "forecast_error" => forecast_error::run(),
        "interference_share" => {
            interference_share::run();
            Ok(())
        }
        "many_shards" => many_shards::run(),
        "prediction_error" => prediction_error::run(),
        "published_error" => published_error::run(),
        "published_grids" => published_grids::run(),
        "steps_to_decide" => Ok(steps_to_decide::run()?),
        "trust_simulation" => Ok(trust_simulation::run()?),
        other => Err(format!("no table is called `{other}`: they are the files of examples/tables").into()),
    }
}
