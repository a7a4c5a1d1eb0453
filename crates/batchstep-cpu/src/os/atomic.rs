//! Files that a reader sees with their old contents or their new ones, never with a part: written beside their place, then
//! renamed.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Kind, Result};

/// The beginning of the name of an incomplete file. A process that is killed leaves such a file behind.
pub const TEMPORARY: &str = ".tmp-";

/// Lets `fill` write a file beside `path`, with the same extension, and gives it the name `path`.
///
/// # Errors
/// What `fill` says, or [`crate::error::Kind::Io`]; the temporary file is gone and the old contents stay.
pub fn replace(path: &Path, fill: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let temporary = beside(path);
    let renamed = || {
        fs::rename(&temporary, path).map_err(|e| match e.kind() {
            ErrorKind::NotFound => Error::new(Kind::Io, "the file was removed while it was being written")
                .at(path.display().to_string())
                .hint("keep other programs from clearing this folder meanwhile"),
            // Some mounts of object stores.
            ErrorKind::Unsupported => Error::io("rename the finished file", path, &e)
                .hint("this mount cannot rename files: run into a folder on a local disk with `--out DIR`, and copy it here at the end"),
            _ => Error::io("rename the finished file", path, &e),
        })
    };
    fill(&temporary).and_then(|()| renamed()).inspect_err(|_| drop(fs::remove_file(&temporary)))
}

/// Writes text that survives a power failure.
///
/// # Errors
/// [`crate::error::Kind::Io`], as [`replace`].
pub fn write_text(path: &Path, text: &str) -> Result<()> {
    let written = |temporary: &Path| fs::write(temporary, text).and_then(|()| File::open(temporary)?.sync_all());
    replace(path, |temporary| written(temporary).map_err(|e| Error::io("write the file", path, &e)))
}

/// The name contains the process ID and a unique number, so that two writers of the same file, processes or threads, do not
/// use the same temporary file.
fn beside(path: &Path) -> PathBuf {
    static WRITTEN: AtomicU64 = AtomicU64::new(0);
    let number = WRITTEN.fetch_add(1, Ordering::Relaxed);
    let mut name = OsString::from(format!("{TEMPORARY}{}-{number}-", std::process::id()));
    name.push(path.file_name().unwrap_or_default());
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_or_not_at_all() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.txt");
        write_text(&path, "old").expect("written");
        let half = replace(&path, |temporary| {
            fs::write(temporary, "ne").expect("written");
            assert_eq!(
                (fs::read_to_string(&path).expect("readable").as_str(), temporary.extension()),
                ("old", path.extension())
            );
            Err(Error::data("the other half is missing"))
        });
        assert!(half.is_err());
        let removed = replace(&path, |temporary| {
            fs::write(temporary, "new")
                .and_then(|()| fs::remove_file(temporary))
                .map_err(|e| Error::data(e.to_string()))
        });
        assert!(removed.expect_err("removed").to_string().contains("removed while it was being written"));
        assert_eq!(fs::read_to_string(&path).expect("readable"), "old");
        write_text(&path, "new").expect("written");
        assert_eq!(fs::read_to_string(&path).expect("readable"), "new");
        assert_eq!(folder.path().read_dir().expect("readable").count(), 1, "a temporary file is left");
    }

    #[test]
    fn two_writers_of_a_file_in_one_process_do_not_share_a_temporary() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.txt");
        replace(&path, |first| {
            fs::write(first, "first").expect("written");
            write_text(&path, "second").expect("written");
            assert_eq!(fs::read_to_string(first).expect("still there"), "first");
            Ok(())
        })
        .expect("written");
        assert_eq!(fs::read_to_string(&path).expect("readable"), "first");
    }

    #[cfg(unix)]
    #[test]
    fn a_name_that_is_not_utf_8_is_kept() {
        use std::os::unix::ffi::OsStrExt;
        let folder = tempfile::tempdir().expect("a folder");
        let name = std::ffi::OsStr::from_bytes(b"caf\xe9.txt");
        let path = folder.path().join(name);
        replace(&path, |temporary| {
            assert!(temporary.as_os_str().as_bytes().ends_with(b"-caf\xe9.txt"), "{temporary:?}");
            fs::write(temporary, "text").map_err(|e| Error::data(e.to_string()))
        })
        .expect("written");
        assert_eq!(fs::read_to_string(&path).expect("readable"), "text");
    }
}
