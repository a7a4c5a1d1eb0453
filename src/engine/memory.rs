//! How much memory there is, so that a cell that does not fit is refused and never killed.

use std::fs;
use std::path::{Path, PathBuf};

use super::Workload;
use crate::error::{Error, Kind, Result};
use crate::network::Network;
use crate::settings::DataPath;

/// A reserve for thread stacks, scratch buffers and the allocator's overhead.
const SLACK: u64 = 64 << 20;

/// Refuses a step that needs so many bytes more than this process has, where they are not free. Where the system does not say
/// what is free, nothing is refused.
///
/// # Errors
/// [`Kind::OutOfMemory`], with both numbers.
pub fn check(needed: u64) -> Result<()> {
    match available(Path::new("/")) {
        Some(free) if needed > free => Err(refusal(needed, free)),
        _ => Ok(()),
    }
}

/// Refuses a workload whose step does not fit in memory, when `held` bytes of what it takes are in this process's hands
/// already.
///
/// # Errors
/// As [`check`].
pub fn check_step(workload: &Workload, bytes_per_scalar: u64, held: u64) -> Result<()> {
    check(step_bytes(workload, bytes_per_scalar).saturating_sub(held))
}

/// The peak of a step: the network's own estimate, which counts outputs of rectifiers that the CPU engine keeps in the place of
/// their sources, and room for a copy of one gradient in another order. A sixth on top covers slots that are
/// larger than the gradients in them and what the allocator keeps. On the CPU engine VGG16 with SGD and batch size 1 took 0.32 GiB at 3x32x32,
/// of which 0.25 are parameters and their gradients, and 1.17 GiB at 3x224x224, of which 1.03 are.
fn step_bytes(workload: &Workload, bytes_per_scalar: u64) -> u64 {
    let Workload { network, batch_size, settings } = workload;
    let copies = settings.optimizer.state_copies();
    let copy = largest_activation(network).saturating_mul(*batch_size as u64).saturating_mul(4);
    let host = match settings.data {
        DataPath::Resident => 0,
        _ => (network.input().count() as u64).saturating_mul(4 * *batch_size as u64),
    };
    let single = network.training_bytes(*batch_size, copies).saturating_add(copy).saturating_add(host);
    let bytes = single.saturating_mul(bytes_per_scalar / 4);
    bytes.saturating_add(bytes / 6).saturating_add(SLACK)
}

fn largest_activation(network: &Network) -> u64 {
    network.layers.iter().map(|layer| layer.output.count() as u64).max().unwrap_or(0)
}

fn refusal(needed: u64, free: u64) -> Error {
    let gib = |bytes: u64| bytes as f64 / (1u64 << 30) as f64;
    let what = format!("the step needs about {:.2} GiB more, and {:.2} GiB are free", gib(needed), gib(free));
    Error::new(Kind::OutOfMemory, what).hint("use a smaller batch or input, or an optimizer that keeps less state")
}

/// The bytes that this process may still take: what the machine has left, or its control groups, whichever is less. `root`
/// is where `/proc` and `/sys` are.
fn available(root: &Path) -> Option<u64> {
    let machine = meminfo(&fs::read_to_string(root.join("proc/meminfo")).ok()?)?;
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let rooms = groups.lines().filter_map(|line| group_room(root, line));
    Some(rooms.fold(machine, u64::min))
}

/// `MemAvailable`, in bytes: what can be had without swapping.
fn meminfo(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

/// The least room in a control group and those above it; `line` is one of `/proc/self/cgroup`, `0::/a/b` in version 2 and
/// `4:memory:/a/b` in version 1. A group's own path may not be visible in a container, so those above count as well.
fn group_room(root: &Path, line: &str) -> Option<u64> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (controllers, path) = (fields.next()?, fields.next()?);
    let (mount, names) = match controllers {
        "" => ("sys/fs/cgroup", ["memory.max", "memory.current", "inactive_file"]),
        _ if controllers.split(',').any(|name| name == "memory") => {
            ("sys/fs/cgroup/memory", ["memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"])
        }
        _ => return None,
    };
    let folder = root.join(mount).join(path.trim_start_matches('/'));
    let upwards = folder.ancestors().take_while(|folder| folder.starts_with(root.join(mount))).map(PathBuf::from);
    upwards.filter_map(|folder| folder_room(&folder, names)).min()
}

/// The limit less what is used, but for file pages that nobody has used for a while: those go when memory gets short.
fn folder_room(folder: &Path, [limit, usage, inactive]: [&str; 3]) -> Option<u64> {
    let number = |name: &str| fs::read_to_string(folder.join(name)).ok()?.trim().parse::<u64>().ok();
    let (limit, usage) = (number(limit)?, number(usage)?);
    let stat = fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
    let mut fields = stat.lines().filter_map(|line| line.split_once(' '));
    let cache = fields.find(|(key, _)| *key == inactive).and_then(|(_, value)| value.trim().parse().ok()).unwrap_or(0);
    Some(limit.saturating_sub(usage.saturating_sub(cache)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    const MEMINFO: (&str, &str) = ("proc/meminfo", "MemTotal:  2000 kB\nMemFree: 10 kB\nMemAvailable:    1000 kB\n");

    #[test]
    fn a_machine_without_groups_has_what_meminfo_says() {
        assert_eq!(available(machine(&[MEMINFO]).path()), Some(1_024_000));
        assert_eq!(available(machine(&[]).path()), None);
    }

    #[test]
    fn a_tighter_group_wins_in_version_2() {
        // 600,000 - (300,000 - 50,000) in the group; its parent has no limit.
        let root = machine(&[
            MEMINFO,
            ("proc/self/cgroup", "0::/a/b\n"),
            ("sys/fs/cgroup/a/memory.max", "max\n"),
            ("sys/fs/cgroup/a/b/memory.max", "600000\n"),
            ("sys/fs/cgroup/a/b/memory.current", "300000\n"),
            ("sys/fs/cgroup/a/b/memory.stat", "anon 1\ninactive_file 50000\n"),
        ]);
        assert_eq!(available(root.path()), Some(350_000));
    }

    #[test]
    fn the_group_above_counts_in_version_1() {
        let root = machine(&[
            MEMINFO,
            ("proc/self/cgroup", "5:cpu:/x\n4:memory:/not/visible\n0::/\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "500000\n"),
            ("sys/fs/cgroup/memory/memory.usage_in_bytes", "100000\n"),
        ]);
        assert_eq!(available(root.path()), Some(400_000));
    }

    #[test]
    fn a_looser_group_changes_nothing() {
        let root = machine(&[
            MEMINFO,
            ("proc/self/cgroup", "0::/\n"),
            ("sys/fs/cgroup/memory.max", "9223372036854771712\n"),
            ("sys/fs/cgroup/memory.current", "100\n"),
        ]);
        assert_eq!(available(root.path()), Some(1_024_000));
    }
}
