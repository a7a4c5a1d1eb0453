//! Whole steps of every network against PyTorch, in float64. Expected values: `tests/fixtures/networks.json`, produced with
//! torch 2.15.0 by `scripts/fixtures/networks.py`, which builds the networks from Keras and torchvision and makes the
//! same parameters, data and dropout masks from the same seed.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;

use super::super::autograd;
use super::super::data::Batch;
use super::super::loss::loss_gradient;
use super::super::masks::Masks;
use super::super::parameters::Parameters;
use super::super::thread_team::by_three;
use super::super::training::Training;
use super::*;

/// One network, and what PyTorch computed for it.
#[derive(Deserialize)]
pub(in crate::engine) struct PytorchCase {
    network: String,
    input: Vec<usize>,
    classes: usize,
    batch: usize,
    seed: u64,
    loss: String,
    optimizer: String,
    learning_rate: f64,
    /// The losses before, after one, and after two updates.
    losses: [f64; 3],
    parameters: BTreeMap<String, ExpectedParameter>,
    /// L2 norms of mean and variance after three forward passes.
    running: BTreeMap<String, [f64; 2]>,
}

#[derive(Deserialize)]
struct ExpectedParameter {
    /// The norm of the first step's gradient.
    gradient_norm: f64,
    gradient: [f64; 2],
    /// The parameter after two updates.
    updated: [f64; 2],
}

impl PytorchCase {
    pub fn read(network: &str) -> Self {
        let cases: Vec<PytorchCase> =
            serde_json::from_str(include_str!("../../../../tests/fixtures/networks.json")).unwrap();
        cases.into_iter().find(|case| case.network == network).unwrap()
    }

    fn largest_gradient(&self) -> f64 {
        self.parameters.values().fold(0.0, |largest, expected| largest.max(expected.gradient_norm))
    }

    pub fn workload(&self) -> Workload {
        let input = match self.input[..] {
            [channels, height, width] => Shape::Maps { channels, height, width },
            _ => Shape::Flat(self.input[0]),
        };
        let settings = Settings {
            optimizer: Optimizer::from_name(&self.optimizer).unwrap(),
            learning_rate: self.learning_rate,
            loss: Loss::from_name(&self.loss).unwrap(),
            seed: self.seed,
            ..settings()
        };
        let network = Arc::new(Network::by_name(&self.network, input, self.classes).unwrap());
        Workload { network, batch_size: self.batch, settings }
    }

    /// The loss of a step, from 0.
    pub fn check_loss(&self, step: usize, loss: f64) {
        let expected = self.losses[step];
        close(loss, expected, expected.abs(), &format!("{}: loss {step}", self.network));
    }

    /// The first step's gradients, in the order of the network's trainable parameters.
    pub fn check_gradients(&self, gradients: &[Vec<f64>]) {
        let largest = self.largest_gradient();
        for (key, gradient) in self.keys().into_iter().zip(gradients) {
            let expected = &self.parameters[&key];
            // A bias before a batch norm has a gradient of only rounding noise, so the largest gradient is part of the
            // scale.
            let scale = expected.gradient_norm + 1e-6 * largest;
            close(norm(gradient), expected.gradient_norm, scale, &format!("{}: {key} gradient", self.network));
            for (value, expected) in samples(gradient).into_iter().zip(expected.gradient) {
                close(value, expected, scale, &format!("{}: {key} gradient", self.network));
            }
        }
    }

    /// The parameters after two updates, in the same order.
    pub fn check_updates(&self, parameters: &[Vec<f64>]) {
        let keys = self.keys();
        assert_eq!([keys.len(), parameters.len()], [self.parameters.len(); 2], "{}: parameters", self.network);
        let largest = self.largest_gradient();
        for (key, parameter) in keys.into_iter().zip(parameters) {
            let expected = &self.parameters[&key];
            // Adam turns gradients of rounding noise into steps of up to the learning rate, so such parameters are only
            // checked to be near 0.
            let floor = if expected.gradient_norm < 1e-12 * largest { 1.0 } else { 1e-3 };
            for (value, expected) in samples(parameter).into_iter().zip(expected.updated) {
                close(value, expected, expected.abs() + floor, &format!("{}: {key} after two updates", self.network));
            }
        }
    }

    /// `layer/name` of every trainable parameter.
    fn keys(&self) -> Vec<String> {
        let network = self.workload().network;
        let trainable = network.parameters().filter(|(_, parameter)| parameter.trainable);
        trainable.map(|(layer, parameter)| format!("{}/{}", network.layers[layer].name, parameter.name)).collect()
    }
}

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

fn norm(values: &[f64]) -> f64 {
    values.iter().map(|value| value * value).sum::<f64>().sqrt()
}

fn samples(values: &[f64]) -> [f64; 2] {
    [values[values.len() / 3], values[2 * values.len() / 3]]
}

fn close(value: f64, expected: f64, scale: f64, what: &str) {
    assert!((value - expected).abs() <= 1e-8 * scale, "{what}: {value}, and PyTorch has {expected}");
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
