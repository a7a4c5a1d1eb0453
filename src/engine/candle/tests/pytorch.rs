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
#[ignore = "slow"]
fn steps_of_every_network_match_pytorch() {
    for network in ["vgg16", "mobilenet", "mnist_cnn", "mlp"] {
        check(network, 3);
    }
    for network in ["vgg19", "resnet50", "resnet50_v1_5"] {
        check(network, 1);
    }
}
