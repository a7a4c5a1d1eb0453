//! Which files the shared libraries of this process were loaded from.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The file from which an address of this process is mapped.
pub fn file_at(address: usize) -> Option<PathBuf> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    file_in(&maps, address)
}

/// Whether two paths lead to the same file, or to identical copies: WSL has libcuda.so, libcuda.so.1 and libcuda.so.1.1
/// as three files with the same bytes.
pub fn is_same_file(a: &Path, b: &Path) -> bool {
    let (Ok(of_a), Ok(of_b)) = (std::fs::metadata(a), std::fs::metadata(b)) else { return a == b };
    let identity = |of: &std::fs::Metadata| (of.dev(), of.ino());
    identity(&of_a) == identity(&of_b) || of_a.len() == of_b.len() && has_same_bytes(a, b).unwrap_or(false)
}

fn has_same_bytes(a: &Path, b: &Path) -> std::io::Result<bool> {
    let open = |path| Ok::<_, std::io::Error>(BufReader::with_capacity(1 << 16, File::open(path)?));
    let (mut a, mut b) = (open(a)?, open(b)?);
    loop {
        let (left, right) = (a.fill_buf()?, b.fill_buf()?);
        let both = left.len().min(right.len());
        if both == 0 || left[..both] != right[..both] {
            return Ok(left.is_empty() && right.is_empty());
        }
        a.consume(both);
        b.consume(both);
    }
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

/// The file from which a library was loaded into this process: the first file in `/proc/self/maps` whose name is
/// `file`, or `file` and a version.
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
    fn copies_of_one_file_count_as_one() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, bytes: &[u8]| {
            let path = folder.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            path
        };
        // Longer than the part that is read at a time, and different in the last byte.
        let bytes = vec![7; 100_000];
        let other = [&bytes[..99_999], &[8]].concat();
        let first = file("libcuda.so.1", &bytes);
        assert!(is_same_file(&first, &file("libcuda.so", &bytes)));
        assert!(!is_same_file(&first, &file("other", &other)) && !is_same_file(&first, &file("short", &bytes[1..])));
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&first, &link).unwrap();
        assert!(is_same_file(&first, &link) && !is_same_file(&first, &folder.path().join("missing")));
    }

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
