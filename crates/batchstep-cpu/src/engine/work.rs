//! The work of each layer, for engines whose libraries do not report their algorithms.

use super::{LayerExecution, Workload};
use crate::network::Direction;
use crate::settings::Precision;

/// Every layer of a workload in every direction in which it works.
pub fn layers(workload: &Workload) -> Vec<LayerExecution> {
    let Workload { network, batch_size, settings } = workload;
    let bytes_per_scalar = match settings.precision {
        Precision::Fp32 | Precision::Tf32 => 4,
        Precision::Bf16 | Precision::Fp16 => 2,
    };
    let places = (0..network.layers.len()).flat_map(|index| Direction::ALL.map(|direction| (index, direction)));
    let execution = |(index, direction): (usize, Direction)| {
        let cost = network.cost(index, *batch_size, direction, bytes_per_scalar)?;
        Some(LayerExecution {
            layer: network.layers[index].name.clone(),
            operation: network.operation_name(index).to_owned(),
            direction: direction.name(),
            algorithm: None,
            workspace_bytes: None,
            math_mode: Some(settings.precision.name().to_owned()),
            flops: cost.flops,
            bytes: cost.bytes,
            device_s: None,
            kernel: None,
        })
    };
    places.filter_map(execution).collect()
}
