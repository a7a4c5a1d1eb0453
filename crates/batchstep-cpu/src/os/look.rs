//! Looking at the file system. "Nothing is there" and "it could not be looked at" are two answers: a disk, a mount or a process
//! without file descriptors that fails for a moment must never pass for an empty folder.

use std::fs::{self, DirEntry, Metadata};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use crate::error::{Error, Kind, Result};

/// Whether there is a file at `path`, links followed.
///
/// # Errors
/// [`Kind::Io`] where that could not be found out.
pub fn is_file(path: &Path) -> Result<bool> {
    Ok(metadata(path)?.is_some_and(|facts| facts.is_file()))
}

/// Whether there is a folder at `path`, links followed.
///
/// # Errors
/// As [`is_file`].
pub fn is_folder(path: &Path) -> Result<bool> {
    Ok(metadata(path)?.is_some_and(|facts| facts.is_dir()))
}

/// Whether there is anything at `path`, a link that leads nowhere included.
///
/// # Errors
/// As [`is_file`].
pub fn is_there(path: &Path) -> Result<bool> {
    Ok(unless_missing(fs::symlink_metadata(path), path)?.is_some())
}

fn metadata(path: &Path) -> Result<Option<Metadata>> {
    unless_missing(fs::metadata(path), path)
}

/// The entries of a folder; empty if there is no such folder.
///
/// # Errors
/// [`Kind::Io`] where it, or one of its entries, could not be read.
pub fn entries(folder: &Path) -> Result<Vec<DirEntry>> {
    let Some(entries) = unless_missing(folder.read_dir(), folder)? else { return Ok(Vec::new()) };
    entries.collect::<io::Result<_>>().map_err(|e| Error::io("list the folder", folder, &e))
}

/// The paths in a folder in the order of their names, without hidden files.
///
/// # Errors
/// [`Kind::Io`] where it, or one of its entries, could not be read, also where there is no such folder.
pub fn visible(folder: &Path) -> Result<Vec<PathBuf>> {
    let paths = folder.read_dir().and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect());
    let mut paths: Vec<PathBuf> = paths.map_err(|e| Error::io("list the folder", folder, &e))?;
    paths.retain(|path| !path.file_name().unwrap_or_default().to_string_lossy().starts_with('.'));
    paths.sort();
    Ok(paths)
}

/// The text of a file; `None` where there is no such file.
///
/// # Errors
/// [`Kind::Io`] where it could not be read, [`Kind::Data`] where it is not UTF-8.
pub fn text(path: &Path) -> Result<Option<String>> {
    let Some(bytes) = bytes(path)? else { return Ok(None) };
    let text = String::from_utf8(bytes);
    text.map(Some).map_err(|_| Error::data("this file is not UTF-8 text").at(path.display().to_string()))
}

/// The bytes of a file; `None` where there is no such file.
///
/// # Errors
/// [`Kind::Io`] where it could not be read.
pub fn bytes(path: &Path) -> Result<Option<Vec<u8>>> {
    unless_missing(fs::read(path), path)
}

/// Refuses a symbolic link at a place where only the program itself makes files: following it would write or delete elsewhere.
///
/// # Errors
/// [`Kind::Conflict`] where it is one; [`Kind::Io`].
pub fn refuse_link(path: &Path) -> Result<()> {
    let facts = unless_missing(fs::symlink_metadata(path), path)?;
    if !facts.is_some_and(|facts| facts.is_symlink()) {
        return Ok(());
    }
    Err(Error::new(Kind::Conflict, "this is a symbolic link, and batchstep neither writes nor deletes behind one")
        .at(path.display().to_string())
        .hint("remove the link, or choose another folder with `--out DIR`"))
}

fn unless_missing<T>(looked: io::Result<T>, path: &Path) -> Result<Option<T>> {
    match looked {
        Ok(found) => Ok(Some(found)),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(Error::io("look at", path, &error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_file_is_absent_and_an_unreadable_one_is_an_error() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("a");
        fs::write(&file, "x").expect("written");
        assert!(is_file(&file).expect("looked") && !is_folder(&file).expect("looked"));
        let below = file.join("b");
        assert!(!is_there(&below).expect("looked") && entries(&below).expect("looked").is_empty());
        assert_eq!(text(&file).expect("read"), Some("x".to_owned()));
        assert_eq!(text(&folder.path().join("none")).expect("read"), None);
        // A name longer than any file system has.
        let long = folder.path().join("n".repeat(5000));
        let error = is_file(&long).expect_err("it cannot be looked at");
        assert_eq!(error.kind(), Kind::Io, "{error}");
        assert!(is_there(&long).is_err() && entries(&long).is_err() && text(&long).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_refused_wherever_it_leads() {
        let folder = tempfile::tempdir().expect("a folder");
        let link = folder.path().join("link");
        refuse_link(&link).expect("nothing is there");
        std::os::unix::fs::symlink("nowhere", &link).expect("linked");
        assert!(is_there(&link).expect("looked"));
        assert_eq!(refuse_link(&link).expect_err("refused").kind(), Kind::Conflict);
    }
}
