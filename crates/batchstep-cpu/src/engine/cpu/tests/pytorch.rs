//! Whole steps of every network against PyTorch, in float64. Expected values: `tests/fixtures/networks.json`, produced with
//! torch 2.15.0 by `scripts/fixtures/networks.py`, which builds the networks from Keras and torchvision and makes the
//! same parameters, data and dropout masks from the same seed.

use super::super::data::Batch;
use super::super::thread_team::by_three;
use super::super::training::Training;
use crate::engine::reference::ReferenceEngine;
use crate::engine::{Computed, Engine, Workload};
#[path = "../../../../../../tests/fixtures/pytorch_case.rs"]
mod case;
use case::{PytorchCase, close, norm};

/// Three steps of the reference and of the CPU engine.
fn check(network: &str) {
    let case = PytorchCase::read(network);
    let workload = case.workload();
    let mut reference = ReferenceEngine::default().prepare(&workload).unwrap();
    follow(&case, || (reference.run().unwrap().loss.unwrap(), reference.computed().unwrap().unwrap()));
    by_three(|| check_cpu(network, &case, &workload));
}

/// Compares the loss and the results of each step.
fn follow(case: &PytorchCase, mut step: impl FnMut() -> (f64, Computed)) {
    for number in 0..case.losses.len() {
        let (loss, computed) = step();
        case.check_loss(number, loss);
        match number {
            0 => case.check_gradients(&computed.gradients),
            1 => case.check_updates(&computed.parameters),
            _ => {}
        }
    }
}

fn check_cpu(network: &str, case: &PytorchCase, workload: &Workload) {
    let batch = Batch::new(workload);
    let mut training = Training::<f64>::new(workload.network.clone(), &workload.settings);
    follow(case, || {
        let loss = training.step(&batch.inputs, &batch.targets).unwrap().loss.unwrap();
        (loss, training.computed())
    });
    for (index, layer) in workload.network.layers.iter().enumerate() {
        let Some(stats) = training.parameters.stats(index) else { continue };
        let (means, variances): (Vec<f64>, Vec<f64>) =
            stats.0.iter().map(|moments| (moments.mean, moments.variance)).unzip();
        for (found, expected) in [means, variances].iter().zip(case.running[&layer.name]) {
            close(norm(found), expected, expected, &format!("{network}: {} running statistics", layer.name));
        }
    }
}

#[test]
#[ignore = "slow"]
fn steps_of_vgg_match_pytorch() {
    check("vgg16");
    check("vgg19");
}

#[test]
fn steps_of_mobilenet_match_pytorch() {
    check("mobilenet");
}

#[test]
#[ignore = "slow"]
fn steps_of_resnet50_match_pytorch() {
    check("resnet50");
    check("resnet50_v1_5");
}

/// One of them has dropout.
#[test]
fn steps_of_the_small_networks_match_pytorch() {
    check("mnist_cnn");
    check("mlp");
}
