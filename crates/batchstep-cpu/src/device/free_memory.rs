//! How much memory a process may still take, so that a workload that does not fit is refused before the system kills
//! the process.

use std::fs;
use std::path::{Path, PathBuf};

/// The bytes that this process may still take: the free memory of the machine or the room in its control groups,
/// whichever is less. `None` if the system does not report it.
pub fn bytes() -> Option<u64> {
    at(Path::new("/"))
}

/// `root` is where `/proc` and `/sys` are.
fn at(root: &Path) -> Option<u64> {
    let machine = meminfo(&fs::read_to_string(root.join("proc/meminfo")).ok()?)?;
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let rooms = groups.lines().filter_map(|line| group_room(root, line));
    Some(rooms.fold(machine, u64::min))
}

/// `MemAvailable`, in bytes: memory available without swapping.
fn meminfo(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

/// The least room in a control group and its ancestors. `line` is a line of `/proc/self/cgroup`: `0::/a/b` in version 2
/// and `4:memory:/a/b` in version 1. A group's own path may not be visible in a container, so its ancestors count as
/// well.
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

/// The limit minus the memory in use. File pages that have not been used for a while do not count: the system frees
/// them when memory gets short.
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
    fn the_least_of_the_machine_and_its_groups_is_free() {
        assert_eq!(at(machine(&[]).path()), None);
        // 600,000 - (300,000 - 50,000) in the group; its parent has no limit.
        let tighter = [
            ("proc/self/cgroup", "0::/a/b\n"),
            ("sys/fs/cgroup/a/memory.max", "max\n"),
            ("sys/fs/cgroup/a/b/memory.max", "600000\n"),
            ("sys/fs/cgroup/a/b/memory.current", "300000\n"),
            ("sys/fs/cgroup/a/b/memory.stat", "anon 1\ninactive_file 50000\n"),
        ];
        // In version 1, where only the group above is visible.
        let above = [
            ("proc/self/cgroup", "5:cpu:/x\n4:memory:/not/visible\n0::/\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "500000\n"),
            ("sys/fs/cgroup/memory/memory.usage_in_bytes", "100000\n"),
        ];
        let looser = [
            ("proc/self/cgroup", "0::/\n"),
            ("sys/fs/cgroup/memory.max", "9223372036854771712\n"),
            ("sys/fs/cgroup/memory.current", "100\n"),
        ];
        for (groups, free) in [(&[][..], 1_024_000), (&tighter, 350_000), (&above, 400_000), (&looser, 1_024_000)] {
            let files = [&[MEMINFO], groups].concat();
            assert_eq!(at(machine(&files).path()), Some(free), "{groups:?}");
        }
    }
}
