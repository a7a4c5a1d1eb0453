//! The device of which readings are taken.

use std::fmt;

use super::sysfs;

/// A device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selector {
    /// The processor this process runs on.
    Cpu,
    Gpu(BusAddress),
}

/// A GPU's address on the PCI bus, as sysfs writes it: `0000:3b:00.0`.
///
/// It is the only name that means the same GPU to CUDA, NVML and the kernel: CUDA's ordinals follow speed (unless
/// `CUDA_DEVICE_ORDER=PCI_BUS_ID`) and `CUDA_VISIBLE_DEVICES`, NVML's indices follow the bus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BusAddress(String);

impl Selector {
    /// The GPU at an address, in any way of writing it.
    ///
    /// ```
    /// use batchstep::device::selector::Selector;
    /// // As NVML writes it, and as CUDA does.
    /// assert_eq!(Selector::gpu("00000000:3B:00.0"), Selector::gpu("0000:3b:00.0"));
    /// ```
    pub fn gpu(address: &str) -> Self {
        Self::Gpu(BusAddress(sysfs::address(address)))
    }
}

impl BusAddress {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for BusAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
