//! Compares whole steps of every network with PyTorch (`tests/fixtures/networks.json`).

use crate::engine::Engine;
use crate::engine::cpu::tests::pytorch::case::PytorchCase;
use crate::engine::reference::ReferenceEngine;

fn check(network: &str) {
    let case = PytorchCase::read(network);
    let mut step = ReferenceEngine::default().prepare(&case.workload()).unwrap();
    let mut run = |number| {
        case.check_loss(number, step.run().unwrap().loss.unwrap());
        step.computed().unwrap().unwrap()
    };
    case.check_gradients(&run(0).gradients);
    case.check_updates(&run(1).parameters);
    run(2);
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

#[test]
fn steps_of_the_small_networks_match_pytorch() {
    check("mnist_cnn");
    check("mlp");
}
