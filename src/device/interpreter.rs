//! Which Python runs PyTorch.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Names the Python in place of the one on the `PATH`.
pub const VARIABLE: &str = "BATCHSTEP_PYTHON";

/// The Python that is asked for packages and runs PyTorch: the one that `BATCHSTEP_PYTHON` names, else `python3` on the
/// `PATH`, else that of the active virtual environment. It need not exist; starting it then fails with a message.
pub fn interpreter() -> PathBuf {
    choose(env::var_os(VARIABLE).as_deref(), env::var_os("PATH").as_deref(), env::var_os("VIRTUAL_ENV").as_deref())
}

fn choose(named: Option<&OsStr>, path: Option<&OsStr>, environment: Option<&OsStr>) -> PathBuf {
    if let Some(named) = named.filter(|named| !named.is_empty()) {
        return PathBuf::from(named);
    }
    let on_path = path.is_some_and(|path| env::split_paths(path).any(|folder| folder.join("python3").is_file()));
    match environment.map(|folder| Path::new(folder).join("bin/python")) {
        Some(own) if !on_path && own.is_file() => own,
        _ => PathBuf::from("python3"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_wins_then_the_path_then_the_environment() {
        let folder = tempfile::tempdir().unwrap();
        let (with, without, own) = (folder.path().join("a"), folder.path().join("b"), folder.path().join("v"));
        for file in [with.join("python3"), without.join("other"), own.join("bin/python")] {
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, "").unwrap();
        }
        let text = |path: &PathBuf| path.clone().into_os_string();
        let (with, without, venv) = (text(&with), text(&without), text(&own));
        assert_eq!(choose(Some(OsStr::new("/p")), Some(&with), Some(&venv)), PathBuf::from("/p"));
        assert_eq!(choose(Some(OsStr::new("")), Some(&with), Some(&venv)), PathBuf::from("python3"));
        assert_eq!(choose(None, Some(&without), Some(&venv)), own.join("bin/python"));
        assert_eq!(choose(None, Some(&without), None), PathBuf::from("python3"));
    }
}
