//! The energy that the processor packages consumed, from Intel's and AMD's running average power limit (RAPL) counters.
//!
//! Source: `/sys/class/powercap/intel-rapl:<n>/energy_uj` in microjoules, which wraps at `max_energy_range_uj`
//! (Documentation/power/powercap/powercap.rst of Linux). Since CVE-2020-8694 only root may read it on most machines.

use std::path::PathBuf;
use std::time::Instant;

use super::root::{FilesystemRoot, numbered};

/// The packages' counters, added up since they were opened.
#[derive(Debug)]
pub(crate) struct Rapl {
    packages: Vec<Package>,
    total_j: f64,
    read_at: Option<Instant>,
}

#[derive(Debug)]
struct Package {
    folder: PathBuf,
    range_uj: u64,
    last_uj: u64,
}

/// The packages' energy since they were opened, and their mean power since the previous reading.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Energy {
    pub total_j: f64,
    pub power_w: Option<f64>,
}

impl Rapl {
    /// Finds the packages; empty if there are none or none is readable.
    pub(crate) fn open(root: &FilesystemRoot) -> Self {
        // `intel-rapl:0` is a package; `intel-rapl:0:0` is a part of it and would be counted twice.
        let folders = root.entries("/sys/class/powercap").into_iter();
        let package = |folder: PathBuf| {
            numbered(&folder, "intel-rapl:")?;
            let last_uj = root.number(folder.join("energy_uj"))?;
            let range_uj = root.number(folder.join("max_energy_range_uj"))?;
            Some(Package { folder, range_uj, last_uj })
        };
        Self { packages: folders.filter_map(package).collect(), total_j: 0.0, read_at: None }
    }

    /// The energy now; `None` where any package has become unreadable, since a sum without it would be wrong.
    ///
    /// Two wraps between two readings look like one; at 200 W a wrap takes about twenty minutes.
    pub(crate) fn read(&mut self, root: &FilesystemRoot) -> Option<Energy> {
        if self.packages.is_empty() {
            return None;
        }
        let counts = self.packages.iter().map(|package| root.number(package.folder.join("energy_uj")));
        let now = counts.collect::<Option<Vec<u64>>>()?;
        let mut spent_uj = 0;
        for (package, now_uj) in self.packages.iter_mut().zip(now) {
            spent_uj += risen(package.last_uj, now_uj, package.range_uj);
            package.last_uj = now_uj;
        }
        let spent_j = spent_uj as f64 * 1e-6;
        self.total_j += spent_j;
        let seconds = self.read_at.replace(Instant::now()).map(|before| before.elapsed().as_secs_f64());
        let power_w = seconds.filter(|seconds| *seconds > 0.0).map(|seconds| spent_j / seconds);
        Some(Energy { total_j: self.total_j, power_w })
    }

    /// Why there is no energy, for a warning.
    pub(crate) fn why_silent(&self) -> &'static str {
        if self.packages.is_empty() {
            "no readable counter in /sys/class/powercap (most kernels let only root read it)"
        } else {
            "a counter in /sys/class/powercap can no longer be read"
        }
    }
}

/// The increase of a counter that returns to 0 after `range`.
fn risen(before: u64, now: u64, range: u64) -> u64 {
    if now >= before { now - before } else { range.saturating_sub(before) + now }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::device::root::tests::planted;

    #[test]
    fn energy_adds_up_over_packages_and_over_a_wrap() {
        let counter = "sys/class/powercap/intel-rapl:0/energy_uj";
        let (guard, root) = planted(&[
            (counter, "9000000\n"),
            ("sys/class/powercap/intel-rapl:0/max_energy_range_uj", "10000000\n"),
            ("sys/class/powercap/intel-rapl:0:0/energy_uj", "5\n"),
            ("sys/class/powercap/intel-rapl:0:0/max_energy_range_uj", "10000000\n"),
            ("sys/class/powercap/intel-rapl:1/energy_uj", "0\n"),
            ("sys/class/powercap/intel-rapl:1/max_energy_range_uj", "10000000\n"),
        ]);
        let mut rapl = Rapl::open(&root);
        assert_eq!(rapl.read(&root), Some(Energy { total_j: 0.0, power_w: None }));
        // 9 J, the wrap at 10 J, then 2 J: 3 J; and 4 J of the other package.
        fs::write(guard.path().join(counter), "2000000\n").unwrap();
        fs::write(guard.path().join("sys/class/powercap/intel-rapl:1/energy_uj"), "4000000\n").unwrap();
        let energy = rapl.read(&root).unwrap();
        assert!((energy.total_j - 7.0).abs() < 1e-12);
        assert!(energy.power_w.is_some_and(|watts| watts > 0.0));
        // With an unreadable package there is no sum; the energy of that time is counted when the package is readable
        // again.
        fs::remove_file(guard.path().join(counter)).unwrap();
        assert_eq!(rapl.read(&root), None);
        fs::write(guard.path().join(counter), "2500000\n").unwrap();
        assert!((rapl.read(&root).unwrap().total_j - 7.5).abs() < 1e-12);
    }

    #[test]
    fn without_counters_there_is_no_energy() {
        let (_guard, root) = planted(&[("sys/class/powercap/intel-rapl:0/name", "package-0\n")]);
        assert_eq!(Rapl::open(&root).read(&root), None);
    }
}
