//! The CUDA libraries of the GPU engine: where they are, their versions, and loading them in the right order.
//!
//! Nobody should have to set `LD_LIBRARY_PATH`. The libraries are opened by absolute path and kept open; code that
//! opens them later by soname, as cudarc and cuDNN do, gets the same ones. Each library is loaded after those that it
//! depends on.
//!
//! The driver belongs to the machine and is found elsewhere ([`super::driver`]).

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

pub use super::library::Library;
use super::loaded::loaded_path;
pub use super::search::Search;
use super::{driver, version};
use crate::error::{Error, Result};

/// The result of the search for one library.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LibraryReport {
    pub library: Library,
    /// Absolute.
    pub path: Option<PathBuf>,
    /// How it was found: `$CUDA_HOME`, `the system's loader`, `python3's packages`.
    pub origin: Option<String>,
    /// As the library itself reports it: `9.19.0`.
    pub version: Option<String>,
    /// Why it cannot be used; `None` where it is loaded.
    pub problem: Option<String>,
}

/// The libraries that were found, and kept open while this lives.
#[derive(Debug)]
pub struct Libraries {
    found: Vec<LibraryReport>,
    _open: Vec<libloading::Library>,
}

/// The libraries of this process: searched for and opened at the first call, and never closed.
pub fn load() -> &'static Libraries {
    static LIBRARIES: OnceLock<Libraries> = OnceLock::new();
    LIBRARIES.get_or_init(|| Libraries::open(&Search::system()))
}

/// Whether a library is loaded; where it is not, the test that asks is recorded as skipped.
#[cfg(test)]
pub(crate) fn is_loaded(library: Library) -> bool {
    let word = match library {
        Library::CublasLt => "cublaslt",
        Library::Nvrtc => "nvrtc",
        Library::Cudnn => "cudnn",
        other => panic!("no test needs {} alone", other.name()),
    };
    let problem = load().found().iter().find(|found| found.library == library).and_then(|found| found.problem.as_ref());
    if let Some(problem) = problem {
        crate::needs::missing(word, format!("{}: {problem}", library.name()));
    }
    problem.is_none()
}

impl Libraries {
    /// Opens what the search finds. Where a file does not load, the next candidate is tried; where none loads, the
    /// problem of the first is reported.
    pub fn open(search: &Search) -> Self {
        let mut found = Vec::new();
        let mut open = Vec::new();
        for library in Library::ALL {
            let (entry, handle) = open_one(search, library);
            found.push(entry);
            open.extend(handle);
        }
        Self { found, _open: open }
    }

    /// One entry for each of [`Library::ALL`], in that order.
    pub fn found(&self) -> &[LibraryReport] {
        &self.found
    }

    /// The entry of one library.
    pub fn get(&self, library: Library) -> Option<&Found> {
        self.found.iter().find(|found| found.library == library)
    }

    /// Fails where a library that the GPU engine needs is not loaded.
    ///
    /// # Errors [`crate::error::Kind::Device`], with the command that installs the first one missing.
    pub fn complete(&self) -> Result<()> {
        let needed = |found: &&LibraryReport| found.library != Library::NvrtcBuiltins;
        match self.found.iter().filter(needed).find(|found| found.problem.is_some()) {
            None => Ok(()),
            Some(LibraryReport { library, problem, .. }) => {
                let cuda = driver::driver().and_then(|driver| driver.cuda_version()).map(|version| version.0);
                let problem = problem.as_deref().unwrap_or_default();
                let what = format!("the GPU engine cannot run here: {}: {problem}", library.name());
                Err(Error::device(what).hint(library.remedy(cuda)))
            }
        }
    }
}

fn open_one(search: &Search, library: Library) -> (LibraryReport, Option<libloading::Library>) {
    let mut failed: Option<LibraryReport> = None;
    for candidate in search.candidates(library) {
        let entry = |path, version, problem| LibraryReport {
            library,
            path: Some(path),
            origin: Some(candidate.origin.clone()),
            version,
            problem,
        };
        // SAFETY: when loaded, CUDA's libraries only register their kernels. A user who points the search at another
        // library runs that library's code, as with LD_LIBRARY_PATH.
        match unsafe { libloading::Library::new(&candidate.path) } {
            Ok(handle) => {
                let path = if candidate.path.is_absolute() { Some(candidate.path.clone()) } else { None };
                let path = path.or_else(|| loaded_path(library.file())).unwrap_or(candidate.path);
                match version::read(library, &handle, &path) {
                    Ok(version) => return (entry(path, version, None), Some(handle)),
                    Err(why) => failed = failed.or_else(|| Some(entry(path, None, Some(why)))),
                }
            }
            // A soname that the loader does not know means that the library is not there, not that it is broken.
            Err(_) if !candidate.path.is_absolute() => {}
            Err(error) => {
                let why = format!("it does not load: {}", reason(&error, &candidate.path));
                failed = failed.or_else(|| Some(entry(candidate.path, None, Some(why))));
            }
        }
    }
    let missing =
        LibraryReport { library, path: None, origin: None, version: None, problem: Some("it was not found".into()) };
    (failed.unwrap_or(missing), None)
}

/// The loader's message without the path in front of it, which is reported separately.
fn reason(error: &libloading::Error, path: &Path) -> String {
    let text = error.to_string();
    text.strip_prefix(&format!("{}: ", path.display())).map_or(text.clone(), str::to_string)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_that_is_no_library_is_found_but_does_not_load() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("usr/local/cuda-13.0/lib64");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("libcudnn.so.9"), "").unwrap();
        let libraries = Libraries::open(&Search::new(root.path(), &|_| None));
        let cudnn = libraries.found().iter().find(|found| found.library == Library::Cudnn).unwrap();
        assert_eq!(cudnn.path.as_deref(), Some(folder.join("libcudnn.so.9").as_path()));
        assert_eq!(cudnn.origin.as_deref(), Some("/usr/local/cuda-13.0"));
        assert!(cudnn.problem.as_deref().is_some_and(|why| why.contains("does not load")), "{cudnn:?}");
        let nvrtc = libraries.found().iter().find(|found| found.library == Library::Nvrtc).unwrap();
        assert_eq!((nvrtc.path.as_ref(), nvrtc.problem.as_deref()), (None, Some("it was not found")));
    }

    #[test]
    fn a_missing_library_is_reported_with_the_command_that_installs_it() {
        let root = tempfile::tempdir().unwrap();
        let error = Libraries::open(&Search::new(root.path(), &|_| None)).complete().unwrap_err().to_string();
        assert!(error.contains("cuBLASLt: it was not found"), "{error}");
        assert!(error.contains("help: pip install nvidia-cublas"), "{error}");
        assert_eq!(Library::Cudnn.remedy(Some(12)), "pip install nvidia-cudnn-cu12");
        assert_eq!(Library::Cudnn.remedy(Some(13)), "pip install nvidia-cudnn-cu13");
    }

    #[test]
    fn this_machine_is_searched_once_and_without_failing() {
        assert_eq!(load().found().len(), Library::ALL.len());
    }
}
