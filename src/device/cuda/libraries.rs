//! The CUDA libraries of the GPU engine: where they are, their versions, and loading them in the right order.
//!
//! Users should not have to set `LD_LIBRARY_PATH`. The libraries are opened by absolute path and kept open; code that
//! opens them later by soname, as cudarc and cuDNN do, gets the same ones. Each library is loaded after those on which
//! it depends.
//!
//! The driver belongs to the machine and is found elsewhere ([`super::driver`]).

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use super::compatibility::too_new;
pub use super::library::Library;
use super::loaded::{file_at, is_same_file, loaded_path};
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
    /// The candidates before it that cannot be used.
    #[serde(default)]
    pub passed_over: Vec<PassedOver>,
}

/// A file that was not taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PassedOver {
    pub path: PathBuf,
    pub why: String,
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
    LIBRARIES.get_or_init(|| {
        let newest = driver::driver().and_then(|driver| driver.cuda_version());
        Libraries::open(&Search::system(), newest)
    })
}

/// Whether a library is loaded; if not, the calling test is recorded as skipped.
#[cfg(test)]
pub(crate) fn is_loaded(library: Library) -> bool {
    let word = match library {
        Library::CublasLt => "cublaslt",
        Library::Nvrtc => "nvrtc",
        Library::Cudnn => "cudnn",
        other => panic!("no test needs {} alone", other.name()),
    };
    let problem = load().get(library).and_then(|found| found.problem.as_ref());
    if let Some(problem) = problem {
        crate::needs::missing(word, format!("{}: {problem}", library.name()));
    }
    problem.is_none()
}

impl Libraries {
    /// Opens the libraries that the search finds. If a file does not load, or is built for a newer major version of
    /// CUDA than `newest`, the newest that the driver runs, the next candidate is tried. If none is left, the problem
    /// of the first is reported.
    pub fn open(search: &Search, newest: Option<(u32, u32)>) -> Self {
        let mut found = Vec::new();
        let mut open = Vec::new();
        for library in Library::ALL {
            let (entry, handle) = open_one(search, library, newest);
            found.push(entry);
            open.extend(handle);
        }
        Self { found, _open: open }
    }

    /// One entry for each of [`Library::ALL`], in that order.
    pub fn found(&self) -> &[LibraryReport] {
        &self.found
    }

    pub fn get(&self, library: Library) -> Option<&LibraryReport> {
        self.found.iter().find(|found| found.library == library)
    }

    /// Fails where a library that the GPU engine needs is not loaded.
    ///
    /// # Errors
    /// [`crate::error::Kind::Device`], with the command that installs the first one missing.
    pub fn complete(&self) -> Result<()> {
        let needed = |found: &&LibraryReport| found.library != Library::NvrtcBuiltins;
        match self.found.iter().filter(needed).find(|found| found.problem.is_some()) {
            None => Ok(()),
            Some(LibraryReport { library, problem, .. }) => {
                let cuda = driver::driver().and_then(|driver| driver.cuda_version()).map(|version| version.0);
                let problem = problem.as_deref().unwrap_or_default();
                let what = format!("the GPU engine cannot run here: {}: {problem}", library.name());
                let remedy = library.remedy(cuda);
                Err(Error::device(what)
                    .hint(format!("{remedy}, in a virtual environment; `batchstep doctor --fix` prints every command")))
            }
        }
    }
}

fn open_one(
    search: &Search,
    library: Library,
    newest: Option<(u32, u32)>,
) -> (LibraryReport, Option<libloading::Library>) {
    let mut passed_over: Vec<PassedOver> = Vec::new();
    let mut first_origin = None;
    for candidate in search.candidates(library) {
        // The links of a soname lead to the same file.
        let is_known = |passed: &PassedOver| is_same_file(&passed.path, &candidate.path);
        if passed_over.iter().any(is_known) {
            continue;
        }
        match open_candidate(library, &candidate.path, newest) {
            Ok(LoadedLibrary { handle, path, version }) => {
                let (path, origin) = (Some(path), Some(candidate.origin));
                return (LibraryReport { library, path, origin, version, problem: None, passed_over }, Some(handle));
            }
            // A soname that the loader does not know means that the library is missing, not that it is broken.
            Err(None) => {}
            Err(Some(refused)) => {
                first_origin.get_or_insert(candidate.origin);
                passed_over.push(refused);
            }
        }
    }
    let missing = LibraryReport {
        library,
        path: None,
        origin: None,
        version: None,
        problem: Some("it was not found".into()),
        passed_over: Vec::new(),
    };
    if passed_over.is_empty() {
        return (missing, None);
    }
    let PassedOver { path, why } = passed_over.remove(0);
    (LibraryReport { path: Some(path), origin: first_origin, problem: Some(why), passed_over, ..missing }, None)
}

struct LoadedLibrary {
    handle: libloading::Library,
    path: PathBuf,
    version: Option<String>,
}

/// Opens one candidate; `None` where there is no such file.
fn open_candidate(
    library: Library,
    asked: &Path,
    newest: Option<(u32, u32)>,
) -> Result<LoadedLibrary, Option<PassedOver>> {
    let passed = |path: &Path, why: String| Some(PassedOver { path: path.to_path_buf(), why });
    // SAFETY: when loaded, CUDA's libraries only register their kernels. A user who points the search at another
    // library runs that library's code, as with LD_LIBRARY_PATH.
    let handle = match unsafe { libloading::Library::new(asked) } {
        Ok(handle) => handle,
        // A bare name: if the file exists but does not load, the search finds it again by its path.
        Err(_) if !asked.is_absolute() => return Err(None),
        Err(error) => return Err(passed(asked, format!("it does not load: {}", reason(&error, asked)))),
    };
    let named = Some(asked).filter(|path| path.is_absolute()).map(Path::to_path_buf);
    // Another version may be mapped as well, because a third library needs it.
    let path = named.or_else(|| file_of(library, &handle)).or_else(|| loaded_path(library.file()));
    let path = path.unwrap_or(asked.to_path_buf());
    let version = version::read(library, &handle, &path).map_err(|why| passed(&path, why))?;
    match version.cuda.zip(newest).and_then(|(cuda, newest)| too_new(cuda, newest)) {
        None => Ok(LoadedLibrary { handle, path, version: version.text }),
        Some(why) => {
            let which = version.text.map_or(String::new(), |text| format!("{text}: "));
            Err(passed(&path, format!("{which}{why}")))
        }
    }
}

/// The file from which a library's function comes.
fn file_of(library: Library, handle: &libloading::Library) -> Option<PathBuf> {
    // SAFETY: only the address is taken; nothing is called.
    let found = unsafe { handle.get::<unsafe extern "C" fn()>(library.function()?.as_bytes()) };
    file_at(*found.ok()? as usize)
}

/// The loader's message without the path in front of it, which is reported separately.
fn reason(error: &libloading::Error, path: &Path) -> String {
    let text = std::error::Error::source(error).map_or_else(|| error.to_string(), |cause| cause.to_string());
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
        let libraries = Libraries::open(&Search::new(root.path(), &|_| None), None);
        let cudnn = libraries.get(Library::Cudnn).unwrap();
        assert_eq!(cudnn.path.as_deref(), Some(folder.join("libcudnn.so.9").as_path()));
        assert_eq!(cudnn.origin.as_deref(), Some("/usr/local/cuda-13.0"));
        assert!(cudnn.problem.as_deref().is_some_and(|why| why.starts_with("it does not load: ")), "{cudnn:?}");
        assert!(!cudnn.problem.as_deref().is_some_and(|why| why.contains("dlopen failed")), "the loader's own words");
        let nvrtc = libraries.get(Library::Nvrtc).unwrap();
        assert_eq!((nvrtc.path.as_ref(), nvrtc.problem.as_deref()), (None, Some("it was not found")));
    }

    #[test]
    fn a_missing_library_is_reported_with_the_command_that_installs_it() {
        let root = tempfile::tempdir().unwrap();
        let error = Libraries::open(&Search::new(root.path(), &|_| None), None).complete().unwrap_err().to_string();
        assert!(error.contains("cuBLASLt: it was not found"), "{error}");
        assert!(error.contains("help: pip install nvidia-cublas"), "{error}");
        assert_eq!(Library::Cudnn.remedy(Some(12)), "pip install nvidia-cudnn-cu12");
        assert_eq!(Library::Cudnn.remedy(Some(13)), "pip install nvidia-cudnn-cu13");
    }

    /// Makes a library that only reports its version; false if there is no compiler.
    fn plant(root: &Path, path: &str, version: &str) -> bool {
        crate::needs::shared_library(version, &root.join(path))
    }

    #[test]
    fn a_library_for_a_newer_cuda_than_the_drivers_is_passed_over_for_the_next_one() {
        let root = tempfile::tempdir().unwrap();
        let lt = |number: u32| format!("unsigned long cublasLtGetVersion(void) {{ return {number}; }}");
        let nvrtc = "int nvrtcVersion(int *a, int *b) { *a = 13; *b = 0; return 0; }";
        if !plant(root.path(), "usr/local/cuda-13.0/lib64/libcublasLt.so.13", &lt(130_001)) {
            return;
        }
        plant(root.path(), "usr/local/cuda-12.8/lib64/libcublasLt.so.12", &lt(120_804));
        plant(root.path(), "usr/local/cuda-13.0/lib64/libnvrtc.so.13", nvrtc);
        let open = |newest| Libraries::open(&Search::new(root.path(), &|_| None), newest);
        let libraries = open(Some((12, 8)));
        let found = libraries.get(Library::CublasLt).unwrap();
        assert_eq!((found.version.as_deref(), found.problem.as_deref()), (Some("12.8.4"), None));
        let [passed] = found.passed_over.as_slice() else { panic!("{found:?}") };
        assert!(passed.path.ends_with("cuda-13.0/lib64/libcublasLt.so.13"));
        assert!(passed.why.starts_with("13.0.1: it is built for CUDA 13, which needs the NVIDIA driver 580.65.06"));
        let nvrtc = libraries.get(Library::Nvrtc).unwrap();
        assert!(nvrtc.problem.as_deref().is_some_and(|why| why.contains("built for CUDA 13")), "{nvrtc:?}");
        // A newer driver, or no driver.
        for newest in [Some((13, 0)), None] {
            assert_eq!(open(newest).get(Library::CublasLt).unwrap().version.as_deref(), Some("13.0.1"));
        }
    }

    #[test]
    fn cudnn_is_known_by_the_cuda_that_it_is_built_for() {
        let root = tempfile::tempdir().unwrap();
        let source = |cudnn: u32, cuda: u32| {
            format!(
                "unsigned long cudnnGetVersion(void) {{ return {cudnn}; }}\n\
                 unsigned long cudnnGetCudartVersion(void) {{ return {cuda}; }}\n"
            )
        };
        if !plant(root.path(), "usr/local/cuda-13.0/lib64/libcudnn.so.9", &source(91_900, 13_000)) {
            return;
        }
        plant(root.path(), "usr/local/cuda-13.0/lib64/libcudnn_graph.so.9", "");
        plant(root.path(), "usr/local/cuda-12.8/lib64/libcudnn.so.9", &source(91_002, 12_080));
        plant(root.path(), "usr/local/cuda-12.8/lib64/libcudnn_graph.so.9", "");
        let open = |newest| Libraries::open(&Search::new(root.path(), &|_| None), newest);
        let version = |newest| open(newest).get(Library::Cudnn).unwrap().version.clone();
        assert_eq!(version(Some((12, 8))).as_deref(), Some("9.10.2"));
        assert_eq!(version(Some((13, 0))).as_deref(), Some("9.19.0"));
    }

    #[test]
    fn cudnn_8_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let source = "unsigned long cudnnGetVersion(void) { return 8907; }";
        if !plant(root.path(), "usr/lib64/libcudnn.so.8", source) {
            return;
        }
        plant(root.path(), "usr/lib64/libcudnn_ops_infer.so.8", "");
        let libraries = Libraries::open(&Search::new(root.path(), &|_| None), None);
        let problem = libraries.get(Library::Cudnn).unwrap().problem.as_deref();
        assert_eq!(problem, Some("it is cuDNN 8.9.7, and 9.0 is the oldest that the GPU engine works with"));
    }

    #[test]
    fn this_machine_is_searched_once_and_without_failing() {
        assert_eq!(load().found().len(), Library::ALL.len());
    }
}
