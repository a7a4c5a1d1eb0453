//! The processor as a device: clock, temperature, energy and throttling at each visit of a CPU engine.
//!
//! Sources: clock from `cpufreq/scaling_cur_freq` (kHz), else `cpu MHz` of `/proc/cpuinfo`; temperature from
//! `/sys/class/hwmon` (coretemp, k10temp, zenpower), else `/sys/class/thermal`; energy from RAPL,
//! `/sys/class/powercap/intel-rapl:*/energy_uj`; throttling from `thermal_throttle/package_throttle_count` and the control
//! group's `cpu.stat`; memory from `VmRSS` of `/proc/self/status`.

use std::path::Path;

use super::cgroup::{self, ResourceLimits};
use super::cpu::FOLDER;
use super::rapl::Rapl;
use super::root::{FilesystemRoot, field, kilobytes, name_of};
use super::throttle;
use super::warnings::Warnings;
use super::{Covariates, Device};

/// Reading a core's clock can make the kernel interrupt that core; a sample of the cores gives the same mean.
const CORES_ASKED: usize = 16;

/// Sensors of the processor by the names of their drivers: Intel, AMD, AMD (out of root), ARM boards.
const SENSORS: [&str; 4] = ["coretemp", "k10temp", "zenpower", "cpu_thermal"];
const ZONES: [&str; 4] = ["x86_pkg_temp", "cpu-thermal", "cpu_thermal", "soc-thermal"];

#[derive(Debug)]
pub struct Host {
    root: FilesystemRoot,
    cores: Vec<usize>,
    rapl: Rapl,
    /// The counts of the previous reading: the package's thermal throttling, and the stops by the quota.
    throttled: (Option<u64>, Option<u64>),
    warnings: Warnings,
}

impl Host {
    /// The host whose `/proc` and `/sys` lie in `root`.
    pub fn open(root: FilesystemRoot) -> Self {
        let mut cores = ResourceLimits::read(&root).cpus;
        let stride = cores.len().div_ceil(CORES_ASKED).max(1);
        cores = cores.into_iter().step_by(stride).collect();
        let rapl = Rapl::open(&root);
        let throttled = counts(&root);
        Self { root, cores, rapl, throttled, warnings: Warnings::default() }
    }

    fn throttle_reasons(&mut self) -> Option<String> {
        let before = std::mem::replace(&mut self.throttled, counts(&self.root));
        let rose = |before: Option<u64>, now: Option<u64>| Some(now? > before?);
        let thermal = rose(before.0, self.throttled.0);
        let quota = rose(before.1, self.throttled.1);
        if thermal.is_none() && quota.is_none() {
            return None;
        }
        let reasons = [(thermal, throttle::CPU_THERMAL), (quota, throttle::CPU_QUOTA)];
        Some(throttle::join(reasons.iter().filter(|reason| reason.0 == Some(true)).map(|reason| reason.1)))
    }
}

impl Device for Host {
    fn read(&mut self) -> Covariates {
        let energy = self.rapl.read(&self.root);
        let reading = Covariates {
            cpu_clock_hz: clock(&self.root, &self.cores),
            throttle_reasons: self.throttle_reasons(),
            temperature_c: temperature(&self.root),
            power_w: energy.and_then(|energy| energy.power_w),
            energy_j: energy.map(|energy| energy.total_j),
            memory_used_bytes: self.root.text("/proc/self/status").and_then(|text| kilobytes(field(&text, "VmRSS")?)),
            ..Covariates::default()
        };
        let warnings = &mut self.warnings;
        warnings.expect(reading.cpu_clock_hz, "the CPU's clock", "neither cpufreq nor /proc/cpuinfo reports it");
        warnings.expect(reading.temperature_c, "the CPU's temperature", "no sensor in /sys/class/hwmon or thermal");
        warnings.expect(reading.energy_j, "the CPU's energy", self.rapl.why_silent());
        warnings.expect(reading.memory_used_bytes, "the memory in use", "/proc/self/status does not report it");
        reading
    }

    fn warnings(&mut self) -> Vec<String> {
        self.warnings.take()
    }
}

/// The mean clock of `cores`, in Hz.
pub(crate) fn clock(root: &FilesystemRoot, cores: &[usize]) -> Option<f64> {
    let of_core = |core: &usize| {
        let file = Path::new(FOLDER).join(format!("cpu{core}/cpufreq/scaling_cur_freq"));
        root.number::<f64>(file).map(|khz| khz * 1e3)
    };
    mean(cores.iter().filter_map(of_core)).or_else(|| {
        let info = root.text("/proc/cpuinfo")?;
        mean(info.lines().filter_map(|line| field(line, "cpu MHz")?.parse::<f64>().ok()).map(|mhz| mhz * 1e6))
    })
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

/// The hottest sensor of the processor, in degrees Celsius; both folders give thousandths.
fn temperature(root: &FilesystemRoot) -> Option<f64> {
    let named = |folder: &Path, file: &str, names: &[&str]| {
        root.text(folder.join(file)).is_some_and(|name| names.contains(&name.as_str()))
    };
    let is_input = |path: &Path| name_of(path).starts_with("temp") && name_of(path).ends_with("_input");
    let chips = root.entries("/sys/class/hwmon").into_iter().filter(|chip| named(chip, "name", &SENSORS));
    let sensors = chips.flat_map(|chip| root.entries(chip)).filter(|path| is_input(path));
    let hottest = |values: &mut dyn Iterator<Item = f64>| values.reduce(f64::max).map(|value| value / 1e3);
    hottest(&mut sensors.filter_map(|path| root.number(path))).or_else(|| {
        let zones = root.entries("/sys/class/thermal").into_iter().filter(|zone| named(zone, "type", &ZONES));
        hottest(&mut zones.filter_map(|zone| root.number(zone.join("temp"))))
    })
}

fn counts(root: &FilesystemRoot) -> (Option<u64>, Option<u64>) {
    let file = Path::new(FOLDER).join("cpu0/thermal_throttle/package_throttle_count");
    (root.number(file), cgroup::quota_stops(root))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::device::root::tests::planted;

    #[test]
    fn a_reading_is_the_files_in_si_units() {
        let (_guard, root) = planted(&[
            ("proc/self/status", "VmRSS:\t 2048 kB\nCpus_allowed_list:\t0-1\n"),
            ("sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "2000000\n"),
            ("sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq", "3000000\n"),
            // Not counted: the process may not run on this core.
            ("sys/devices/system/cpu/cpu2/cpufreq/scaling_cur_freq", "9000000\n"),
            ("sys/class/hwmon/hwmon0/name", "nvme\n"),
            ("sys/class/hwmon/hwmon0/temp1_input", "90000\n"),
            ("sys/class/hwmon/hwmon1/name", "coretemp\n"),
            ("sys/class/hwmon/hwmon1/temp1_input", "61000\n"),
            ("sys/class/hwmon/hwmon1/temp2_input", "58500\n"),
            ("sys/class/hwmon/hwmon1/temp1_max", "99000\n"),
        ]);
        let mut host = Host::open(root);
        let reading = host.read();
        assert_eq!(reading.cpu_clock_hz, Some(2.5e9));
        assert_eq!(reading.temperature_c, Some(61.0));
        assert_eq!(reading.memory_used_bytes, Some(2 << 20));
        assert_eq!((reading.sm_clock_hz, reading.energy_j, reading.throttle_reasons), (None, None, None));
        assert_eq!(host.warnings().len(), 1);
        host.read();
        assert!(host.warnings().is_empty());
    }

    #[test]
    fn without_cpufreq_and_hwmon_the_older_files_answer() {
        let (_guard, root) = planted(&[
            ("proc/cpuinfo", "processor: 0\ncpu MHz\t\t: 1000.5\n\nprocessor: 1\ncpu MHz\t\t: 2000.5\n"),
            ("sys/class/thermal/thermal_zone0/type", "acpitz\n"),
            ("sys/class/thermal/thermal_zone0/temp", "27800\n"),
            ("sys/class/thermal/thermal_zone1/type", "x86_pkg_temp\n"),
            ("sys/class/thermal/thermal_zone1/temp", "55000\n"),
        ]);
        let reading = Host::open(root).read();
        assert_eq!(reading.cpu_clock_hz, Some(1.5005e9));
        assert_eq!(reading.temperature_c, Some(55.0));
    }

    #[test]
    fn throttling_counts_since_the_previous_reading() {
        let heat = "sys/devices/system/cpu/cpu0/thermal_throttle/package_throttle_count";
        let (guard, root) =
            planted(&[(heat, "4\n"), ("proc/self/cgroup", "0::/\n"), ("sys/fs/cgroup/cpu.stat", "nr_throttled 0\n")]);
        let mut host = Host::open(root);
        assert_eq!(host.read().throttle_reasons.as_deref(), Some("none"));
        fs::write(guard.path().join(heat), "5\n").unwrap();
        fs::write(guard.path().join("sys/fs/cgroup/cpu.stat"), "nr_throttled 2\n").unwrap();
        assert_eq!(host.read().throttle_reasons.as_deref(), Some("cpu_thermal|cpu_quota"));
        assert_eq!(host.read().throttle_reasons.as_deref(), Some("none"));
    }

    #[test]
    fn a_machine_that_says_nothing_gives_a_reading_of_nothing() {
        let mut host = Host::open(FilesystemRoot::at("/nonexistent"));
        assert_eq!(host.read(), Covariates::default());
        assert_eq!(host.warnings().len(), 4);
    }
}
