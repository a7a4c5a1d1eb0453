//! Which device readings are taken beside.

use std::fmt;

use super::sysfs;

/// A device by one of its names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selector {
    /// The processor this process runs on.
    Cpu,
    Gpu(Gpu),
}

/// A GPU by one of its names. An engine that has a CUDA context should give the bus id: CUDA's ordinals follow speed
/// (unless `CUDA_DEVICE_ORDER=PCI_BUS_ID`), NVML's indices follow the bus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gpu {
    /// NVML's index.
    Index(u32),
    /// `0000:3b:00.0`, as [`super::sysfs::address`] writes it.
    BusId(String),
    /// `GPU-...`, as nvidia-smi writes it.
    Uuid(String),
}

impl Selector {
    /// The device of that name: `cpu`, `cuda:0`, `0000:3b:00.0`, `GPU-...`. A CUDA ordinal is looked up in
    /// `visible_devices`, the value of `CUDA_VISIBLE_DEVICES`, where that is set.
    ///
    /// ```
    /// use batchstep::device::selector::{Gpu, Selector};
    /// assert_eq!(Selector::parse("cpu", None), Some(Selector::Cpu));
    /// assert_eq!(Selector::parse("cuda:1", Some("2,5")), Some(Selector::Gpu(Gpu::Index(5))));
    /// assert_eq!(Selector::parse("tpu", None), None);
    /// ```
    pub fn parse(name: &str, visible_devices: Option<&str>) -> Option<Self> {
        if name == "cpu" {
            return Some(Self::Cpu);
        }
        let gpu = match name.strip_prefix("cuda:") {
            Some(ordinal) => visible(ordinal.parse().ok()?, visible_devices)?,
            None => Gpu::parse(name)?,
        };
        Some(Self::Gpu(gpu))
    }
}

impl Gpu {
    fn parse(name: &str) -> Option<Self> {
        let name = name.trim();
        if let Ok(index) = name.parse() {
            return Some(Self::Index(index));
        }
        if name.starts_with("GPU-") || name.starts_with("MIG-") {
            return Some(Self::Uuid(name.to_string()));
        }
        name.contains(':').then(|| Self::BusId(sysfs::address(name)))
    }
}

fn visible(ordinal: u32, visible_devices: Option<&str>) -> Option<Gpu> {
    match visible_devices.map(str::trim).filter(|list| !list.is_empty()) {
        Some(list) => Gpu::parse(list.split(',').nth(ordinal as usize)?),
        None => Some(Gpu::Index(ordinal)),
    }
}

impl fmt::Display for Gpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Index(index) => write!(f, "cuda:{index}"),
            Self::BusId(name) | Self::Uuid(name) => f.write_str(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_writing_of_a_device_is_understood() {
        let gpu = |name: &str, visible: Option<&str>| match Selector::parse(name, visible) {
            Some(Selector::Gpu(gpu)) => Some(gpu),
            _ => None,
        };
        assert_eq!(gpu("cuda:0", None), Some(Gpu::Index(0)));
        assert_eq!(gpu("cuda:0", Some("")), Some(Gpu::Index(0)));
        assert_eq!(gpu("cuda:1", Some("GPU-aa, GPU-bb")), Some(Gpu::Uuid("GPU-bb".into())));
        assert_eq!(gpu("cuda:2", Some("0,1")), None);
        assert_eq!(gpu("00000000:3B:00.0", None), Some(Gpu::BusId("0000:3b:00.0".into())));
        assert_eq!(gpu("cuda:x", None), None);
    }
}
