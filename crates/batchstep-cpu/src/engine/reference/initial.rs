//! The parameters and data that every engine starts from, by seed.

use super::array::Array;
use crate::engine::initial::glorot_limit;
use crate::engine::{Workload, data};
use crate::network::{Network, Shape};
use crate::random::{Purpose, Stream};
use crate::settings::{Examples, Loss};

/// For each layer its trainable tensors: weights from Glorot's uniform law, rounded to float32 because all engines
/// begin with these; `gamma` 1, and `bias` and `beta` 0.
pub fn parameters(network: &Network, seed: u64) -> Vec<Vec<Vec<f64>>> {
    let of_layer = |layer: usize| {
        let trainable = network.parameters_of(layer).into_iter().filter(|parameter| parameter.trainable);
        let initial = trainable.enumerate().map(|(number, parameter)| match parameter.name {
            "weight" => {
                let stream = Stream::new(seed, Purpose::Parameters, [layer as u64, number as u64]);
                let limit = glorot_limit(&parameter.dims);
                (0..parameter.count() as u64).map(|at| f64::from((2.0 * stream.uniform(at) - 1.0) * limit)).collect()
            }
            "gamma" => vec![1.0; parameter.count()],
            _ => vec![0.0; parameter.count()],
        });
        initial.collect()
    };
    (0..network.layers.len()).map(of_layer).collect()
}

/// Inputs, uniform on [0, 1), or points.
pub fn inputs(workload: &Workload) -> Array {
    if workload.settings.examples == Examples::Peaks {
        return given(workload, workload.network.input(), data::inputs(workload));
    }
    uniform(workload, Purpose::Inputs, workload.network.input())
}

/// Labels of equal probability, one-hot, for a categorical cross-entropy; else uniform on [0, 1); or heights.
pub fn targets(workload: &Workload) -> Array {
    let Workload { network, batch_size, settings } = workload;
    if settings.examples == Examples::Peaks {
        return given(workload, network.output(), data::targets(workload));
    }
    match settings.loss {
        Loss::MeanSquaredError | Loss::BinaryCrossEntropy => uniform(workload, Purpose::Targets, network.output()),
        Loss::CategoricalCrossEntropy => {
            let stream = Stream::new(settings.seed, Purpose::Targets, [0, 0]);
            let mut targets = Array::zeros(*batch_size, network.output());
            for n in 0..*batch_size {
                let label = stream.bits(n as u64) % targets.channels as u64;
                targets.values[n * targets.channels + label as usize] = 1.0;
            }
            targets
        }
    }
}

fn given(workload: &Workload, shape: Shape, values: Vec<f32>) -> Array {
    let mut array = Array::zeros(workload.batch_size, shape);
    array.values.iter_mut().zip(values).for_each(|(to, value)| *to = f64::from(value));
    array
}

fn uniform(workload: &Workload, purpose: Purpose, shape: Shape) -> Array {
    let stream = Stream::new(workload.settings.seed, purpose, [0, 0]);
    let mut array = Array::zeros(workload.batch_size, shape);
    array.values.iter_mut().enumerate().for_each(|(at, value)| *value = f64::from(stream.uniform(at as u64)));
    array
}
