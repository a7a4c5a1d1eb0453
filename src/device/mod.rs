//! What the hardware reports: the covariates of each visit, the facts of the environment, and `batchstep doctor`.
//!
//! A reading never fails. What cannot be read is `None`, the first failure of each kind becomes a warning, and the
//! measurement goes on: a run on a machine without sensors is worth less, not nothing. All values are SI.
//!
//! ```
//! use batchstep::device::{self, Device};
//! let mut device = device::open(None);
//! let covariates = device.read();
//! assert_eq!(covariates.sm_clock_hz, None, "a CPU has no streaming multiprocessors");
//! ```

pub mod account;
pub mod cgroup;
pub mod counters;
mod covariates;
pub mod cpu;
pub mod cuda;
pub mod environment;
#[cfg(test)]
pub(crate) mod fake;
pub mod host;
pub mod interpreter;
pub mod memory;
pub mod nvml;
pub mod python;
mod rapl;
pub mod root;
pub mod storage;
pub mod sysfs;
pub mod throttle;
pub mod topology;
mod warnings;
pub mod witness;

pub use batchstep_cpu::device::{free_memory, witnessed};
pub use covariates::Covariates;
pub use environment::{Environment, environment};
use root::FilesystemRoot;

/// The device whose readings accompany each visit.
pub trait Device: Send {
    /// One reading; to be taken outside the timed region (0.08 ms on a two-core virtual machine, debug build).
    fn read(&mut self) -> Covariates;

    /// The warnings since the last call: the first failure of each kind of reading. A machine without some sensor is
    /// normal, and no reason to doubt the step times.
    fn warnings(&mut self) -> Vec<String> {
        Vec::new()
    }
}

/// Opens the GPU at an address on the PCI bus, in any way of writing it, or the processor that this process runs on. This
/// never fails: a GPU that cannot be found gives readings of `None` and a warning.
///
/// The address is the only name that means the same GPU to CUDA, NVML and the kernel: CUDA's ordinals follow speed (unless
/// `CUDA_DEVICE_ORDER=PCI_BUS_ID`) and `CUDA_VISIBLE_DEVICES`, NVML's indices follow the bus.
pub fn open(gpu: Option<&str>) -> Box<dyn Device> {
    let root = FilesystemRoot::system();
    match gpu {
        Some(address) => Box::new(nvml::Gpu::open(&sysfs::address(address), root)),
        None => Box::new(host::Host::open(root)),
    }
}
