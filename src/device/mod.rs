//! What the hardware reports: the covariates of each visit, the facts of the environment, and `batchstep doctor`.
//!
//! A reading never fails. What cannot be read is `None`, the first failure of each kind becomes a warning, and the
//! measurement goes on: a run on a machine without sensors is worth less, not nothing. All values are SI.
//!
//! ```
//! use batchstep::device::{self, Device, selector::Selector};
//! let mut device = device::open(&Selector::Cpu);
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
pub mod selector;
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
use selector::Selector;

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

/// Opens a device of this machine. This never fails: a GPU that cannot be found gives readings of `None` and a warning.
pub fn open(selector: &Selector) -> Box<dyn Device> {
    match selector {
        Selector::Cpu => Box::new(host::Host::open(FilesystemRoot::system())),
        Selector::Gpu(gpu) => Box::new(nvml::Gpu::open(gpu, FilesystemRoot::system())),
    }
}
