//! The hardware's readings at one visit.

use serde::{Deserialize, Serialize};

/// One reading, in SI units. `None`: could not be read; this is never written as 0.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Covariates {
    /// PCIe lanes in use now. Unlike the generation, it stays when the link idles.
    pub pcie_link_width: Option<u32>,
    /// PCIe generation in use now: 1 for 2.5 GT/s up to 6 for 64 GT/s. An idle link drops it to save power, so only a
    /// reading under load says anything.
    pub pcie_link_generation: Option<u32>,
    /// The most lanes that device and slot allow together.
    pub pcie_link_width_max: Option<u32>,
    /// The highest generation that device and slot allow together.
    pub pcie_link_generation_max: Option<u32>,
    /// Packets that the link had to send again, counted since the driver loaded.
    pub pcie_replay_counter: Option<u64>,
    /// Clock of the GPU's streaming multiprocessors.
    pub sm_clock_hz: Option<f64>,
    pub memory_clock_hz: Option<f64>,
    /// Mean clock of the processor cores that the process may use; `None` for a GPU.
    pub cpu_clock_hz: Option<f64>,
    /// Why the clock is below its maximum: names joined by `|`, or `none`; see [`super::throttle`].
    pub throttle_reasons: Option<String>,
    pub temperature_c: Option<f64>,
    pub power_w: Option<f64>,
    /// A counter that only grows, from an arbitrary zero: only differences between two readings are meaningful.
    pub energy_j: Option<f64>,
    /// GPU: memory in use on the device, by all processes. CPU: resident memory of this process.
    pub memory_used_bytes: Option<u64>,
}
