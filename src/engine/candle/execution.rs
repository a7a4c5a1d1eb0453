//! What was executed for each layer and direction.

use crate::engine::{LayerExecution, Workload};
use crate::network::{Direction, Network, Operation};

/// Every layer of a workload in every direction in which it works.
pub fn layers(workload: &Workload, bytes_per_scalar: usize) -> Vec<LayerExecution> {
    let Workload { network, batch_size, .. } = workload;
    let directions = |index| Direction::ALL.into_iter().map(move |direction| (index, direction));
    (0..network.layers.len())
        .flat_map(directions)
        .filter_map(|(index, direction)| {
            let cost = network.cost(index, *batch_size, direction, bytes_per_scalar)?;
            Some(LayerExecution {
                layer: network.layers[index].name.clone(),
                operation: network.operation_name(index).to_owned(),
                direction: direction.name(),
                algorithm: Some(algorithm(network, index).to_owned()),
                workspace_bytes: None,
                math_mode: Some(if bytes_per_scalar == 8 { "fp64" } else { "fp32" }.to_owned()),
                flops: cost.flops,
                bytes: cost.bytes,
                gpu_s: None,
            })
        })
        .collect()
}

/// The way in which the operators of [`super::op`] compute a layer, the same in all directions: a matrix product (`gemm`),
/// one of windows that were copied into columns, tile by tile (`im2col_gemm`; 1x1 windows too), or a plain
/// loop (`direct`).
fn algorithm(network: &Network, index: usize) -> &'static str {
    match network.layers[index].operation {
        Operation::Conv2d(_) if network.operation_name(index) == "depthwise_conv2d" => "direct",
        Operation::Conv2d(_) => "im2col_gemm",
        Operation::Dense(_) => "gemm",
        _ => "direct",
    }
}
