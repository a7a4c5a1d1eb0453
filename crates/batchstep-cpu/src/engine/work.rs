//! The work of each layer, for engines whose libraries do not report their algorithms.

use super::{LayerExecution, Workload};
use crate::network::Direction;
use crate::settings::Precision;

/// Every layer of a workload in every direction in which it works.
pub fn layers(workload: &Workload) -> Vec<LayerExecution> {
    let bytes_per_scalar = match workload.settings.precision {
        Precision::Fp32 | Precision::Tf32 => 4,
        Precision::Bf16 | Precision::Fp16 => 2,
    };
    layers_with(workload, bytes_per_scalar, |_, _, layer| layer)
}

/// The same with what `known` adds, where all tensors are of `bytes_per_scalar`.
pub fn layers_with(
    workload: &Workload,
    bytes_per_scalar: usize,
    known: impl Fn(usize, Direction, LayerExecution) -> LayerExecution,
) -> Vec<LayerExecution> {
    let Workload { network, batch_size, settings } = workload;
    let of_layer = |index| Direction::ALL.iter().map(move |&direction| (index, direction));
    let execution = |(index, direction): (usize, Direction)| {
        let cost = network.cost(index, *batch_size, direction, bytes_per_scalar)?;
        let layer = LayerExecution {
            layer: network.layers[index].name.clone(),
            operation: network.operation_name(index).to_owned(),
            direction: direction.name(),
            math_mode: Some(settings.precision.name().to_owned()),
            flops: cost.flops,
            bytes: cost.bytes,
            ..LayerExecution::default()
        };
        Some(known(index, direction, layer))
    };
    (0..network.layers.len()).flat_map(of_layer).filter_map(execution).collect()
}
