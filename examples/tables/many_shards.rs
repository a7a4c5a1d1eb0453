//! What many shards cost: the folders of a large experiment, made by the synthetic engine, and the time and memory of merging them.
//!
//! ```text
//! cargo run --release --example tables -- many_shards /tmp/shards 1000 blocks    # 1,000 machines, each with one block of 70 batch sizes
//! cargo run --release --example tables -- many_shards /tmp/shards 1000 cells     # 10,000 cells, ten on each of 1,000 machines, 30 blocks
//! ```
//!
//! Nothing sleeps: a shard is measured in the time that its files take.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use crate::{arguments, peak_bytes};
use batchstep::engine::open::{DeviceChoice, Engines};
use batchstep::fleet::merge::merge;
use batchstep::run::environment::RunEnvironment;
use batchstep::run::{self, History, Observer, RowContext, Sweep};
use batchstep::spec::Experiment;
use batchstep::spec::plan::Plan;
use batchstep::store::{Begin, RunDirectory, files};

struct Silent;

impl Observer for Silent {
    fn warn(&mut self, message: &str) {
        eprintln!("{message}");
    }
}

pub fn run() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = arguments().collect();
    let [folder, count, by] = &arguments[..] else {
        return Err("give a folder, a number of shards, and blocks or cells".into());
    };
    let (folder, count) = (PathBuf::from(folder), count.parse::<usize>()?);
    let begun = Instant::now();
    let shards: Vec<PathBuf> =
        (1..=count).map(|number| measure(&folder, &spec(by, number, count))).collect::<Result<_, _>>()?;
    println!("{count} shards measured in {:.0} s", begun.elapsed().as_secs_f64());
    let sizes = shards.iter().map(|shard| Size::of(shard)).collect::<Result<Vec<_>, _>>()?;
    println!(
        "each has at most {} files, {:.0} kB",
        sizes.iter().map(|size| size.files).max().unwrap_or(0),
        sizes.iter().map(|size| size.bytes).max().unwrap_or(0) as f64 / 1e3
    );
    forget_peak();
    let begun = Instant::now();
    let merged = merge(&folder.join("merged"), &shards)?;
    println!(
        "merge: {} rows, {} visits, {} cells in {:.1} s, at most {:.2} GB of memory, {:.0} MB of files",
        merged.rows,
        merged.statement.visits(),
        merged.cells,
        begun.elapsed().as_secs_f64(),
        peak_bytes() / 1e9,
        Size::of(&folder.join("merged"))?.bytes as f64 / 1e6
    );
    println!("batchstep jumps {}", folder.join("merged").display());
    Ok(())
}

/// By cells, ten batch sizes for each shard: the number of threads makes the series, which the synthetic engine does not care about.
fn spec(by: &str, number: usize, count: usize) -> String {
    let (sizes, series, blocks) = match by {
        "cells" => (10, count, 30),
        _ => (70, 1, count),
    };
    let threads: Vec<String> = (1..=series).map(|threads| threads.to_string()).collect();
    format!(
        "version = 1\nname = \"many\"\n[sweep]\nbatch_size = \"1..={sizes}\"\n[engine]\nname = \"synthetic\"\nthreads = [{}]\n[synthetic]\n\
         jumps = [{{ after = 5, size = \"2ms\" }}]\nnoise = {{ sd = \"0.5%\", visits = \"0.5%\" }}\nmachines = {{ sd = \"10%\" }}\n\
         [measure]\nblocks = {{ min = {blocks}, max = {blocks} }}\nsteps_per_visit = 5\nshard = \"{number}/{count}\"\nshard_by = \"{by}\"\n",
        threads.join(", ")
    )
}

fn measure(folder: &Path, spec: &str) -> Result<PathBuf, Box<dyn Error>> {
    let experiment = Experiment::parse(spec, "many.toml")?;
    let own = experiment.own_part()?;
    let plan = Plan::new(&own)?;
    let path = folder.join(experiment.run_name());
    let mut engines = Engines::open(&own.engine.name, DeviceChoice::Cpu, own.truth().as_ref())?;
    let mut device = engines.open_device();
    let opened = RunDirectory::open(&path, &experiment.to_toml(), Begin::Anew)?;
    let environment = RunEnvironment::begin(&experiment.run_name(), &plan, &mut engines, device.as_mut());
    opened.directory.write_text(files::ENVIRONMENT, &environment.to_json())?;
    let facts = RowContext::new(environment.run_id, &plan, &mut engines)?.with_node(experiment.run_name());
    let sweep = Sweep {
        plan: &plan,
        measure: &own.measure,
        facts,
        engines: &mut engines,
        device: device.as_mut(),
        witness: None,
        sink: &opened.directory,
        observer: &mut Silent,
        interrupted: &AtomicBool::new(false),
        hung: &|_| (),
    };
    let outcome = run::run(sweep, History::new(&plan))?;
    assert!(opened.directory.seal(&outcome, &outcome.cells, outcome.complete)?.notices.is_empty());
    Ok(path)
}

/// What lies in a folder.
struct Size {
    files: usize,
    bytes: u64,
}

impl Size {
    fn of(folder: &Path) -> Result<Self, Box<dyn Error>> {
        let mut size = Self { files: 0, bytes: 0 };
        for entry in folder.read_dir()? {
            size.files += 1;
            size.bytes += entry?.metadata()?.len();
        }
        Ok(size)
    }
}

/// The kernel's note of the largest resident size begins anew; proc_pid_clear_refs(5).
fn forget_peak() {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}
