//! Results on disk that the next process need not work out again: compiled kernels, comparisons with a reference.
//!
//! `$XDG_CACHE_HOME/batchstep/<what>` (else `~/.cache`). Any problem with a file or the folder costs the work once more and
//! nothing else.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::os::atomic;

/// A folder of results of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache {
    folder: Option<PathBuf>,
}

/// The first bytes of every file, with the version of its format.
const MAGIC: &[u8; 16] = b"batchstep-code-1";

impl Cache {
    /// The user's; none where there is neither `$XDG_CACHE_HOME` nor `$HOME`.
    pub fn of_user(what: &str, variable: &dyn Fn(&str) -> Option<OsString>) -> Self {
        let absolute = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let root = absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")));
        Self { folder: root.map(|root| root.join("batchstep").join(what)) }
    }

    /// What was stored for a key, everything that it depends on, where its file exists and is intact.
    pub fn get(&self, key: &[impl AsRef<str>]) -> Option<Vec<u8>> {
        let bytes = fs::read(self.file(key)?).ok()?;
        let (magic, rest) = bytes.split_at_checked(MAGIC.len())?;
        let (sums, content) = rest.split_at_checked(16)?;
        let expected = [of_key(SECOND, key), fingerprint(SECOND, content)].map(u64::to_le_bytes).concat();
        (magic == MAGIC && sums == expected && !content.is_empty()).then(|| content.to_vec())
    }

    /// Stores a result; where that fails, it is worked out again next time.
    pub fn put(&self, key: &[impl AsRef<str>], content: &[u8]) {
        let Some(file) = self.file(key) else { return };
        let Some(folder) = file.parent() else { return };
        let sums = [of_key(SECOND, key), fingerprint(SECOND, content)].map(u64::to_le_bytes).concat();
        let whole = [MAGIC.as_slice(), &sums, content].concat();
        let write = |path: &Path| fs::write(path, whole).map_err(|e| Error::io("keep the result", path, &e));
        let _ = fs::create_dir_all(folder).map(|()| atomic::replace(&file, write));
    }

    fn file(&self, key: &[impl AsRef<str>]) -> Option<PathBuf> {
        let folder: &Path = self.folder.as_deref()?;
        Some(folder.join(format!("{:016x}", of_key(FIRST, key))))
    }
}

/// The fingerprint of everything that a result depends on.
fn of_key(start: u64, key: &[impl AsRef<str>]) -> u64 {
    let parts = key.iter().map(|part| part.as_ref().as_bytes());
    // The length distinguishes "ab", "c" from "a", "bc".
    parts.fold(start, |sum, part| fingerprint(fingerprint(sum, &part.len().to_le_bytes()), part))
}

/// This build: two builds of a version need not compute the same.
pub fn program() -> String {
    let built = std::env::current_exe().ok().and_then(|file| version_of_file(&file));
    format!("batchstep {}, {}", env!("CARGO_PKG_VERSION"), built.unwrap_or_default())
}

/// What tells one version of a file from another: its size and when it was written.
pub fn version_of_file(file: &Path) -> Option<String> {
    let file = file.metadata().ok()?;
    let since = file.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
    Some(format!("{} bytes, {} s", file.len(), since.as_secs()))
}

/// FNV-1a's offset basis, and another start for a second, independent sum.
const FIRST: u64 = 0xCBF2_9CE4_8422_2325;
const SECOND: u64 = 0x9E37_79B9_7F4A_7C15;

/// FNV-1a of 64 bits (Fowler, Noll, Vo): the same in every version of the program, as Rust's own hashes are not.
fn fingerprint(start: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(start, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01B3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(folder: &Path) -> Cache {
        let home = folder.as_os_str().to_os_string();
        Cache::of_user("kernels", &move |name| (name == "XDG_CACHE_HOME").then(|| home.clone()))
    }

    fn only_file(folder: &Path) -> PathBuf {
        let mut files = fs::read_dir(folder.join("batchstep/kernels")).unwrap();
        files.next().unwrap().unwrap().path()
    }

    // The test vectors of FNV-1a, 64 bits, for "" and "a" (draft-eastlake-fnv).
    #[test]
    fn the_sum_is_fnv_1a() {
        assert_eq!(fingerprint(FIRST, b""), 0xCBF2_9CE4_8422_2325);
        assert_eq!(fingerprint(FIRST, b"a"), 0xAF63_DC4C_8601_EC8C);
    }

    #[test]
    fn code_is_found_only_under_its_own_key() {
        let folder = tempfile::tempdir().unwrap();
        let cache = cache(folder.path());
        let key = ["13.0", "sm_90", "void f();"];
        assert_eq!(cache.get(&key), None);
        cache.put(&key, b"\x7fELF code");
        assert_eq!(cache.get(&key).as_deref(), Some(b"\x7fELF code".as_slice()));
        for other in [["13.1", "sm_90", "void f();"], ["13.0", "sm_80", "void f();"], ["13.0s", "m_90", "void f();"]] {
            assert_eq!(cache.get(&other), None);
        }
    }

    #[test]
    fn a_damaged_file_is_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let cache = cache(folder.path());
        let key = ["13.0", "s"];
        cache.put(&key, b"some code that is long enough");
        let file = only_file(folder.path());
        let whole = fs::read(&file).unwrap();
        for damaged in [&whole[..whole.len() - 1], &whole[..20], &[][..], &[&whole[..], &[0]].concat()] {
            fs::write(&file, damaged).unwrap();
            assert_eq!(cache.get(&key), None, "{} bytes", damaged.len());
        }
        let mut turned = whole.clone();
        turned[40] ^= 1;
        fs::write(&file, &turned).unwrap();
        assert_eq!(cache.get(&key), None);
        fs::write(&file, &whole).unwrap();
        assert!(cache.get(&key).is_some());
    }

    #[test]
    fn without_a_folder_that_can_be_written_nothing_is_stored_and_nothing_fails() {
        let homeless = Cache::of_user("kernels", &|_| None);
        assert_eq!(Cache::of_user("kernels", &|_| Some("relative".into())), homeless);
        let file = tempfile::NamedTempFile::new().unwrap();
        for cache in [homeless, cache(file.path())] {
            let key = ["13.0", "s"];
            cache.put(&key, b"code");
            assert_eq!(cache.get(&key), None);
        }
    }
}
