//! How much of the machine the process may use: CPUs by affinity, processor time and memory by control group.
//!
//! Sources: `/proc/self/status` (`Cpus_allowed_list`); `/proc/self/cgroup`, then `cpu.max`, `memory.max` and `cpu.stat` of
//! control groups 2, or `cpu.cfs_quota_us`, `cpu.cfs_period_us`, `memory.limit_in_bytes` and `cpu.stat` of version 1.
//! The tightest limit on the way up to the root applies.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::root::{FilesystemRoot, field};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ResourceLimits {
    /// The logical CPUs that the scheduler may put the process on, in ascending order.
    pub cpus: Vec<usize>,
    /// Processor seconds per second; `None`: no quota.
    pub quota_cores: Option<f64>,
    /// Bytes; `None`: only the machine's own limit.
    pub memory_limit_bytes: Option<u64>,
    /// How often the quota has stopped what runs in the control group, and the seconds for which it did; `None` without such counts.
    #[serde(default)]
    pub stopped: Option<(u64, f64)>,
}

impl ResourceLimits {
    pub fn read(root: &FilesystemRoot) -> Self {
        let groups = groups(root);
        let status = root.text("/proc/self/status").unwrap_or_default();
        let stopped_s = cpu_stats(root, &groups).filter_map(|stat| stopped_s(&stat)).reduce(|a, b| a + b);
        Self {
            cpus: field(&status, "Cpus_allowed_list").map(list).unwrap_or_default(),
            quota_cores: groups.iter().filter_map(|folder| quota(root, folder)).reduce(f64::min),
            memory_limit_bytes: groups.iter().filter_map(|folder| memory(root, folder)).min(),
            stopped: quota_stops(root).zip(stopped_s),
        }
    }
}

/// How often the control group's quota has stopped the process so far; `None` without such a count.
pub(crate) fn quota_stops(root: &FilesystemRoot) -> Option<u64> {
    let stops = |stat: String| field(&stat, "nr_throttled")?.parse::<u64>().ok();
    cpu_stats(root, &groups(root)).filter_map(stops).reduce(u64::saturating_add)
}

/// The numbers of a kernel list: `0-2,8` is 0, 1, 2, 8. Parts that are not numbers are left out.
pub(crate) fn list(text: &str) -> Vec<usize> {
    // No machine has more CPUs than this; a range beyond it is damage, not a fact.
    const MOST: usize = 1 << 16;
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.trim().parse::<usize>().ok()?, last.trim().parse::<usize>().ok()?);
        (last < MOST).then_some(first..=last)
    };
    text.split(',').filter_map(range).flatten().collect()
}

/// `0-3, 8`: the reverse, of numbers in ascending order.
pub fn ranges(numbers: &[usize]) -> String {
    let parts: Vec<String> = numbers
        .chunk_by(|a, b| a + 1 == *b)
        .map(|part| match part {
            [first, .., last] => format!("{first}-{last}"),
            single => single[0].to_string(),
        })
        .collect();
    parts.join(", ")
}

/// The folders of the process's control groups, from its own up to the root, of version 2 and of the controllers of
/// version 1: what one of them limits is in no file of the others.
fn groups(root: &FilesystemRoot) -> Vec<PathBuf> {
    let text = root.text("/proc/self/cgroup").unwrap_or_default();
    // Lines are `id:controllers:path`; control groups 2 have id 0 and no controllers.
    let path_of = |wanted: &str| {
        text.lines().find_map(|line| {
            let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
            controllers.split(',').any(|name| name == wanted).then_some(path)
        })
    };
    let mounts = [("", "sys/fs/cgroup"), ("cpu", "sys/fs/cgroup/cpu"), ("memory", "sys/fs/cgroup/memory")];
    let mounted = mounts.into_iter().filter_map(|(controller, mount)| Some((path_of(controller)?, mount)));
    // Inside a container the path is often that of the host and does not exist; its ancestors, the mount itself among
    // them, then hold the container's limits.
    let upwards = |(path, mount): (&str, &str)| -> Vec<PathBuf> {
        let own = Path::new(path.trim_start_matches('/'));
        own.ancestors().map(|part| root.path(Path::new(mount).join(part))).collect()
    };
    mounted.flat_map(upwards).collect()
}

fn cpu_stats(root: &FilesystemRoot, groups: &[PathBuf]) -> impl Iterator<Item = String> {
    groups.iter().filter_map(|folder| root.text(folder.join("cpu.stat")))
}

/// `throttled_usec` of version 2, `throttled_time` in nanoseconds of version 1.
fn stopped_s(stat: &str) -> Option<f64> {
    let number = |key: &str, unit: f64| Some(field(stat, key)?.parse::<f64>().ok()? * unit);
    number("throttled_usec", 1e-6).or_else(|| number("throttled_time", 1e-9))
}

/// `cpu.max` is `quota period` in microseconds, or `max period`; in version 1 a quota of -1 means none.
fn quota(root: &FilesystemRoot, folder: &Path) -> Option<f64> {
    let number = |file: &str| root.number::<f64>(folder.join(file));
    let (quota, period) = match root.text(folder.join("cpu.max")) {
        Some(text) => {
            let (quota, period) = text.split_once(' ')?;
            (quota.parse().ok()?, period.trim().parse().ok()?)
        }
        None => (number("cpu.cfs_quota_us")?, number("cpu.cfs_period_us")?),
    };
    (quota > 0.0 && period > 0.0).then(|| quota / period)
}

/// In bytes. Without a limit version 1 has the largest page-aligned i64, 2^63 - 4096; nothing above 2^62 is a limit.
fn memory(root: &FilesystemRoot, folder: &Path) -> Option<u64> {
    let of_version_1 = || root.number(folder.join("memory.limit_in_bytes")).filter(|&bytes: &u64| bytes < 1 << 62);
    root.number(folder.join("memory.max")).or_else(of_version_1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::root::tests::planted;

    #[test]
    fn a_kernel_list_is_read_with_its_ranges() {
        assert_eq!(list("0-2,8"), [0, 1, 2, 8]);
        assert_eq!(list("3"), [3]);
        assert_eq!((ranges(&[0, 1, 2, 3, 8, 10, 11]), ranges(&[])), ("0-3, 8, 10-11".to_owned(), String::new()));
        assert!(list("").is_empty() && list("0-99999999999").is_empty() && list("x-y").is_empty());
    }

    #[test]
    fn the_tightest_limit_on_the_way_up_holds_in_version_2() {
        let (_guard, root) = planted(&[
            ("proc/self/status", "Name:\tbatchstep\nCpus_allowed:\tf\nCpus_allowed_list:\t0-3\n"),
            ("proc/self/cgroup", "0::/system.slice/job.service\n"),
            ("sys/fs/cgroup/system.slice/job.service/cpu.max", "max 100000\n"),
            ("sys/fs/cgroup/system.slice/job.service/memory.max", "max\n"),
            (
                "sys/fs/cgroup/system.slice/job.service/cpu.stat",
                "usage_usec 5\nnr_throttled 3\nthrottled_usec 1500000\n",
            ),
            ("sys/fs/cgroup/system.slice/cpu.max", "250000 100000\n"),
            ("sys/fs/cgroup/system.slice/memory.max", "8589934592\n"),
        ]);
        let expected = ResourceLimits {
            cpus: vec![0, 1, 2, 3],
            quota_cores: Some(2.5),
            memory_limit_bytes: Some(8 << 30),
            stopped: Some((3, 1.5)),
        };
        assert_eq!(ResourceLimits::read(&root), expected);
        assert_eq!(quota_stops(&root), Some(3));
    }

    #[test]
    fn version_1_has_a_folder_for_each_controller() {
        let (_guard, root) = planted(&[
            ("proc/self/cgroup", "4:memory:/docker/abc\n2:cpu,cpuacct:/docker/abc\n0::/\n"),
            ("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "150000\n"),
            ("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
        ]);
        let limits = ResourceLimits::read(&root);
        assert_eq!(limits.quota_cores, Some(1.5));
        assert_eq!(limits.memory_limit_bytes, None);
        assert_eq!(quota_stops(&root), None);
    }
}
