//! The parameters and data that every engine starts from, by seed, in float32 as all engines have them.

use super::array::Array;
use crate::engine::Workload;
use crate::network::data;
use crate::network::initial::Initial;
use crate::network::{Network, Shape};

/// For each layer its trainable tensors.
pub fn parameters(network: &Network, seed: u64) -> Vec<Vec<Vec<f64>>> {
    let of_layer = |layer: usize| {
        let initial = network.trainable_of(layer).enumerate().map(|(number, parameter)| {
            let initial = Initial::of(&parameter, seed, layer, number);
            (0..parameter.count() as u64).map(|at| f64::from(initial.value(at))).collect()
        });
        initial.collect()
    };
    (0..network.layers.len()).map(of_layer).collect()
}

pub fn inputs(workload: &Workload) -> Array {
    array(workload, workload.network.input(), data::inputs(workload))
}

pub fn targets(workload: &Workload) -> Array {
    array(workload, workload.network.output(), data::targets(workload))
}

fn array(workload: &Workload, shape: Shape, values: Vec<f32>) -> Array {
    Array { values: values.into_iter().map(f64::from).collect(), ..Array::zeros(workload.batch_size, shape) }
}
