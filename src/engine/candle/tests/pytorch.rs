//! Whole steps of every network against PyTorch, in float64. Only one step, if another network has the same operators in three.

use super::*;
#[path = "../../../../tests/fixtures/pytorch_case.rs"]
mod case;
use case::PytorchCase;

fn check(network: &str, steps: usize) {
    let case = PytorchCase::read(network);
    let mut step = CandleEngine::cpu().in_double_precision().prepare(&case.workload()).unwrap();
    let mut run = |number| {
        case.check_loss(number, step.run().unwrap().loss.unwrap());
        step.computed().unwrap().unwrap()
    };
    case.check_gradients(&run(0).gradients);
    if steps == 3 {
        case.check_updates(&run(1).parameters);
        run(2);
    }
}

#[test]
fn steps_of_vgg16_match_pytorch() {
    check("vgg16", 3);
}

#[test]
fn steps_of_vgg19_match_pytorch() {
    check("vgg19", 1);
}

#[test]
fn steps_of_mobilenet_match_pytorch() {
    check("mobilenet", 3);
}

#[test]
fn steps_of_resnet50_match_pytorch() {
    check("resnet50", 1);
}

#[test]
fn steps_of_resnet50_v1_5_match_pytorch() {
    check("resnet50_v1_5", 1);
}

#[test]
fn steps_of_mnist_cnn_match_pytorch() {
    check("mnist_cnn", 3);
}

#[test]
fn steps_of_mlp_match_pytorch() {
    check("mlp", 3);
}
