//! Which files cudarc's calls use, and whether these have every function that the engine calls.
//!
//! cudarc opens a library at its first call, by its own names: `libX.so`, then `libX.so.13`, `libX.so.12`, whatever
//! this program has loaded before. The search therefore begins with the files that those names open. If such a file
//! cannot be used, for example because a toolkit is too new for the driver, the search takes another file, and cudarc's
//! calls would not use that one. Also, cudarc looks each function up at its first call and panics if the library lacks
//! it. Both are checked here, before the first call.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use cudarc::{cublaslt::sys as cublaslt, cudnn::sys as cudnn, driver::sys as driver, nvrtc::sys as nvrtc};

use super::symbols;
use crate::device::cuda::driver::Driver;
use crate::device::cuda::libraries::{Libraries, Library};
use crate::device::cuda::loaded::{file_at, is_same_file};
use crate::error::{Error, Result};

/// A library of cudarc, and the file that its calls use.
struct CudarcLibrary {
    name: &'static str,
    /// The file's name without its version.
    file: &'static str,
    /// `None` where cudarc finds no such library.
    handle: Option<&'static libloading::Library>,
    /// One that it has in every version.
    function: &'static str,
    needed: &'static [&'static str],
}

/// Fails if cudarc's calls use other files than those that were found, or a file that lacks a function.
///
/// # Errors
/// [`crate::error::Kind::Device`] with both files, and how to make them the same.
pub fn check(driver: &Driver, libraries: &Libraries) -> Result<()> {
    let found = |library: Library| libraries.get(library).and_then(|found| found.path.as_deref());
    for opened in all() {
        let wanted = match opened.file {
            "libcuda.so" => driver.path.as_deref(),
            file => Library::ALL.into_iter().find(|library| library.file() == file).and_then(found),
        };
        opened.is(wanted)?;
        opened.has_all()?;
    }
    Ok(())
}

fn all() -> Vec<CudarcLibrary> {
    macro_rules! opened {
        ($name:literal, $file:literal, $sys:ident, $function:literal, $needed:expr) => {
            CudarcLibrary {
                name: $name,
                file: $file,
                // SAFETY: cudarc's `culib` opens the library, as its first call would; `is_culib_present` is asked
                // first, because `culib` panics where there is none.
                handle: unsafe { $sys::is_culib_present().then(|| $sys::culib()) },
                function: $function,
                needed: $needed,
            }
        };
    }
    vec![
        opened!("the NVIDIA driver", "libcuda.so", driver, "cuInit", symbols::DRIVER),
        opened!("cuBLASLt", "libcublasLt.so", cublaslt, "cublasLtGetVersion", symbols::CUBLASLT),
        opened!("NVRTC", "libnvrtc.so", nvrtc, "nvrtcVersion", symbols::NVRTC),
        opened!("cuDNN", "libcudnn.so", cudnn, "cudnnGetVersion", symbols::CUDNN),
    ]
}

impl CudarcLibrary {
    fn is(&self, wanted: Option<&Path>) -> Result<()> {
        let Self { name, file, .. } = self;
        let (Some(handle), Some(wanted)) = (self.handle, wanted) else {
            let what = format!("the GPU engine cannot run here: {name} is loaded, and cannot be opened as {file}");
            return Err(Error::device(what).hint("install a version for CUDA 12 or 13"));
        };
        match address(handle, self.function).and_then(file_at) {
            Some(used) if !is_same_file(&used, wanted) => Err(self.differs(&used, wanted)),
            // Where the system does not say what is mapped, there is nothing to compare.
            _ => Ok(()),
        }
    }

    fn differs(&self, used: &Path, wanted: &Path) -> Error {
        let Self { name, file, .. } = self;
        let (used_at, wanted_at) = (used.display(), wanted.display());
        let what = format!(
            "the GPU engine cannot run here: two versions of {name} are installed, and the loader opens {file} as {used_at}, not \
             as {wanted_at}"
        );
        let path = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
        Error::device(what).hint(self.remedy(used, wanted, &path))
    }

    /// How to make both files the same; `path` is the value of `LD_LIBRARY_PATH`. The loader searches that variable
    /// before its cache, which has the folders of /etc/ld.so.conf: so a link with the bare name takes precedence over
    /// the cache.
    fn remedy(&self, used: &Path, wanted: &Path, path: &OsStr) -> String {
        let file = self.file;
        let names = [Some(OsStr::new(file)), used.file_name()];
        // The path of a mapped file has no links in it; that of the variable may.
        let leads_there = |folder: &PathBuf| names.iter().flatten().any(|name| is_same_file(&folder.join(name), used));
        let named = std::env::split_paths(path).find(leads_there);
        let wanted_at = wanted.display();
        match (named, file == "libcuda.so") {
            (Some(folder), true) => {
                format!("take {} out of LD_LIBRARY_PATH: the driver's library is {wanted_at}", folder.display())
            }
            (Some(folder), false) => {
                format!("take {} out of LD_LIBRARY_PATH, or uninstall that version", folder.display())
            }
            (None, _) => format!(
                "the loader knows it by its cache (`ldconfig -p`): uninstall that version, or put a link before it: `mkdir -p links && \
                 ln -sf {wanted_at} links/{file}`, and LD_LIBRARY_PATH=$PWD/links"
            ),
        }
    }

    fn has_all(&self) -> Result<()> {
        let lacking =
            self.handle.and_then(|handle| self.needed.iter().find(|symbol| address(handle, symbol).is_none()));
        let Some(symbol) = lacking else { return Ok(()) };
        let what = format!("the GPU engine cannot run here: {} has no function {symbol}", self.name);
        Err(Error::device(what).hint(format!("install a newer version of {}", self.name)))
    }
}

fn address(handle: &libloading::Library, symbol: &str) -> Option<usize> {
    // SAFETY: only the address is taken; nothing is called.
    let found = unsafe { handle.get::<unsafe extern "C" fn()>(symbol.as_bytes()) };
    found.ok().map(|function| *function as usize)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::process::Command;

    use super::*;
    use crate::device::cuda::driver;
    use crate::device::cuda::libraries::{self, Search};
    use crate::needs::shared_library;

    const PLANTED: &str = "BATCHSTEP_TEST_PLANTED";
    const FILES: &str = "BATCHSTEP_TEST_FILES";
    const NEWEST: &str = "BATCHSTEP_TEST_NEWEST";

    /// What [`check`] says about some libraries, in a separate process, because a process opens each library only once: a
    /// line for each with its version and the files below `root` that are mapped, or the error. That process's loader
    /// knows the folder `loader` of `root`; the driver runs CUDA up to that major version.
    fn said_of(files: &str, root: &Path, newest: u32) -> String {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["engine::cudnn::cuda::opened::tests::a_process_of_its_own", "--exact", "--nocapture"]);
        child.env(PLANTED, root).env(FILES, files).env(NEWEST, newest.to_string());
        let output = child.env("LD_LIBRARY_PATH", root.join("loader")).output().unwrap();
        assert!(output.status.success(), "{files}: {}", String::from_utf8_lossy(&output.stderr));
        std::fs::read_to_string(root.join("said")).unwrap()
    }

    #[test]
    fn a_process_of_its_own() {
        let Some(root) = std::env::var_os(PLANTED).map(PathBuf::from) else { return };
        let home = root.join("venv");
        let search = Search::new(&root, &|name| (name == "VIRTUAL_ENV").then(|| home.clone().into()));
        let search = if root.join("loader").is_dir() { search.with_loader() } else { search };
        let newest = std::env::var(NEWEST).unwrap().parse().unwrap();
        let libraries = Libraries::open(&search, Some((newest, 8)));
        let mut said = String::new();
        for file in std::env::var(FILES).unwrap().split(' ') {
            let found = libraries.found().iter().find(|found| found.library.file() == file);
            let driver = root.join("driver/libcuda.so.1");
            let wanted = match found {
                Some(found) => found.path.clone(),
                None => driver::open(&[driver.to_str().unwrap()]).unwrap().unwrap().path,
            };
            let opened = all().into_iter().find(|opened| opened.file == file).unwrap();
            said += &match opened.is(wanted.as_deref()) {
                Ok(()) => format!("{} {}\n", found.unwrap().version.as_deref().unwrap(), mapped(&root, file)),
                Err(error) => format!("{error}\n"),
            };
        }
        std::fs::write(root.join("said"), said).unwrap();
    }

    /// The files of that name, below a folder, that this process has mapped.
    fn mapped(root: &Path, file: &str) -> String {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let root = root.canonicalize().unwrap();
        let paths = maps.lines().filter_map(|line| Path::new(line.split_whitespace().nth(5)?).strip_prefix(&root).ok());
        let named = |path: &&Path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(file));
        let all: BTreeSet<String> = paths.filter(named).map(|path| path.display().to_string()).collect();
        Vec::from_iter(all).join(" ")
    }

    fn cublaslt(number: u32) -> String {
        format!("unsigned long cublasLtGetVersion(void) {{ return {number}; }}")
    }

    const PACKAGES: &str = "venv/lib/python3.12/site-packages/nvidia";

    /// A toolkit on the loader's path, with the bare link that installers create, next to a virtual environment with
    /// the wheel.
    #[test]
    fn what_the_loader_opens_is_taken_where_the_driver_runs_it_and_refused_where_not() {
        let root = tempfile::tempdir().unwrap();
        let plant = |path: String, version| shared_library(&cublaslt(version), &root.path().join(path));
        if !plant(format!("{PACKAGES}/cublas/lib/libcublasLt.so.12"), 120_900) {
            return;
        }
        let said = |newest| said_of("libcublasLt.so", root.path(), newest);
        assert_eq!(said(13), format!("12.9.0 {PACKAGES}/cublas/lib/libcublasLt.so.12\n"), "the wheel alone");
        plant("loader/libcublasLt.so.13".to_owned(), 130_000);
        assert_eq!(said(13), "13.0.0 loader/libcublasLt.so.13\n", "by its soname");
        std::os::unix::fs::symlink("libcublasLt.so.13", root.path().join("loader/libcublasLt.so")).unwrap();
        assert_eq!(said(13), "13.0.0 loader/libcublasLt.so.13\n", "by the bare link");
        let said = said(12);
        for words in [
            "two versions of cuBLASLt are installed, and the loader opens libcublasLt.so as",
            "loader/libcublasLt.so.13, not as",
            "cublas/lib/libcublasLt.so.12",
            "help: take ",
            "out of LD_LIBRARY_PATH",
        ] {
            assert!(said.contains(words), "{said}");
        }
    }

    #[test]
    fn the_remedy_for_a_folder_of_the_loaders_cache_is_no_variable_that_does_not_name_it() {
        let opened =
            CudarcLibrary { name: "cuBLASLt", file: "libcublasLt.so", handle: None, function: "", needed: &[] };
        let (used, wanted) = (Path::new("/opt/cuda/lib64/libcublasLt.so.13"), Path::new("/venv/lib/libcublasLt.so.12"));
        let named = opened.remedy(used, wanted, OsStr::new("/a:/opt/cuda/lib64"));
        assert!(named.contains("take /opt/cuda/lib64 out of LD_LIBRARY_PATH"), "{named}");
        let cached = opened.remedy(used, wanted, OsStr::new("/a:/b"));
        assert!(!cached.contains("out of LD_LIBRARY_PATH") && cached.contains("ldconfig -p"), "{cached}");
        assert!(cached.contains("ln -sf /venv/lib/libcublasLt.so.12 links/libcublasLt.so"), "{cached}");
    }

    #[test]
    fn a_stub_of_the_driver_is_refused() {
        let root = tempfile::tempdir().unwrap();
        if !shared_library("void cuInit(void) {}", &root.path().join("driver/libcuda.so.1")) {
            return;
        }
        shared_library("void cuInit(void) {} int is_a_stub;", &root.path().join("loader/libcuda.so"));
        let said = said_of("libcuda.so", root.path(), 13);
        for words in [
            "two versions of the NVIDIA driver",
            "loader/libcuda.so, not as",
            "driver's library is ",
            "driver/libcuda.so.1",
        ] {
            assert!(said.contains(words), "{said}");
        }
    }

    /// Two versions of every library are installed, neither on the loader's path. The search takes the file that
    /// cudarc's first call finds, and no second file is mapped.
    #[test]
    fn of_two_versions_of_every_library_one_file_is_mapped_after_the_first_call() {
        let root = tempfile::tempdir().unwrap();
        let plant = |path: String, source: &str| shared_library(source, &root.path().join(path));
        let nvrtc = |major: u32| format!("int nvrtcVersion(int *a, int *b) {{ *a = {major}; *b = 0; return 0; }}");
        let cudnn = |number: u32, cuda: u32| {
            format!(
                "unsigned long cudnnGetVersion(void) {{ return {number}; }}\n\
                 unsigned long cudnnGetCudartVersion(void) {{ return {cuda}; }}"
            )
        };
        let toolkit = "usr/local/cuda-13.0/lib64";
        if !plant(format!("{PACKAGES}/cublas/lib/libcublasLt.so.12"), &cublaslt(120_900)) {
            return;
        }
        plant(format!("{toolkit}/libcublasLt.so.13"), &cublaslt(130_000));
        plant(format!("{PACKAGES}/cuda_nvrtc/lib/libnvrtc.so.12"), &nvrtc(12));
        plant(format!("{toolkit}/libnvrtc.so.13"), &nvrtc(13));
        for (folder, version) in
            [(format!("{PACKAGES}/cudnn/lib"), cudnn(91_002, 12_090)), (toolkit.to_owned(), cudnn(91_900, 13_000))]
        {
            plant(format!("{folder}/libcudnn.so.9"), &version);
            plant(format!("{folder}/libcudnn_graph.so.9"), "");
        }
        let expected = format!(
            "12.9.0 {PACKAGES}/cublas/lib/libcublasLt.so.12\n12.0 {PACKAGES}/cuda_nvrtc/lib/libnvrtc.so.12\n\
             9.10.2 {PACKAGES}/cudnn/lib/libcudnn.so.9\n"
        );
        assert_eq!(said_of("libcublasLt.so libnvrtc.so libcudnn.so", root.path(), 12), expected);
    }

    /// The libraries of this machine.
    #[test]
    fn libraries_by_nvidia_are_those_that_were_found_and_have_every_function() {
        for library in [Library::CublasLt, Library::Nvrtc, Library::Cudnn] {
            if libraries::is_loaded(library) {
                let path = libraries::load().get(library).and_then(|found| found.path.clone());
                let opened = all().into_iter().find(|opened| opened.file == library.file()).unwrap();
                opened.is(path.as_deref()).and_then(|()| opened.has_all()).unwrap();
            }
        }
    }

    #[test]
    fn a_library_that_lacks_a_function_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("libnvrtc.so.13");
        let some = symbols::NVRTC.iter().filter(|name| **name != "nvrtcGetCUBIN");
        if !shared_library(&some.map(|name| format!("void {name}(void) {{}}\n")).collect::<String>(), &path) {
            return;
        }
        // SAFETY: the library has no initialisers, and nothing of it is called.
        let handle = Some(&*Box::leak(Box::new(unsafe { libloading::Library::new(&path) }.unwrap())));
        let nvrtc = all().into_iter().find(|opened| opened.name == "NVRTC").unwrap();
        let said = CudarcLibrary { handle, ..nvrtc }.has_all().unwrap_err().to_string();
        assert!(said.contains("NVRTC has no function nvrtcGetCUBIN"), "{said}");
        assert!(said.contains("help: install a newer version of NVRTC"), "{said}");
    }
}
