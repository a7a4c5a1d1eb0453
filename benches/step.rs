//! How long a training step of the CPU engine takes: milliseconds of step, forward, backward and update, each the median
//! of its steps, for every batch size in turn, round by round, so that a slow minute of the machine affects all of
//! them.
//!
//! `cargo bench --bench step -- vgg16 3x32x32 1,8,17,64 [threads] [rounds]`

use std::error::Error;
use std::sync::Arc;

use batchstep::engine::cpu::CpuEngine;
use batchstep::engine::{Engine, StepTimes, Workload};
use batchstep::network::{Network, Shape};
use batchstep::settings::*;
use batchstep::stats::quantile::median;

/// The program's allocator, since it is part of what is measured.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Steps of a visit; the first is a warm-up.
const STEPS: usize = 4;

fn settings(loss: Loss, threads: usize) -> Settings {
    Settings {
        optimizer: Optimizer::Sgd,
        learning_rate: 0.001,
        loss,
        precision: Precision::Fp32,
        threads: Some(threads),
        ..Settings::default()
    }
}

/// `3x32x32`, or `2`.
fn shape(text: &str) -> Result<Shape, Box<dyn Error>> {
    match text.split('x').map(str::parse).collect::<Result<Vec<usize>, _>>()?[..] {
        [channels, height, width] => Ok(Shape::Maps { channels, height, width }),
        [features] => Ok(Shape::Flat(features)),
        _ => Err("an input is 3x32x32 or 2".into()),
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let given: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let argument = |at: usize, default: &str| given.get(at).map_or(default.to_owned(), String::clone);
    let input = shape(&argument(1, "3x32x32"))?;
    let batches = argument(2, "1,8,17,64").split(',').map(str::parse).collect::<Result<Vec<usize>, _>>()?;
    let (threads, rounds): (usize, usize) = (argument(3, "2").parse()?, argument(4, "3").parse()?);
    let (loss, classes) = match input {
        Shape::Maps { .. } => (Loss::CategoricalCrossEntropy, 10),
        Shape::Flat(_) => (Loss::MeanSquaredError, 1),
    };
    let network = Arc::new(Network::by_name(&argument(0, "vgg16"), input, classes)?);
    let mut engine = CpuEngine::cpu(None);
    let mut times: Vec<Vec<StepTimes>> = vec![Vec::new(); batches.len()];
    for _ in 0..rounds {
        for (&batch_size, times) in batches.iter().zip(&mut times) {
            let workload = Workload { network: network.clone(), batch_size, settings: settings(loss, threads) };
            let mut step = engine.prepare(&workload)?;
            step.run()?;
            times.extend((0..STEPS).map(|_| step.run()).collect::<Result<Vec<_>, _>>()?);
        }
    }
    println!("{:>6} {:>10} {:>10} {:>10} {:>10}", "batch", "step", "forward", "backward", "update");
    for (batch, times) in batches.iter().zip(&times) {
        let phase = |seconds: fn(&StepTimes) -> Option<f64>| {
            1e3 * median(&mut times.iter().filter_map(seconds).collect::<Vec<_>>())
        };
        let step = phase(|times| Some(times.step_s));
        let (forward, backward) = (phase(|times| times.forward_s), phase(|times| times.backward_s));
        println!("{batch:>6} {step:>10.3} {forward:>10.3} {backward:>10.3} {:>10.3}", phase(|times| times.optimizer_s));
    }
    Ok(())
}
