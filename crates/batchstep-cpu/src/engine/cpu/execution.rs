//! What was executed for each layer and direction.

use super::pass::Watch;
use super::training::Training;
use crate::engine::{LayerExecution, Workload};
use crate::network::{Direction, Operation};
use crate::stats::quantile::median;

/// Every layer of a workload in each of its directions, with the median of its times in `watches`, if any.
pub fn layers(workload: &Workload, training: &Training<f32>, watches: &[Watch]) -> Vec<LayerExecution> {
    let seconds = |index, direction| {
        let mut times: Vec<f64> = watches.iter().filter_map(|watch| watch.seconds(index, direction)).collect();
        (!times.is_empty()).then(|| median(&mut times))
    };
    let Workload { network, batch_size, .. } = workload;
    let directions = |index| Direction::ALL.into_iter().map(move |direction| (index, direction));
    (0..network.layers.len())
        .flat_map(directions)
        .filter_map(|(index, direction)| {
            let cost = network.cost(index, *batch_size, direction, size_of::<f32>())?;
            Some(LayerExecution {
                layer: network.layers[index].name.clone(),
                operation: network.operation_name(index).to_owned(),
                direction: direction.name(),
                algorithm: Some(algorithm(workload, training, index).to_owned()),
                workspace_bytes: None,
                math_mode: Some(training.math_mode(index).to_owned()),
                flops: cost.flops,
                bytes: cost.bytes,
                device_s: seconds(index, direction),
                kernel: None,
            })
        })
        .collect()
}

/// The algorithm of a layer: the convolution's own, a matrix product (`gemm`), or a plain loop (`direct`).
fn algorithm(workload: &Workload, training: &Training<f32>, index: usize) -> &'static str {
    match workload.network.layers[index].operation {
        Operation::Conv2d(_) => training.convolution(index).unwrap_or("direct"),
        Operation::Dense(_) => "gemm",
        _ => "direct",
    }
}
