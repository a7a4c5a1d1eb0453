//! Compares gradients with finite differences of the loss.

use std::sync::Arc;

use crate::engine::reference::array::Array;
use crate::engine::reference::pass::Pass;
use crate::engine::reference::{initial, loss};
use crate::engine::{Settings, Workload};
use crate::network::operators::operators;
use crate::network::{BatchNorm, Builder, Conv2d, Dense, Network, Operation, Padding, Shape};
use crate::settings::Loss;

const STEP: f64 = 1e-6;

fn loss_and_gradients(workload: &Workload, parameters: &[Vec<Vec<f64>>]) -> (f64, Vec<Vec<Vec<f64>>>) {
    let pass = Pass { network: &workload.network, parameters, seed: 3, step: 0 };
    let outputs = pass.forward(initial::inputs(workload));
    let output: &Array = &outputs[outputs.len() - 1];
    let (loss, dy) = loss::loss(workload.settings.loss, output, &initial::targets(workload));
    (loss, pass.backward(&outputs, dy))
}

/// Moves three numbers of every parameter a little up and down.
fn gradients_match_differences(network: Arc<Network>, loss: Loss) {
    let name = network.name.clone();
    let workload = Workload { network, batch_size: 3, settings: Settings { loss, seed: 3, ..Settings::default() } };
    let mut parameters = initial::parameters(&workload.network, 3);
    // Moves the parameters away from the rectifier's corner, at which a bias of 0 and a padding of 0 put it.
    parameters.iter_mut().flatten().flatten().enumerate().for_each(|(at, w)| *w += 0.01 * (at as f64).sin());
    let gradients = loss_and_gradients(&workload, &parameters).1;
    for layer in 0..gradients.len() {
        for number in 0..gradients[layer].len() {
            let count = parameters[layer][number].len();
            assert_eq!(gradients[layer][number].len(), count);
            for at in [0, count / 2, count - 1] {
                let mut moved = |by: f64| {
                    let before = parameters[layer][number][at];
                    parameters[layer][number][at] += by;
                    let loss = loss_and_gradients(&workload, &parameters).0;
                    parameters[layer][number][at] = before;
                    loss
                };
                let expected = (moved(STEP) - moved(-STEP)) / (2.0 * STEP);
                let found = gradients[layer][number][at];
                // The loss is near 1 and has rounding errors of 1e-16, which are divided by a step of 1e-6.
                let apart = (found - expected).abs();
                assert!(apart < 1e-8 + 1e-5 * expected.abs(), "{name} {layer} {number} {at}: {found}, {expected}");
            }
        }
    }
}

#[test]
fn gradients_of_every_operator_match_finite_differences() {
    for network in operators().unwrap() {
        gradients_match_differences(network, Loss::CategoricalCrossEntropy);
    }
}

#[test]
fn gradients_of_a_residual_connection_and_a_squared_error_match_finite_differences() {
    let each = Padding { top: 1, bottom: 1, left: 1, right: 1 };
    let mut b = Builder::new("residual", Shape::Maps { channels: 2, height: 5, width: 4 }).unwrap();
    let first = b.then("first", Conv2d { padding: each, ..Conv2d::square(3, 3) }).unwrap();
    b.then("norm", BatchNorm::default()).unwrap();
    let second = b.then("second", Conv2d { padding: each, bias: false, ..Conv2d::square(3, 3) }).unwrap();
    let sum = b.add("sum", Operation::Add, &[first, second]).unwrap();
    b.add("twice", Operation::Add, &[sum, sum]).unwrap();
    b.then("average", Operation::GlobalAveragePool).unwrap();
    b.then("dense", Dense { out_features: 2, bias: true }).unwrap();
    gradients_match_differences(Arc::new(b.finish().unwrap()), Loss::MeanSquaredError);
}
