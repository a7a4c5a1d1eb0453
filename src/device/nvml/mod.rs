//! A GPU as NVIDIA's management library (NVML) describes it. Only this folder uses nvml-wrapper.
//!
//! The library comes with the driver. It is opened once for the process and never closed, so that a reading costs only
//! its calls; where it is missing, the GPU's link is still read from sysfs, and everything else is `None`.

#[cfg(test)]
mod recorded;

use std::ffi::OsStr;
use std::sync::OnceLock;

use nvml_wrapper::Nvml;
use nvml_wrapper::bitmasks::device::ThrottleReasons;
use nvml_wrapper::enum_wrappers::device::{Clock, TemperatureSensor};
use nvml_wrapper::error::{Bits, NvmlError};
use serde::{Deserialize, Serialize};

use crate::device::cuda::driver::CudaGpuFacts;
use crate::device::root::FilesystemRoot;
use crate::device::sysfs::{self, Link, PciDevice};
use crate::device::throttle;
use crate::device::topology::Ancestor;
use crate::device::warnings::Warnings;
use crate::device::{Covariates, Device};

/// The soname, then the places where containers and WSL keep the library if the loader does not find it.
const PLACES: [&str; 4] = [
    "libnvidia-ml.so.1",
    "/usr/local/nvidia/lib64/libnvidia-ml.so.1",
    "/usr/lib/wsl/lib/libnvidia-ml.so.1",
    "/usr/lib64/libnvidia-ml.so.1",
];

/// The name given to a GPU that NVML does not name.
const UNNAMED: &str = "NVIDIA GPU";

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GpuFacts {
    /// `NVIDIA H200`; nvmlDeviceGetName.
    pub name: String,
    /// `0000:3b:00.0`, as sysfs writes it.
    pub address: Option<String>,
    /// `9.0`; nvmlDeviceGetCudaComputeCapability.
    pub compute_capability: Option<String>,
    /// nvmlDeviceGetMemoryInfo_v2.
    pub memory_bytes: Option<u64>,
    /// nvmlDeviceGetMaxClockInfo.
    pub sm_clock_max_hz: Option<f64>,
    pub memory_clock_max_hz: Option<f64>,
    /// nvmlDeviceGetEnforcedPowerLimit.
    pub power_limit_w: Option<f64>,
    /// nvmlDeviceGetEccMode.
    pub ecc: Option<bool>,
    /// True where the GPU is cut into instances, which share its clocks and its link; nvmlDeviceGetMigMode.
    pub mig: Option<bool>,
    pub numa_node: Option<u32>,
    /// Probably read while idle; see [`crate::device::Covariates::pcie_link_generation`].
    pub link: Link,
}

/// The driver's versions, as NVML gives them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DriverFacts {
    /// `580.65.06`; nvmlSystemGetDriverVersion.
    pub version: Option<String>,
    /// `13.0`: the newest CUDA that the driver runs; nvmlSystemGetCudaDriverVersion_v2.
    pub cuda_version: Option<String>,
    /// nvmlSystemGetNVMLVersion.
    pub nvml_version: Option<String>,
}

/// NVML, opened at the first call.
///
/// # Errors
/// One clause that says why there is none: no library, no driver, no permission.
fn library() -> Result<&'static Nvml, &'static str> {
    static LIBRARY: OnceLock<Result<Nvml, String>> = OnceLock::new();
    LIBRARY.get_or_init(|| open(&PLACES)).as_ref().map_err(String::as_str)
}

fn open(places: &[&str]) -> Result<Nvml, String> {
    let mut why = String::from("no NVML library was found (libnvidia-ml.so.1 comes with the NVIDIA driver)");
    for place in places {
        match Nvml::builder().lib_path(OsStr::new(place)).init() {
            Ok(nvml) => return Ok(nvml),
            Err(NvmlError::LibloadingError(_)) => {}
            // The library exists: its error matters more than its absence in other places.
            Err(error) => why = error.to_string(),
        }
    }
    Err(why)
}

/// True where NVML answers.
///
/// # Errors
/// One clause that says why it does not.
pub fn available() -> Result<(), &'static str> {
    library().map(|_| ())
}

/// The driver's versions; all unknown without NVML.
pub fn driver() -> DriverFacts {
    let Ok(nvml) = library() else { return DriverFacts::default() };
    DriverFacts {
        version: nvml.sys_driver_version().ok(),
        cuda_version: nvml.sys_cuda_driver_version().ok().map(cuda_version),
        nvml_version: nvml.sys_nvml_version().ok(),
    }
}

/// CUDA writes 13.0 as 13000, and 12.8 as 12080.
fn cuda_version(number: i32) -> String {
    format!("{}.{}", number / 1000, number % 1000 / 10)
}

/// Every GPU that NVML shows to this process, in its order (that of the PCI bus); none without NVML.
pub fn gpus(root: &FilesystemRoot) -> Vec<GpuFacts> {
    let Ok(nvml) = library() else { return Vec::new() };
    let count = nvml.device_count().unwrap_or(0);
    (0..count).filter_map(|index| nvml.device_by_index(index).ok()).map(|device| facts(&device, root)).collect()
}

/// The nearest common ancestor of two GPUs, by their addresses on the bus; `None` without NVML, or if it does not
/// report it.
pub fn common_ancestor(first: &str, second: &str) -> Option<Ancestor> {
    ancestor(library().ok()?, first, second)
}

fn ancestor(nvml: &'static Nvml, first: &str, second: &str) -> Option<Ancestor> {
    use nvml_wrapper::enum_wrappers::device::TopologyLevel;
    let device = |address: &str| nvml.device_by_pci_bus_id(address).ok();
    Some(match device(first)?.topology_common_ancestor(device(second)?).ok()? {
        TopologyLevel::Internal => Ancestor::Card,
        TopologyLevel::Single => Ancestor::Switch,
        TopologyLevel::Multiple => Ancestor::Switches,
        TopologyLevel::HostBridge => Ancestor::RootComplex,
        TopologyLevel::Node => Ancestor::Node,
        TopologyLevel::System => Ancestor::System,
    })
}

fn facts(device: &nvml_wrapper::Device<'_>, root: &FilesystemRoot) -> GpuFacts {
    let address = device.pci_info().ok().map(|info| sysfs::address(&info.bus_id));
    let on_bus = sysfs::gpus(root).into_iter().find(|gpu| Some(&gpu.address) == address.as_ref());
    let mut silent = Warnings::default();
    GpuFacts {
        name: device.name().unwrap_or_else(|_| UNNAMED.into()),
        compute_capability: device.cuda_compute_capability().ok().map(|at| format!("{}.{}", at.major, at.minor)),
        memory_bytes: device.memory_info().ok().map(|memory| memory.total),
        sm_clock_max_hz: device.max_clock_info(Clock::SM).ok().map(hertz),
        memory_clock_max_hz: device.max_clock_info(Clock::Memory).ok().map(hertz),
        power_limit_w: device.enforced_power_limit().ok().map(thousandths),
        ecc: device.is_ecc_enabled().ok().map(|state| state.currently_enabled),
        // NVML_DEVICE_MIG_ENABLE is 1.
        mig: device.mig_mode().ok().map(|mode| mode.current == 1),
        numa_node: on_bus.as_ref().and_then(|gpu| gpu.numa_node),
        link: link(device, &mut silent).or(on_bus.map(|gpu| gpu.link).unwrap_or_default()),
        address,
    }
}

pub struct Gpu {
    device: Result<nvml_wrapper::Device<'static>, String>,
    facts: GpuFacts,
    root: FilesystemRoot,
    warnings: Warnings,
}

impl Gpu {
    /// The GPU at that address, as sysfs writes it. If NVML does not know it, or is missing, only the link remains, from
    /// sysfs.
    pub fn open(wanted: &str, root: FilesystemRoot) -> Self {
        Self::new(wanted, library().map_err(str::to_string).and_then(|nvml| find(nvml, wanted)), root)
    }

    fn new(wanted: &str, device: Result<nvml_wrapper::Device<'static>, String>, root: FilesystemRoot) -> Self {
        let on_bus = || sysfs::gpus(&root).into_iter().find(|gpu| gpu.address == wanted).map(GpuFacts::from);
        let facts = match &device {
            Ok(device) => facts(device, &root),
            Err(_) => on_bus().unwrap_or_else(|| GpuFacts { name: UNNAMED.into(), ..GpuFacts::default() }),
        };
        Self { device, facts, root, warnings: Warnings::default() }
    }
}

fn find(nvml: &'static Nvml, wanted: &str) -> Result<nvml_wrapper::Device<'static>, String> {
    nvml.device_by_pci_bus_id(wanted).map_err(|error| format!("NVML does not know {wanted}: {error}"))
}

impl From<PciDevice> for GpuFacts {
    fn from(device: PciDevice) -> Self {
        let address = Some(device.address);
        Self { name: UNNAMED.into(), address, numa_node: device.numa_node, link: device.link, ..Self::default() }
    }
}

impl From<CudaGpuFacts> for GpuFacts {
    fn from(seen: CudaGpuFacts) -> Self {
        let (major, minor) = seen.compute_capability;
        Self {
            name: seen.name,
            address: Some(sysfs::address(&seen.pci_bus_id)),
            compute_capability: Some(format!("{major}.{minor}")),
            memory_bytes: Some(seen.memory_bytes),
            ..Self::default()
        }
    }
}

impl Device for Gpu {
    fn read(&mut self) -> Covariates {
        let (mut link, reading) = match &self.device {
            Ok(device) => (link(device, &mut self.warnings), covariates(device, &mut self.warnings)),
            Err(why) => {
                self.warnings.unreadable("the GPU's clocks, temperature, power, energy and memory", why);
                (Link::default(), Covariates::default())
            }
        };
        let known = link.width.is_some() && link.generation.is_some();
        if let (false, Some(address)) = (known, &self.facts.address) {
            link = link.or(sysfs::link(&self.root, address));
        }
        Covariates {
            pcie_link_width: link.width,
            pcie_link_generation: link.generation,
            pcie_link_width_max: link.width_max,
            pcie_link_generation_max: link.generation_max,
            ..reading
        }
    }

    fn warnings(&mut self) -> Vec<String> {
        self.warnings.take()
    }
}

fn link(device: &nvml_wrapper::Device<'_>, warnings: &mut Warnings) -> Link {
    Link {
        width: note(device.current_pcie_link_width(), "the PCIe link's width", warnings),
        generation: note(device.current_pcie_link_gen(), "the PCIe link's generation", warnings),
        width_max: note(device.max_pcie_link_width(), "the PCIe link's largest width", warnings),
        generation_max: note(device.max_pcie_link_gen(), "the PCIe link's highest generation", warnings),
    }
}

/// All but the link. Every call here answers at once; calls that sample for 20 ms (throughput) are not used.
fn covariates(device: &nvml_wrapper::Device<'_>, warnings: &mut Warnings) -> Covariates {
    Covariates {
        pcie_replay_counter: note(device.pcie_replay_counter(), "the PCIe replay counter", warnings).map(u64::from),
        sm_clock_hz: note(device.clock_info(Clock::SM), "the SM clock", warnings).map(hertz),
        memory_clock_hz: note(device.clock_info(Clock::Memory), "the memory clock", warnings).map(hertz),
        throttle_reasons: note(throttle_bits(device), "the throttle reasons", warnings).map(throttle::names),
        temperature_c: note(device.temperature(TemperatureSensor::Gpu), "the GPU's temperature", warnings)
            .map(f64::from),
        power_w: note(device.power_usage(), "the GPU's power", warnings).map(thousandths),
        energy_j: note(device.total_energy_consumption(), "the GPU's energy", warnings).map(|mj| mj as f64 / 1e3),
        memory_used_bytes: note(device.memory_info(), "the GPU's memory", warnings).map(|memory| memory.used),
        ..Covariates::default()
    }
}

/// The wrapper drops unknown bits, or fails and returns them; this function keeps them.
fn throttle_bits(device: &nvml_wrapper::Device<'_>) -> Result<u64, NvmlError> {
    match device.current_throttle_reasons_strict() {
        Err(NvmlError::IncorrectBits(Bits::U64(bits))) => Ok(bits),
        reasons => reasons.map(|reasons: ThrottleReasons| reasons.bits()),
    }
}

fn note<T>(value: Result<T, NvmlError>, what: &'static str, warnings: &mut Warnings) -> Option<T> {
    value.map_err(|error| warnings.unreadable(what, &error.to_string())).ok()
}

/// NVML counts clocks in MHz.
fn hertz(mhz: u32) -> f64 {
    f64::from(mhz) * 1e6
}

/// NVML counts power in mW. The value is divided, since 11950 times 0.001 is 11.950000000000001.
fn thousandths(value: u32) -> f64 {
    f64::from(value) / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::root::tests::planted;

    #[test]
    fn a_library_that_is_missing_or_broken_is_reported_in_one_clause() {
        let why = open(&["/nonexistent/libnvidia-ml.so.1"]).err().unwrap();
        assert!(why.contains("libnvidia-ml.so.1"), "{why}");
        let folder = tempfile::tempdir().unwrap();
        let empty = folder.path().join("libnvidia-ml.so.1");
        std::fs::write(&empty, "").unwrap();
        assert!(open(&[empty.to_str().unwrap()]).is_err());
    }

    #[test]
    fn a_gpu_that_only_cuda_shows_has_a_name_and_an_address() {
        let seen = CudaGpuFacts {
            name: "NVIDIA H200".into(),
            compute_capability: (9, 0),
            memory_bytes: 150_000_000_000,
            pci_bus_id: "0000:3B:00.0".into(),
        };
        let facts = GpuFacts::from(seen);
        assert_eq!((facts.name.as_str(), facts.compute_capability.as_deref()), ("NVIDIA H200", Some("9.0")));
        assert_eq!((facts.address.as_deref(), facts.memory_bytes), (Some("0000:3b:00.0"), Some(150_000_000_000)));
        assert!(facts.link.is_unknown());
    }

    #[test]
    fn without_nvml_the_link_still_comes_from_sysfs() {
        let (_guard, root) = planted(&[
            ("sys/bus/pci/devices/0000:17:00.0/class", "0x030000\n"),
            ("sys/bus/pci/devices/0000:17:00.0/vendor", "0x10de\n"),
            ("sys/bus/pci/devices/0000:17:00.0/current_link_width", "8\n"),
            ("sys/bus/pci/devices/0000:17:00.0/current_link_speed", "16.0 GT/s PCIe\n"),
        ]);
        let mut gpu = Gpu::new("0000:17:00.0", Err("NVIDIA driver is not loaded".into()), root);
        let reading = gpu.read();
        assert_eq!((reading.pcie_link_width, reading.pcie_link_generation), (Some(8), Some(4)));
        assert_eq!((reading.pcie_link_width_max, reading.sm_clock_hz), (None, None));
        let warnings = gpu.warnings();
        assert!(warnings.len() == 1 && warnings[0].ends_with("NVIDIA driver is not loaded"), "{warnings:?}");
        gpu.read();
        assert!(gpu.warnings().is_empty());
    }

    #[test]
    fn a_gpu_that_nothing_knows_gives_a_reading_of_nothing() {
        let mut gpu = Gpu::new("0000:07:00.0", Err("not found".into()), FilesystemRoot::at("/nonexistent"));
        assert_eq!(gpu.read(), Covariates::default());
    }

    #[test]
    fn numbers_of_nvml_become_si() {
        assert_eq!((hertz(1980), thousandths(700_000)), (1.98e9, 700.0));
        assert_eq!((cuda_version(13000), cuda_version(12080)), ("13.0".into(), "12.8".into()));
    }
}
