//! Readings through nvml-wrapper and NVML's C interface, from a library that answers recorded facts.

use std::path::PathBuf;

use super::*;
use crate::device::root::tests::planted;
use crate::device::topology::{Topology, pairs};
use crate::needs::shared_library;

const LIBRARY: &str = include_str!("library.c");

/// A GeForce GTX 1080 Ti under load: `nvidia-smi -q` in github.com/NVIDIA/nvidia-docker/issues/821. Values that are not
/// quoted there are not among the facts and so count as unsupported.
const LOADED: &str = "bus_id 00000000:03:00.0\nname GeForce GTX 1080 Ti\nlink_generation_max 3\nlink_generation 3\n\
                      link_width_max 16\nlink_width 16\nreplays 0\nthrottle 0\nmemory_total 11705253888\nmemory_used 6673137664\n";

/// An idle GPU: clocks and power from github.com/NVIDIA/nvidia-docker/issues/957; an idle link of generation 1 and 16
/// lanes, of a GTX 1080 Ti, is in github.com/Syllo/nvtop/issues/6. 0x1 is nvmlClocksThrottleReasonGpuIdle of nvml.h.
const IDLE: &str = "bus_id 00000000:03:00.0\nname GeForce GTX 1080 Ti\nlink_generation_max 3\nlink_generation 1\nlink_width_max 16\n\
                    link_width 16\nthrottle 0x1\nclock_sm 139\nclock_memory 405\nclock_max_sm 1999\nclock_max_memory 5505\n\
                    power 11950\npower_limit 275000\n";

/// A machine with such a GPU; its facts can be replaced.
struct RecordedMachine {
    folder: tempfile::TempDir,
}

impl RecordedMachine {
    /// `None` where there is no compiler.
    fn with(facts: &str) -> Option<Self> {
        let machine = Self { folder: tempfile::tempdir().unwrap() };
        machine.set(facts);
        shared_library(LIBRARY, &machine.library()).then_some(machine)
    }

    fn set(&self, facts: &str) {
        std::fs::write(self.folder.path().join("facts"), facts).unwrap();
    }

    fn library(&self) -> PathBuf {
        self.folder.path().join("libnvidia-ml.so.1")
    }

    fn nvml(&self) -> Result<&'static Nvml, String> {
        // Like the process's own library, it is never closed.
        open(&[self.library().to_str().unwrap()]).map(|nvml| &*Box::leak(Box::new(nvml)))
    }

    fn gpu(&self, address: &str) -> Gpu {
        let wanted = sysfs::address(address);
        let device = self.nvml().and_then(|nvml| find(nvml, &wanted));
        Gpu::new(&wanted, device, FilesystemRoot::at("/nonexistent"))
    }
}

/// The facts, with some lines added or replacing those of the same name.
fn but(facts: &str, lines: &[&str]) -> String {
    let name = |line: &str| line.split(' ').next().unwrap_or_default().to_owned();
    let kept = facts.lines().filter(|line| lines.iter().all(|other| name(other) != name(line)));
    kept.chain(lines.iter().copied()).map(|line| format!("{line}\n")).collect()
}

#[test]
fn a_gpu_under_load_and_at_rest_is_read_in_si_units() {
    let Some(machine) = RecordedMachine::with(LOADED) else { return };
    let mut gpu = machine.gpu("0000:03:00.0");
    assert_eq!(gpu.facts.name, "GeForce GTX 1080 Ti");
    let read = gpu.read();
    assert_eq!((read.pcie_link_width, read.pcie_link_generation), (Some(16), Some(3)));
    assert_eq!((read.pcie_link_width_max, read.pcie_link_generation_max), (Some(16), Some(3)));
    assert_eq!((read.pcie_replay_counter, read.throttle_reasons.as_deref()), (Some(0), Some("none")));
    // 6364 MiB.
    assert_eq!(read.memory_used_bytes, Some(6364 << 20));

    machine.set(IDLE);
    let read = gpu.read();
    // The link keeps its lanes and drops its generation.
    assert_eq!(
        (read.pcie_link_width, read.pcie_link_generation, read.pcie_link_generation_max),
        (Some(16), Some(1), Some(3))
    );
    assert_eq!((read.sm_clock_hz, read.memory_clock_hz, read.power_w), (Some(139e6), Some(405e6), Some(11.95)));
    assert_eq!(read.throttle_reasons.as_deref(), Some("gpu_idle"));
    let facts = machine.gpu("0000:03:00.0").facts;
    assert_eq!(
        (facts.sm_clock_max_hz, facts.memory_clock_max_hz, facts.power_limit_w),
        (Some(1999e6), Some(5505e6), Some(275.0))
    );
}

#[test]
fn what_is_not_supported_is_null_with_one_warning_and_the_rest_is_read() {
    let Some(machine) = RecordedMachine::with(LOADED) else { return };
    let mut gpu = machine.gpu("0000:03:00.0");
    for _ in 0..2 {
        let read = gpu.read();
        assert_eq!((read.temperature_c, read.power_w, read.energy_j, read.sm_clock_hz), (None, None, None, None));
        assert_eq!(read.pcie_link_width, Some(16));
    }
    // Five readings with the same reason give one warning.
    let warnings = gpu.warnings();
    let [warning] = warnings.as_slice() else { panic!("{warnings:?}") };
    assert!(warning.contains("the SM clock") && warning.contains("2 other readings"), "{warning}");
    assert!(warning.contains("is not available on the target device"), "{warning}");
}

/// NVML_ERROR_NO_PERMISSION is 4, NVML_ERROR_GPU_IS_LOST is 15.
#[test]
fn a_gpu_that_is_lost_or_forbidden_reads_as_null_and_says_so() {
    let Some(machine) = RecordedMachine::with(LOADED) else { return };
    let mut gpu = machine.gpu("0000:03:00.0");
    machine.set(&but(LOADED, &["replays !4"]));
    let read = gpu.read();
    assert_eq!((read.pcie_replay_counter, read.pcie_link_width), (None, Some(16)));
    assert!(gpu.warnings().iter().any(|warning| warning.contains("replay counter") && warning.contains("permission")));
    let lost: Vec<String> = LOADED.lines().map(|line| format!("{} !15\n", line.split(' ').next().unwrap())).collect();
    machine.set(&lost.concat());
    let read = gpu.read();
    assert_eq!(read, Covariates::default(), "nothing is known any more, and nothing is 0");
    let warnings = gpu.warnings();
    assert!(
        warnings.iter().any(|warning| warning.contains("link's width") && warning.contains("fell off the bus")),
        "{warnings:?}"
    );
}

/// nvml.h: 0x4 is SwPowerCap, 0x20 SwThermalSlowdown; a bit that no version names is kept.
#[test]
fn throttle_reasons_match_nvml_and_an_unknown_one_is_not_lost() {
    let Some(machine) = RecordedMachine::with(&but(LOADED, &["throttle 0x24"])) else { return };
    let mut gpu = machine.gpu("0000:03:00.0");
    let both = gpu.read().throttle_reasons.unwrap();
    assert!(both.contains("sw_power_cap") && both.contains("sw_thermal_slowdown"), "{both}");
    assert!(throttle::slows(&both), "{both}");
    machine.set(&but(LOADED, &["throttle 0x80000004"]));
    let unknown = gpu.read().throttle_reasons.unwrap();
    assert!(unknown.contains("sw_power_cap") && unknown.contains("bit_31"), "{unknown}");
}

#[test]
fn mig_a_link_of_half_its_width_and_ecc_are_facts() {
    let lines = ["mig 1", "ecc 1", "link_width 8", "compute_capability 80"];
    let Some(machine) = RecordedMachine::with(&but(LOADED, &lines)) else { return };
    let facts = machine.gpu("0000:03:00.0").facts;
    assert_eq!((facts.mig, facts.ecc, facts.compute_capability.as_deref()), (Some(true), Some(true), Some("8.0")));
    assert_eq!((facts.link.width, facts.link.width_max), (Some(8), Some(16)));
    assert_eq!(facts.memory_bytes, Some(11163 << 20));
}

/// NVML_ERROR_DRIVER_NOT_LOADED is 9.
#[test]
fn a_library_that_cannot_begin_says_why() {
    let Some(machine) = RecordedMachine::with("init !9\n") else { return };
    let why = machine.nvml().err().unwrap();
    assert!(why.contains("driver is not loaded"), "{why}");
}

#[test]
fn another_gpu_than_the_one_that_computes_is_not_read() {
    let Some(machine) = RecordedMachine::with(LOADED) else { return };
    let mut gpu = machine.gpu("0000:04:00.0");
    assert_eq!(gpu.read(), Covariates::default());
    let warnings = gpu.warnings();
    assert!(warnings.len() == 1 && warnings[0].contains("NVML does not know 0000:04:00.0"), "{warnings:?}");
    // CUDA writes the GPU's address in capitals.
    assert_eq!(machine.gpu("0000:03:00.0").facts.name, machine.gpu("00000000:03:00.0").facts.name);
}

/// nvmlGpuTopologyLevel_t of nvml.h: 0, 10, 20, 30, 40, 50. In the tree both GPUs are in one root complex.
#[test]
fn two_gpus_have_the_common_ancestor_that_nvml_says() {
    let Some(machine) = RecordedMachine::with(&but(LOADED, &["other_bus_id 00000000:04:00.0", "common_ancestor 20"]))
    else {
        return;
    };
    let nvml = machine.nvml().unwrap();
    let asked = || ancestor(nvml, "0000:03:00.0", "0000:04:00.0");
    let levels = [
        (0, Ancestor::Card),
        (10, Ancestor::Switch),
        (20, Ancestor::Switches),
        (30, Ancestor::RootComplex),
        (40, Ancestor::Node),
        (50, Ancestor::System),
    ];
    for (level, expected) in levels {
        let level = format!("common_ancestor {level}");
        machine.set(&but(LOADED, &["other_bus_id 00000000:04:00.0", &level]));
        assert_eq!(asked(), Some(expected), "{level}");
    }
    // NVML's answer is shown next to the tree's, which knows only the bridges.
    let topology = two_cards();
    let pair = |ask: &dyn Fn(&str, &str) -> Option<Ancestor>| pairs(&topology, ask).remove(0);
    let by_nvml = pair(&|first, second| ancestor(nvml, first, second));
    assert_eq!((by_nvml.first.as_str(), by_nvml.second.as_str()), ("0000:03:00.0", "0000:04:00.0"));
    assert_eq!((by_nvml.by_tree, by_nvml.by_nvml), (Ancestor::RootComplex, Some(Ancestor::System)));
    machine.set(&but(LOADED, &["other_bus_id 00000000:04:00.0", "common_ancestor !3"]));
    assert_eq!(asked(), None, "not supported");
    assert_eq!(ancestor(nvml, "0000:03:00.0", "0000:05:00.0"), None, "a GPU that NVML does not know");
}

/// Two NVIDIA cards, each in its own root port of one root complex.
fn two_cards() -> Topology {
    let device = |path: &str, class: &str| {
        let at = |file: &str| format!("sys/devices/pci0000:00/{path}/{file}");
        [(at("class"), format!("{class}\n")), (at("vendor"), "0x10de\n".to_owned())]
    };
    let files = [
        device("0000:00:01.0", "0x060400"),
        device("0000:00:01.0/0000:03:00.0", "0x030200"),
        device("0000:00:02.0", "0x060400"),
        device("0000:00:02.0/0000:04:00.0", "0x030200"),
    ];
    let (_guard, root) = planted(files.as_flattened());
    Topology::read(&root)
}
