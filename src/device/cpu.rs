//! The facts about the processor: model, cores, caches, instructions, and the settings that change its clock.
//!
//! Sources: `/proc/cpuinfo`; `/sys/devices/system/cpu/cpu*/{topology,cache,cpufreq}`; turbo from
//! `intel_pstate/no_turbo` or `cpufreq/boost` beside them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::cgroup::list;
use super::root::{FilesystemRoot, field, numbered};
use super::sysfs;

/// Where the kernel describes the processors.
pub(crate) const FOLDER: &str = "/sys/devices/system/cpu";

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuFacts {
    /// `Intel(R) Xeon(R) Platinum 8480C`; where the machine does not say, its architecture.
    pub model: String,
    /// `x86_64`, `aarch64`.
    pub architecture: String,
    pub logical_cores: Option<usize>,
    pub physical_cores: Option<usize>,
    pub sockets: Option<usize>,
    pub numa_nodes: Option<usize>,
    /// The range of the clock, from cpufreq.
    pub clock_min_hz: Option<f64>,
    pub clock_max_hz: Option<f64>,
    /// `performance`, `powersave`, `schedutil`; for the first core.
    pub governor: Option<String>,
    /// `intel_pstate`, `acpi-cpufreq`, `amd-pstate-epp`.
    pub frequency_driver: Option<String>,
    /// True where the clock may rise above its nominal value.
    pub turbo: Option<bool>,
    pub avx2: bool,
    pub avx512f: bool,
    /// True inside a virtual machine: the host controls the clocks and often does not report them.
    pub hypervisor: bool,
    /// The caches of the first core.
    pub caches: Vec<Cache>,
}

/// One cache that the first core uses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cache {
    pub level: u32,
    /// `Data`, `Instruction`, `Unified`.
    pub kind: String,
    pub size_bytes: u64,
    /// Logical cores that share it.
    pub shared_by: usize,
}

impl CpuFacts {
    pub fn read(root: &FilesystemRoot) -> Self {
        let info = root.text("/proc/cpuinfo").unwrap_or_default();
        let flags: BTreeSet<&str> =
            field(&info, "flags").or(field(&info, "Features")).unwrap_or_default().split_whitespace().collect();
        let first = Path::new(FOLDER).join("cpu0");
        let clock = |file: &str| root.number::<f64>(first.join("cpufreq").join(file)).map(|khz| khz * 1e3);
        let cores: Vec<_> = root.entries(FOLDER).into_iter().filter(|path| numbered(path, "cpu").is_some()).collect();
        let id = |path: &Path, file: &str| root.number::<i64>(path.join("topology").join(file));
        let socket = |path: &PathBuf| id(path, "physical_package_id");
        let sockets: BTreeSet<i64> = cores.iter().filter_map(socket).collect();
        let physical: BTreeSet<_> =
            cores.iter().filter_map(|path| Some((socket(path)?, id(path, "core_id")?))).collect();
        let processors = info.lines().filter(|line| line.starts_with("processor")).count();
        let known = |count: usize| (count > 0).then_some(count);
        Self {
            model: field(&info, "model name").unwrap_or(std::env::consts::ARCH).to_string(),
            architecture: std::env::consts::ARCH.to_string(),
            logical_cores: known(processors).or(known(cores.len())),
            physical_cores: known(physical.len()),
            sockets: known(sockets.len()),
            numa_nodes: known(sysfs::numa_nodes(root).len()),
            clock_min_hz: clock("cpuinfo_min_freq"),
            clock_max_hz: clock("cpuinfo_max_freq"),
            governor: root.text(first.join("cpufreq/scaling_governor")),
            frequency_driver: root.text(first.join("cpufreq/scaling_driver")),
            turbo: turbo(root),
            avx2: flags.contains("avx2"),
            avx512f: flags.contains("avx512f"),
            hypervisor: flags.contains("hypervisor"),
            caches: caches(root, &first.join("cache")),
        }
    }
}

fn turbo(root: &FilesystemRoot) -> Option<bool> {
    let folder = Path::new(FOLDER);
    let forbidden = root.number::<u32>(folder.join("intel_pstate/no_turbo")).map(|value| value == 0);
    forbidden.or_else(|| root.number::<u32>(folder.join("cpufreq/boost")).map(|value| value == 1))
}

fn caches(root: &FilesystemRoot, folder: &Path) -> Vec<Cache> {
    let cache = |path: &Path| {
        Some(Cache {
            level: root.number(path.join("level"))?,
            kind: root.text(path.join("type"))?,
            size_bytes: size(&root.text(path.join("size"))?)?,
            shared_by: list(&root.text(path.join("shared_cpu_list"))?).len(),
        })
    };
    root.entries(folder).iter().filter_map(|path| cache(path)).collect()
}

/// The bytes of a cache size as sysfs writes it: `32K`, `1M`.
fn size(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match &text[digits.len()..] {
        "" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::root::tests::planted;

    // The files of a dual-socket Xeon, two hyper-threads on each of its two cores, shortened.
    const XEON: [(&str, &str); 23] = [
        (
            "proc/cpuinfo",
            "processor\t: 0\nmodel name\t: Intel(R) Xeon(R) Platinum 8480C\ncpu MHz\t\t: 2000.000\n\
             flags\t\t: fpu avx2 avx512f\n\nprocessor\t: 1\n\nprocessor\t: 2\n\nprocessor\t: 3\n",
        ),
        ("sys/devices/system/cpu/cpu0/topology/core_id", "0"),
        ("sys/devices/system/cpu/cpu0/topology/physical_package_id", "0"),
        ("sys/devices/system/cpu/cpu1/topology/core_id", "0"),
        ("sys/devices/system/cpu/cpu1/topology/physical_package_id", "1"),
        ("sys/devices/system/cpu/cpu2/topology/core_id", "0"),
        ("sys/devices/system/cpu/cpu2/topology/physical_package_id", "0"),
        ("sys/devices/system/cpu/cpu3/topology/core_id", "0"),
        ("sys/devices/system/cpu/cpu3/topology/physical_package_id", "1"),
        ("sys/devices/system/cpu/cpufreq/policy0/ignored", ""),
        ("sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_min_freq", "800000\n"),
        ("sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq", "3800000\n"),
        ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n"),
        ("sys/devices/system/cpu/cpu0/cpufreq/scaling_driver", "intel_pstate\n"),
        ("sys/devices/system/cpu/intel_pstate/no_turbo", "0\n"),
        ("sys/devices/system/cpu/cpu0/cache/index0/level", "1\n"),
        ("sys/devices/system/cpu/cpu0/cache/index0/type", "Data\n"),
        ("sys/devices/system/cpu/cpu0/cache/index0/size", "48K\n"),
        ("sys/devices/system/cpu/cpu0/cache/index0/shared_cpu_list", "0,2\n"),
        ("sys/devices/system/cpu/cpu0/cache/index3/level", "3\n"),
        ("sys/devices/system/cpu/cpu0/cache/index3/type", "Unified\n"),
        ("sys/devices/system/cpu/cpu0/cache/index3/size", "107520K\n"),
        ("sys/devices/system/cpu/cpu0/cache/index3/shared_cpu_list", "0-3\n"),
    ];

    #[test]
    fn a_xeon_is_read_as_it_is() {
        let (_guard, root) = planted(&XEON);
        let facts = CpuFacts::read(&root);
        assert_eq!(facts.model, "Intel(R) Xeon(R) Platinum 8480C");
        assert_eq!((facts.logical_cores, facts.physical_cores, facts.sockets), (Some(4), Some(2), Some(2)));
        assert_eq!((facts.clock_min_hz, facts.clock_max_hz), (Some(0.8e9), Some(3.8e9)));
        assert_eq!((facts.governor.as_deref(), facts.turbo), (Some("powersave"), Some(true)));
        assert!(facts.avx2 && facts.avx512f && !facts.hypervisor);
        let level_1 = Cache { level: 1, kind: "Data".into(), size_bytes: 48 << 10, shared_by: 2 };
        let level_3 = Cache { level: 3, kind: "Unified".into(), size_bytes: 105 << 20, shared_by: 4 };
        assert_eq!(facts.caches, [level_1, level_3]);
    }

    #[test]
    fn a_machine_that_says_nothing_still_has_a_name() {
        let facts = CpuFacts::read(&FilesystemRoot::at("/nonexistent"));
        assert_eq!(facts.model, std::env::consts::ARCH);
        assert!(facts.caches.is_empty() && facts.logical_cores.is_none() && facts.turbo.is_none());
    }

    #[test]
    fn cache_sizes_have_units() {
        assert_eq!((size("32K"), size("2M"), size("64")), (Some(32768), Some(2 << 20), Some(64)));
        assert_eq!((size("many"), size("3X"), size("")), (None, None, None));
    }
}
