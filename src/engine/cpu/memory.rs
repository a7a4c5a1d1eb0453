//! How much memory a step takes.

use super::optimizer;
use crate::engine::{Workload, memory};
use crate::error::Result;
use crate::network::Network;
use crate::settings::DataPath;

/// A reserve for thread stacks, scratch buffers and the allocator's overhead.
const SLACK: u64 = 64 << 20;

/// Refuses a workload that does not fit in memory, when `held` bytes of what it takes are in this process's hands already.
///
/// # Errors
/// As [`memory::check`].
pub fn check(workload: &Workload, bytes_per_scalar: u64, held: u64) -> Result<()> {
    memory::check(step_bytes(workload, bytes_per_scalar).saturating_sub(held))
}

/// The peak of a step in this engine: the network's own estimate, which counts outputs of rectifiers that this engine keeps
/// in the place of their sources, and room for a copy of one gradient in another order. A sixth on top covers slots that are
/// larger than the gradients in them and what the allocator keeps. VGG16 with SGD and batch size 1 took 0.32 GiB at 3x32x32,
/// of which 0.25 are parameters and their gradients, and 1.17 GiB at 3x224x224, of which 1.03 are.
fn step_bytes(workload: &Workload, bytes_per_scalar: u64) -> u64 {
    let Workload { network, batch_size, settings } = workload;
    let copies = optimizer::state_copies(settings.optimizer);
    let copy = largest_activation(network).saturating_mul(*batch_size as u64).saturating_mul(4);
    let host = match settings.data {
        DataPath::Resident => 0,
        _ => (network.input().count() as u64).saturating_mul(4 * *batch_size as u64),
    };
    let single = network.training_bytes(*batch_size, copies).saturating_add(copy).saturating_add(host);
    let bytes = single.saturating_mul(bytes_per_scalar / 4);
    bytes.saturating_add(bytes / 6).saturating_add(SLACK)
}

fn largest_activation(network: &Network) -> u64 {
    network.layers.iter().map(|layer| layer.output.count() as u64).max().unwrap_or(0)
}
