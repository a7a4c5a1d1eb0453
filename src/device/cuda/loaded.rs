//! Which files the shared libraries of this process were loaded from.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The file that an address of this process is mapped from.
pub fn file_at(address: usize) -> Option<PathBuf> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    file_in(&maps, address)
}

/// Whether two paths lead to one file.
pub fn is_same_file(a: &Path, b: &Path) -> bool {
    let identity = |path: &Path| std::fs::metadata(path).map(|of| (of.dev(), of.ino())).ok();
    a == b || identity(a).is_some_and(|a| Some(a) == identity(b))
}

fn file_in(maps: &str, address: usize) -> Option<PathBuf> {
    let holds = |line: &&str| {
        let (from, rest) = line.split_once('-')?;
        let to = rest.split(' ').next()?;
        let number = |text| usize::from_str_radix(text, 16).ok();
        Some((number(from)?..number(to)?).contains(&address))
    };
    let line = maps.lines().find(|line| holds(line).unwrap_or(false))?;
    line.find('/').map(|at| PathBuf::from(&line[at..]))
}

/// Where a library that is loaded into this process came from: the first file in `/proc/self/maps` whose name is `file`,
/// or `file` and a version.
pub(super) fn loaded_path(file: &str) -> Option<PathBuf> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    path_in(&maps, file)
}

fn path_in(maps: &str, file: &str) -> Option<PathBuf> {
    // address, permissions, offset, device, inode, path: the path may hold spaces, and begins at the first slash.
    let paths = maps.lines().filter_map(|line| line.find('/').map(|at| Path::new(&line[at..])));
    let is_it = |path: &&Path| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.strip_prefix(file).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    paths.into_iter().find(is_it).map(Path::to_path_buf)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loaded_library_is_found_in_the_memory_map() {
        let maps = "7f00-7f01 r--p 00000000 fe:00 12  /opt/my cuda/lib64/libcublasLt.so.13\n\
                    7f02-7f03 r--p 00000000 fe:00 13  /opt/my cuda/lib64/libcublas.so.13.1.0\n7ffc-7ffd rw-p 0 0 0 [stack]";
        assert_eq!(path_in(maps, "libcublas.so"), Some("/opt/my cuda/lib64/libcublas.so.13.1.0".into()));
        assert_eq!(path_in(maps, "libcudnn.so"), None);
        assert_eq!(file_in(maps, 0x7f02), Some("/opt/my cuda/lib64/libcublas.so.13.1.0".into()));
        assert_eq!((file_in(maps, 0x7f01), file_in(maps, 0x7ffc)), (None, None));
    }
}
