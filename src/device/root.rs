//! A file system seen from a root: `/` on a real machine, a folder of a few files in a test.
//!
//! Everything under `/proc` and `/sys` is read through it, and a file that is missing, unreadable or not what it should
//! be is `None`: the kernel leaves files out freely, and containers leave out more.

use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilesystemRoot {
    root: PathBuf,
}

impl FilesystemRoot {
    pub fn system() -> Self {
        Self::at("/")
    }

    /// The root that begins at `root`.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Where `path` (with or without its leading slash) lies. A path that an earlier call gave is taken as it is.
    pub fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        if path.starts_with(&self.root) {
            return path.to_path_buf();
        }
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// The text of a file, without the white space around it.
    pub fn text(&self, path: impl AsRef<Path>) -> Option<String> {
        fs::read_to_string(self.path(path)).ok().map(|text| text.trim().to_string())
    }

    pub fn number<T: FromStr>(&self, path: impl AsRef<Path>) -> Option<T> {
        self.text(path)?.parse().ok()
    }

    /// The entries of a folder, sorted by name; empty if there is no such folder.
    pub fn entries(&self, path: impl AsRef<Path>) -> Vec<PathBuf> {
        let Ok(folder) = fs::read_dir(self.path(path)) else { return Vec::new() };
        let mut entries: Vec<PathBuf> = folder.flatten().map(|entry| entry.path()).collect();
        entries.sort();
        entries
    }
}

/// The last part of a path, as text.
pub(crate) fn name_of(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

/// The number behind `prefix` in the last part of a path: `cpu12`, `node1`.
pub(crate) fn numbered(path: &Path, prefix: &str) -> Option<u32> {
    name_of(path).strip_prefix(prefix)?.parse().ok()
}

/// The value of `key` in lines of `key: value` or `key value`, as `/proc` writes them.
pub(crate) fn field<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let rest = line.strip_prefix(key)?;
        let value =
            rest.trim_start().strip_prefix(':').or_else(|| rest.starts_with(char::is_whitespace).then_some(rest));
        value.map(str::trim)
    })
}

/// The bytes of a `/proc` value in kB (which are KiB there): `1772 kB` is 1814528.
pub(crate) fn kilobytes(value: &str) -> Option<u64> {
    value.strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A root with the given files, and links where the text is `-> target`, in a folder that is removed with the
    /// returned guard.
    pub(crate) fn planted<P: AsRef<Path>, T: AsRef<str>>(files: &[(P, T)]) -> (tempfile::TempDir, FilesystemRoot) {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let (path, text) = (folder.path().join(path), text.as_ref());
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            match text.strip_prefix("-> ") {
                Some(target) => std::os::unix::fs::symlink(target, path).unwrap(),
                None => fs::write(path, text).unwrap(),
            }
        }
        let root = FilesystemRoot::at(folder.path());
        (folder, root)
    }

    /// The files of a real machine; `tests/fixtures/topology` says whose.
    pub(crate) fn fixture(name: &str) -> Vec<(String, String)> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/topology").join(name);
        let text = fs::read_to_string(path).expect("a fixture");
        let files = text.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once('\t'));
        files.map(|(path, text)| (path.to_owned(), text.to_owned())).collect()
    }

    #[test]
    fn a_missing_or_malformed_file_gives_none() {
        let (_guard, root) = planted(&[("sys/a", "12\n"), ("sys/b", "Unknown\n")]);
        assert_eq!(root.number::<u32>("/sys/a"), Some(12));
        assert_eq!(root.number::<u32>("sys/b"), None);
        assert_eq!(root.number::<u32>("sys/c"), None);
        assert!(root.entries("nowhere").is_empty());
        assert_eq!(root.entries("sys").len(), 2);
    }

    #[test]
    fn a_field_is_found_by_its_whole_key() {
        let text = "VmRSS:\t    1772 kB\ncpu MHz\t\t: 2299.998\nnr_throttled 7";
        assert_eq!(field(text, "VmRSS").and_then(kilobytes), Some(1772 * 1024));
        assert_eq!(field(text, "cpu MHz"), Some("2299.998"));
        assert_eq!(field(text, "nr_throttled"), Some("7"));
        assert_eq!(field(text, "nr_"), None);
    }
}
