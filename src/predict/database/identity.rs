//! When two networks, or two runs, count as the same.

use std::fmt::Write;

use crate::network::{Direction, Network};

/// FNV-1a with 64 bits, by the description of Fowler, Noll and Vo (www.isthe.com/chongo/tech/comp/fnv); over several
/// pieces in a row.
pub(super) fn hash<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> String {
    let step = |state: u64, byte: &u8| (state ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    let state = pieces.into_iter().flatten().fold(0xcbf2_9ce4_8422_2325, step);
    format!("{state:016x}")
}

/// A hash of the layers: their operations, shapes and amounts of work. Names do not matter.
pub fn network_id(network: &Network) -> String {
    let mut text = String::new();
    for (index, layer) in network.layers.iter().enumerate() {
        let _ = write!(text, "{} {:?} {}", network.operation_name(index), layer.sources, layer.output);
        for direction in Direction::ALL {
            let cost = network.cost(index, 1, direction, 1).unwrap_or_default();
            let _ = write!(text, " {} {}", cost.flops, cost.bytes);
        }
        text.push('\n');
    }
    hash([text.as_bytes()])
}

/// The network's name for people: its name, with the input and the outputs if they differ from the published ones.
pub fn describe(network: &Network) -> String {
    let (input, output) = (network.input(), network.output());
    match Network::default_input(&network.name) {
        Ok((shape, outputs)) if shape == input && outputs == output.count() => network.name.clone(),
        _ => format!("{} at {input} to {}", network.name, output.count()),
    }
}
