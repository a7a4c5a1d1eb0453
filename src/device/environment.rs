//! The environment of a run: the content of `environment.json`.
//!
//! Enough to judge a result years later, but nothing that identifies a person or a place: no host name, no user, no
//! serial numbers, and `~` instead of the home folder.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::cgroup::ResourceLimits;
use super::counters::Counters;
use super::cpu::CpuFacts;
use super::host;
use super::memory::MainMemory;
use super::nvml::{self, DriverFacts, GpuFacts};
use super::root::FilesystemRoot;
use super::sysfs::{self, PciDevice};
use crate::device::cuda::libraries::{self, LibraryReport, PassedOver};

/// The machine and the program, as they were when the run began.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    pub batchstep: String,
    /// The commit it was built from, where the build set `BATCHSTEP_COMMIT`.
    pub commit: Option<String>,
    /// `release`, or `debug`, in which our own kernels are several times slower.
    pub build: Option<String>,
    /// UTC, RFC 3339: `2026-11-21T07:26:00Z`.
    pub started: String,
    /// `PRETTY_NAME` of `/etc/os-release`.
    pub os: Option<String>,
    /// `/proc/sys/kernel/osrelease`.
    pub kernel: Option<String>,
    /// `docker`, `podman`, `kubernetes`, ...; `None`: no recognisable container.
    pub container: Option<String>,
    pub cpu: CpuFacts,
    /// The mean clock of the allowed cores at the start.
    pub cpu_clock_hz: Option<f64>,
    #[serde(rename = "allowance")]
    pub limits: ResourceLimits,
    pub memory: MainMemory,
    /// Processes that ran or waited to run, on average over 1, 5 and 15 minutes, at the start; `/proc/loadavg`.
    pub load_average: Option<[f64; 3]>,
    pub counters: Counters,
    pub driver: DriverFacts,
    pub gpus: Vec<GpuFacts>,
    /// The CUDA libraries; empty on a machine without an NVIDIA GPU or driver, where they are not searched for.
    pub libraries: Vec<LibraryReport>,
    pub drives: Vec<PciDevice>,
}

/// The environment of this process. Takes milliseconds without a GPU; with one, the CUDA libraries are loaded.
pub fn environment() -> Environment {
    let mut environment = Environment::ask(&FilesystemRoot::system());
    if !environment.gpus.is_empty() {
        environment.libraries = without_home(libraries::load().found());
    }
    environment
}

impl Environment {
    /// [`Environment::read`], and what the counters and NVML say.
    pub fn ask(root: &FilesystemRoot) -> Self {
        let mut environment = Self { counters: Counters::probe(root), driver: nvml::driver(), ..Self::read(root) };
        let gpus = nvml::gpus(root);
        if !gpus.is_empty() {
            environment.gpus = gpus;
        }
        environment
    }

    /// Reads only the files under `root`; NVML, the counters and the libraries are not queried.
    pub fn read(root: &FilesystemRoot) -> Self {
        let limits = ResourceLimits::read(root);
        Self {
            batchstep: env!("CARGO_PKG_VERSION").into(),
            commit: option_env!("BATCHSTEP_COMMIT").map(str::to_string),
            build: Some(if cfg!(debug_assertions) { "debug" } else { "release" }.into()),
            started: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
            os: os(root),
            kernel: root.text("/proc/sys/kernel/osrelease"),
            container: container(root),
            cpu: CpuFacts::read(root),
            cpu_clock_hz: host::clock(root, &limits.cpus),
            limits,
            memory: MainMemory::read(root),
            load_average: load_average(root),
            gpus: sysfs::gpus(root).into_iter().map(GpuFacts::from).collect(),
            drives: sysfs::drives(root),
            ..Self::default()
        }
    }
}

/// An identifier of this machine that does not reveal its name: a number from its host name, `node-3f2a91c0`.
pub fn node() -> String {
    let name = FilesystemRoot::system().text("/proc/sys/kernel/hostname").unwrap_or_default();
    // Fowler, Noll & Vo's hash, FNV-1a of 32 bits.
    let hash = name.bytes().fold(0x811c_9dc5u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    format!("node-{hash:08x}")
}

fn os(root: &FilesystemRoot) -> Option<String> {
    let text = root.text("/etc/os-release")?;
    let name = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(name.trim_matches('"').to_string())
}

/// Docker and podman leave a file; systemd-nspawn and podman set `container` for the first process; Kubernetes mounts its
/// secrets.
fn container(root: &FilesystemRoot) -> Option<String> {
    let marks =
        [("/var/run/secrets/kubernetes.io", "kubernetes"), ("/.dockerenv", "docker"), ("/run/.containerenv", "podman")];
    let named = marks.into_iter().find(|(path, _)| root.path(path).exists()).map(|(_, name)| name.to_owned());
    named.or_else(|| root.text("/run/systemd/container").filter(|name| !name.is_empty()))
}

fn load_average(root: &FilesystemRoot) -> Option<[f64; 3]> {
    let text = root.text("/proc/loadavg")?;
    let mut numbers = text.split_whitespace().map_while(|word| word.parse().ok());
    Some([numbers.next()?, numbers.next()?, numbers.next()?])
}

/// The home folder usually names its owner.
fn without_home(found: &[LibraryReport]) -> Vec<LibraryReport> {
    let home = std::env::home_dir().filter(|home| home.components().count() > 1);
    let short = |path: &Path| tilde(path, home.as_deref());
    let each = |found: &LibraryReport| {
        let passed = found.passed_over.iter();
        let passed_over = passed.map(|one| PassedOver { path: short(&one.path), why: one.why.clone() }).collect();
        LibraryReport { path: found.path.as_deref().map(short), passed_over, ..found.clone() }
    };
    found.iter().map(each).collect()
}

fn tilde(path: &Path, home: Option<&Path>) -> PathBuf {
    match home.and_then(|home| path.strip_prefix(home).ok()) {
        Some(rest) => Path::new("~").join(rest),
        None => path.to_path_buf(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::root::tests::planted;

    #[test]
    fn an_environment_is_read_from_files_and_survives_json() {
        let (_guard, root) = planted(&[
            ("etc/os-release", "ID=debian\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n"),
            ("proc/sys/kernel/osrelease", "6.18.44\n"),
            ("proc/loadavg", "2.27 1.90 1.01 6/118 12018\n"),
            (".dockerenv", ""),
            ("sys/bus/pci/devices/0000:17:00.0/class", "0x030200\n"),
            ("sys/bus/pci/devices/0000:17:00.0/vendor", "0x10de\n"),
            ("sys/bus/pci/devices/0000:17:00.0/max_link_width", "16\n"),
        ]);
        let environment = Environment::read(&root);
        assert_eq!(environment.os.as_deref(), Some("Debian GNU/Linux 12 (bookworm)"));
        assert_eq!(environment.kernel.as_deref(), Some("6.18.44"));
        assert_eq!(environment.load_average, Some([2.27, 1.90, 1.01]));
        assert_eq!(environment.container.as_deref(), Some("docker"));
        assert_eq!(environment.gpus[0].link.width_max, Some(16));
        let json = serde_json::to_string(&environment).unwrap();
        assert_eq!(serde_json::from_str::<Environment>(&json).unwrap(), environment);
    }

    #[test]
    fn an_empty_machine_has_an_environment_all_the_same() {
        let environment = Environment::read(&FilesystemRoot::at("/nonexistent"));
        assert!(environment.gpus.is_empty() && environment.os.is_none() && environment.load_average.is_none());
        assert_eq!(environment.batchstep, env!("CARGO_PKG_VERSION"));
    }

    #[test]
    fn the_home_folder_is_not_disclosed() {
        let home = Some(Path::new("/home/ada"));
        assert_eq!(tilde(Path::new("/home/ada/.venv/libcudnn.so.9"), home), Path::new("~/.venv/libcudnn.so.9"));
        assert_eq!(tilde(Path::new("/home/adam/libcudnn.so.9"), home), Path::new("/home/adam/libcudnn.so.9"));
    }
}
