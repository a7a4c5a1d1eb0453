//! Whole steps of every network against PyTorch, in float64. Expected values: `tests/fixtures/networks.json`, produced with
//! torch 2.15.0 by `scripts/fixtures/networks.py`, which builds the networks from Keras and torchvision and makes the
//! same parameters, data and dropout masks from the same seed.

use super::super::data::Batch;
use super::super::thread_team::by_three;
use super::super::training::Training;
#[path = "../../../../../../tests/fixtures/pytorch_case.rs"]
pub(crate) mod case;
use case::{PytorchCase, close, norm};

fn check(network: &str) {
    by_three(|| check_step(network));
}

fn check_step(network: &str) {
    let case = PytorchCase::read(network);
    let workload = case.workload();
    let batch = Batch::new(&workload);
    let mut training = Training::<f64>::new(workload.network.clone(), &workload.settings);
    for step in 0..case.losses.len() {
        case.check_loss(step, training.step(&batch.inputs, &batch.targets).unwrap().loss.unwrap());
        match step {
            0 => case.check_gradients(&training.computed().gradients),
            1 => case.check_updates(&training.computed().parameters),
            _ => {}
        }
    }
    for (index, layer) in workload.network.layers.iter().enumerate() {
        let Some(stats) = training.parameters().stats(index) else { continue };
        let (means, variances): (Vec<f64>, Vec<f64>) =
            stats.moments().iter().map(|moments| (moments.mean, moments.variance)).unzip();
        for (found, expected) in [means, variances].iter().zip(case.running[&layer.name]) {
            close(norm(found), expected, expected, &format!("{network}: {} running statistics", layer.name));
        }
    }
}

#[test]
fn steps_of_vgg_match_pytorch() {
    check("vgg16");
    check("vgg19");
}

#[test]
fn steps_of_mobilenet_match_pytorch() {
    check("mobilenet");
}

#[test]
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
