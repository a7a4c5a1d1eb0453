//! The device of which readings are taken.

use super::sysfs;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selector {
    Cpu,
    /// The GPU at that address on the PCI bus, as sysfs writes it: `0000:3b:00.0`.
    ///
    /// It is the only name that means the same GPU to CUDA, NVML and the kernel: CUDA's ordinals follow speed (unless
    /// `CUDA_DEVICE_ORDER=PCI_BUS_ID`) and `CUDA_VISIBLE_DEVICES`, NVML's indices follow the bus.
    Gpu(String),
}

impl Selector {
    /// The GPU at an address, in any way of writing it.
    pub fn gpu(address: &str) -> Self {
        Self::Gpu(sysfs::address(address))
    }
}
