//! How much memory is free, so that a cell that does not fit is refused before the system kills the process.

use super::Workload;
use crate::device::free_memory;
use crate::error::{Error, Kind, Result};
use crate::network::Network;
use crate::settings::DataPath;

/// A reserve for thread stacks, scratch buffers and the allocator's overhead.
pub const SLACK: u64 = 64 << 20;

/// Refuses a request for `needed` further bytes if they are not free. If the system does not report free memory,
/// nothing is refused. `what` begins the message: `the step needs`.
///
/// # Errors
/// [`Kind::OutOfMemory`], with both numbers.
pub fn check(what: &str, needed: u64) -> Result<()> {
    match free_memory::bytes() {
        Some(free) if needed > free => Err(refusal(what, needed, free)),
        _ => Ok(()),
    }
}

/// Refuses a workload whose step does not fit in memory, when this process already holds `held` bytes of what it needs.
///
/// # Errors
/// As [`check`].
pub fn check_step(workload: &Workload, bytes_per_scalar: u64, held: u64) -> Result<()> {
    check("the step needs", step_bytes(workload, bytes_per_scalar).saturating_sub(held))
}

/// The peak memory of a step: the network's own estimate, and room for a copy of one gradient in another order. The
/// estimate also counts outputs of rectifiers, which the CPU engine stores in place of their sources. An extra sixth
/// covers slots that are larger than their gradients, and memory that the allocator keeps. On the CPU engine VGG16 with
/// SGD and batch size 1 took 0.32 GiB at 3x32x32, including 0.25 for parameters and their gradients, and 1.17 GiB at
/// 3x224x224, including 1.03.
pub fn step_bytes(workload: &Workload, bytes_per_scalar: u64) -> u64 {
    let Workload { network, batch_size, settings } = workload;
    let copies = settings.optimizer.state_copies();
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

fn refusal(what: &str, needed: u64, free: u64) -> Error {
    let gib = |bytes: u64| bytes as f64 / (1u64 << 30) as f64;
    let what = format!("{what} about {:.2} GiB more, and {:.2} GiB are free", gib(needed), gib(free));
    Error::new(Kind::OutOfMemory, what).hint("use a smaller batch or input, or an optimizer that keeps less state")
}
