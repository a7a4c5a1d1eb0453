//! Whole steps of every network against PyTorch, in float64. Expected values: `tests/fixtures/networks.json`, produced with
//! torch 2.15.0 by `scripts/fixtures/networks.py`, which builds the networks from Keras and torchvision and makes the
//! same parameters, data and dropout masks from the same seed.

use super::super::autograd;
use super::super::data::Batch;
use super::super::loss::loss_gradient;
use super::super::masks::Masks;
use super::super::parameters::Parameters;
use super::super::thread_team::by_three;
use super::super::training::Training;
use super::*;
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
    case.check_gradients(&gradients(&workload, &batch));

    let mut training = Training::<f64>::new(workload.network.clone(), &workload.settings);
    for step in 0..case.losses.len() {
        if step == 2 {
            case.check_updates(&training.parameters().iter().map(<[f64]>::to_vec).collect::<Vec<_>>());
        }
        let loss = training.step(&batch.inputs, &batch.targets).unwrap().loss;
        case.check_loss(step, loss);
    }
    for (index, layer) in workload.network.layers.iter().enumerate() {
        let Some(stats) = training.parameters().stats(index) else { continue };
        let [mean, variance] = case.running[&layer.name];
        close(norm(&stats.mean()), mean, mean, &format!("{network}: {} running mean", layer.name));
        close(norm(&stats.variance()), variance, variance, &format!("{network}: {} running variance", layer.name));
    }
}

/// By a plain autograd, through the operators' own backward passes.
fn gradients(workload: &Workload, batch: &Batch<f64>) -> Vec<Vec<f64>> {
    let Workload { network, settings, batch_size } = workload;
    let parameters = Parameters::new(network, settings.seed);
    let masks = Some(Masks { seed: settings.seed, step: 0 });
    let outputs = autograd::forward(network, &parameters, &batch.inputs, masks).unwrap();
    let output = &outputs[outputs.len() - 1].values;
    let mut slope = vec![0.0; output.len()];
    loss_gradient(settings.loss, output, &batch.targets, *batch_size, &mut slope);
    autograd::backward(network, &parameters, &batch.inputs, masks, (&outputs, slope)).unwrap()
}

#[test]
fn steps_of_vgg16_match_pytorch() {
    check("vgg16");
}

#[test]
fn steps_of_vgg19_match_pytorch() {
    check("vgg19");
}

#[test]
fn steps_of_mobilenet_match_pytorch() {
    check("mobilenet");
}

#[test]
fn steps_of_resnet50_match_pytorch() {
    check("resnet50");
}

#[test]
fn steps_of_resnet50_v1_5_match_pytorch() {
    check("resnet50_v1_5");
}

#[test]
fn steps_of_mnist_cnn_with_its_dropout_match_pytorch() {
    check("mnist_cnn");
}

#[test]
fn steps_of_mlp_match_pytorch() {
    check("mlp");
}
