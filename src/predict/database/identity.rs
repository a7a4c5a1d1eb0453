//! When two networks, or two runs, count as the same.

use std::fmt::Write;

use crate::network::{Direction, Network};
use crate::store::digest;

/// A hash of the layers: their operations, shapes and amounts of work. Names do not matter.
pub fn network_id(network: &Network) -> String {
    let mut text = String::new();
    for (index, layer) in network.layers.iter().enumerate() {
        let _ = write!(text, "{} {:?} {}", network.operation_name(index), layer.sources, layer.output);
        for &direction in Direction::ALL {
            let cost = network.cost(index, 1, direction, 1).unwrap_or_default();
            let _ = write!(text, " {} {}", cost.flops, cost.bytes);
        }
        text.push('\n');
    }
    digest([text.as_bytes()])
}

/// The network's name for people: its name, with the input and the outputs if they differ from the published ones. That of the model where it is none:
/// the synthetic engine's.
pub fn describe(network: &Network, model: &str) -> String {
    let (input, output) = (network.input(), network.output());
    match Network::default_input(&network.name) {
        _ if network.layers.len() < 2 => model.to_owned(),
        Ok((shape, outputs)) if shape == input && outputs == output.count() => network.name.clone(),
        _ => format!("{} at {input} to {}", network.name, output.count()),
    }
}
