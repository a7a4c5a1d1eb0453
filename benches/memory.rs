//! The most memory that a training step takes, by the CPU engine and by PyTorch in the same layout and precision.
//!
//! `cargo bench --bench memory [-- BATCH_SIZES [THREADS]]`: 1,8 and 2. PyTorch is the python3 on the PATH, or what BATCHSTEP_PYTHON names.
//!
//! Each cell is a separate process, which first runs a step of a tiny network. A figure is the largest resident size
//! (proc(5), VmHWM and clear_refs) while the step is prepared and run five times, minus the resident size before. Only
//! Linux reports it.

use std::error::Error;
use std::fs;
use std::process::Command;
use std::sync::Arc;

use batchstep::engine::cpu::CpuEngine;
use batchstep::engine::torch::TorchEngine;
use batchstep::engine::{Engine, Workload};
use batchstep::network::{Network, Shape};
use batchstep::settings::*;

/// The program's allocator, since it is part of what is measured.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const STEPS: usize = 5;
/// Set in the processes of single cells.
const CELL: &str = "BATCHSTEP_BENCH_CELL";
const LARGE: Shape = Shape::Maps { channels: 3, height: 224, width: 224 };
const SMALL: Shape = Shape::Maps { channels: 3, height: 32, width: 32 };
const NETWORKS: [(&str, Shape, usize); 8] = [
    ("vgg16", LARGE, 1000),
    ("mobilenet", LARGE, 1000),
    ("resnet50", LARGE, 1000),
    ("vgg16", SMALL, 10),
    ("mobilenet", SMALL, 10),
    ("resnet50", SMALL, 10),
    ("mnist_cnn", Shape::Maps { channels: 1, height: 28, width: 28 }, 10),
    ("mlp", Shape::Flat(2), 1),
];

fn workload(
    (name, input, classes): (&str, Shape, usize),
    batch_size: usize,
    threads: usize,
) -> Result<Workload, Box<dyn Error>> {
    let loss = if classes == 1 { Loss::MeanSquaredError } else { Loss::CategoricalCrossEntropy };
    let network = Arc::new(Network::by_name(name, input, classes)?);
    let settings = Settings {
        optimizer: Optimizer::Sgd,
        learning_rate: 0.001,
        loss,
        precision: Precision::Fp32,
        threads: Some(threads),
        ..Settings::default()
    };
    Ok(Workload { network, batch_size, settings })
}

/// Megabytes of this kind that a process holds.
fn megabytes(process: u32, kind: &str) -> Result<f64, Box<dyn Error>> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(kind)?.strip_prefix(':')).ok_or("not in proc(5)")?;
    Ok(line.trim().trim_end_matches("kB").trim_end().parse::<f64>()? / 1e3)
}

/// PyTorch computes in a separate process.
fn child() -> Result<u32, Box<dyn Error>> {
    let of_thread = |thread: fs::DirEntry| fs::read_to_string(thread.path().join("children")).unwrap_or_default();
    let children: String = fs::read_dir("/proc/self/task")?.flatten().map(of_thread).collect();
    Ok(children.split_whitespace().next().ok_or("PyTorch has no process")?.parse()?)
}

/// Prints the memory of one cell, in MB.
fn cell(engine: &str, network: usize, batch_size: usize, threads: usize) -> Result<(), Box<dyn Error>> {
    let (mut engine, process): (Box<dyn Engine>, u32) = match engine {
        "cpu" => (Box::new(CpuEngine::cpu(None)), std::process::id()),
        _ => (Box::new(TorchEngine::open("cpu")?), child()?),
    };
    engine.prepare(&workload(("mlp", Shape::Flat(2), 1), 1, threads)?)?.run()?;
    fs::write(format!("/proc/{process}/clear_refs"), "5")?;
    let before = megabytes(process, "VmRSS")?;
    let mut step = engine.prepare(&workload(NETWORKS[network], batch_size, threads)?)?;
    for _ in 0..STEPS {
        step.run()?;
    }
    println!("{}", megabytes(process, "VmHWM")? - before);
    Ok(())
}

/// The memory of one cell, measured in a separate process.
fn of_process(engine: &str, network: usize, batch_size: usize, threads: usize) -> Result<f64, Box<dyn Error>> {
    let cell = format!("{engine} {network} {batch_size} {threads}");
    let output = Command::new(std::env::current_exe()?).env(CELL, cell).output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    Ok(String::from_utf8(output.stdout)?.trim().parse()?)
}

fn main() -> Result<(), Box<dyn Error>> {
    if let Ok(given) = std::env::var(CELL) {
        let [engine, network, batch_size, threads] = given.split(' ').collect::<Vec<_>>()[..] else {
            return Err(given.into());
        };
        return cell(engine, network.parse()?, batch_size.parse()?, threads.parse()?);
    }
    // `cargo bench` passes `--bench` on.
    let given: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let argument = |at: usize, default: &str| given.get(at).map_or(default.to_owned(), String::clone);
    let batches = argument(0, "1,8").split(',').map(str::parse).collect::<Result<Vec<usize>, _>>()?;
    let threads = argument(1, "2").parse()?;
    println!("{:<26} {:>6} {:>14} {:>12} {:>6}", "network", "batch", "batchstep, MB", "PyTorch, MB", "ratio");
    for (index, (name, input, _)) in NETWORKS.iter().enumerate() {
        for &batch_size in &batches {
            let own = of_process("cpu", index, batch_size, threads)?;
            let other = of_process("torch", index, batch_size, threads)?;
            let network = format!("{name} {input}");
            println!("{network:<26} {batch_size:>6} {own:>14.1} {other:>12.1} {:>6.2}", own / other);
        }
    }
    Ok(())
}
