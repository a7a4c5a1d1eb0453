//! Which files cudarc's calls lead to, and whether these have every function that the engine calls.
//!
//! cudarc opens a library at its first call, by names of its own: `libX.so`, then `libX.so.13`, `libX.so.12`, whatever this
//! program has loaded before. Where several versions are installed, that may be another file than the one that was searched
//! for, whose version was read and will be recorded. And it looks each function up at its first call, and panics where the
//! library lacks it. Both are settled here, before the first call.

use std::path::{Path, PathBuf};

#[cfg(not(feature = "candle-cuda"))]
use cudarc::{cublaslt::sys as cublaslt, cudnn::sys as cudnn, driver::sys as driver, nvrtc::sys as nvrtc};

use super::symbols;
use crate::device::cuda::driver::Driver;
use crate::device::cuda::libraries::{Libraries, Library};
use crate::device::cuda::loaded::{file_at, is_same_file};
use crate::error::{Error, Result};

/// A library of cudarc's: where its calls lead.
struct Opened {
    name: &'static str,
    /// The file's name without its version.
    file: &'static str,
    /// `None` where cudarc finds no such library.
    handle: Option<&'static libloading::Library>,
    needed: &'static [&'static str],
}

/// Fails where cudarc's calls lead to other files than those that were found, or to one that lacks a function.
///
/// # Errors
/// [`crate::error::Kind::Device`] with both files, and what makes them one.
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

/// With the feature `candle-cuda` the linker has bound every function, and the program would not have started otherwise.
#[cfg(feature = "candle-cuda")]
fn all() -> Vec<Opened> {
    Vec::new()
}

#[cfg(not(feature = "candle-cuda"))]
fn all() -> Vec<Opened> {
    // SAFETY: cudarc's `culib` opens the library, as its first call would; it is asked whether there is one, since it panics
    // where there is none.
    macro_rules! opened {
        ($name:literal, $file:literal, $sys:ident, $needed:expr) => {
            Opened {
                name: $name,
                file: $file,
                handle: unsafe { $sys::is_culib_present().then(|| $sys::culib()) },
                needed: $needed,
            }
        };
    }
    vec![
        opened!("the NVIDIA driver", "libcuda.so", driver, symbols::DRIVER),
        opened!("cuBLASLt", "libcublasLt.so", cublaslt, symbols::CUBLASLT),
        opened!("NVRTC", "libnvrtc.so", nvrtc, symbols::NVRTC),
        opened!("cuDNN", "libcudnn.so", cudnn, symbols::CUDNN),
    ]
}

impl Opened {
    fn is(&self, wanted: Option<&Path>) -> Result<()> {
        let Self { name, file, .. } = self;
        let (Some(handle), Some(wanted)) = (self.handle, wanted) else {
            let what = format!("the GPU engine cannot run here: {name} is loaded, and cannot be opened as {file}");
            return Err(Error::device(what).hint("install a version for CUDA 12 or 13"));
        };
        let used = self.needed.iter().find_map(|symbol| path_of(handle, symbol));
        match used {
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
        let folder = used.with_file_name("");
        let folder = folder.display();
        Error::device(what).hint(match *file == "libcuda.so" {
            true => format!("take {folder} out of LD_LIBRARY_PATH: the driver's library is {wanted_at}"),
            false => format!(
                "take {folder} out of LD_LIBRARY_PATH, or uninstall that version; or use it everywhere: LD_LIBRARY_PATH={folder}"
            ),
        })
    }

    fn has_all(&self) -> Result<()> {
        let Some(handle) = self.handle else { return Ok(()) };
        match self.needed.iter().find(|symbol| address(handle, symbol).is_none()) {
            None => Ok(()),
            Some(symbol) => {
                let what = format!("the GPU engine cannot run here: {} has no function {symbol}", self.name);
                Err(Error::device(what).hint(format!("install a newer version of {}", self.name)))
            }
        }
    }
}

fn address(handle: &libloading::Library, symbol: &str) -> Option<usize> {
    // SAFETY: the address alone is taken; nothing is called.
    let found = unsafe { handle.get::<unsafe extern "C" fn()>(symbol.as_bytes()) };
    found.ok().map(|function| *function as usize)
}

fn path_of(handle: &libloading::Library, symbol: &str) -> Option<PathBuf> {
    file_at(address(handle, symbol)?)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::device::cuda::driver;
    use crate::device::cuda::libraries::Search;
    use crate::needs::shared_library;

    const PLANTED: &str = "BATCHSTEP_TEST_PLANTED";

    /// A library that has these functions, which do nothing, and answers its version.
    fn library(path: &Path, functions: &[&str], version: &str) -> bool {
        let empty: String = functions.iter().map(|name| format!("void {name}(void) {{}}\n")).collect();
        shared_library(&format!("{empty}{version}\n"), path)
    }

    /// What [`check`] says of one library in a process of its own, whose loader knows the folder `loader` of the planted ones: a
    /// process opens each library once.
    fn said_of(file: &str, root: &Path, test: &str) -> String {
        let name = format!("engine::cudnn::cuda::opened::tests::{test}");
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args([&name, "--exact", "--nocapture"]).env(PLANTED, root).env("LD_LIBRARY_PATH", root.join("loader"));
        let output = child.output().unwrap();
        assert!(output.status.success(), "{file}: {}", String::from_utf8_lossy(&output.stderr));
        std::fs::read_to_string(root.join("said")).unwrap()
    }

    /// The child's part.
    fn say(file: &str) -> bool {
        let Some(root) = std::env::var_os(PLANTED).map(PathBuf::from) else { return false };
        let home = root.join("venv");
        let search = Search::new(&root, &|name| (name == "VIRTUAL_ENV").then(|| home.clone().into()));
        let libraries = Libraries::open(&search, None);
        let wanted = match file {
            "libcuda.so" => driver::open(&[root.join("driver/libcuda.so.1").to_str().unwrap()]).unwrap().path,
            _ => libraries.found().iter().find(|found| found.library.file() == file).unwrap().path.clone(),
        };
        let opened = all().into_iter().find(|opened| opened.file == file).unwrap();
        let said = opened.is(wanted.as_deref()).and_then(|()| opened.has_all());
        std::fs::write(root.join("said"), said.map_or_else(|error| error.to_string(), |()| "ok".into())).unwrap();
        true
    }

    #[test]
    fn another_version_on_the_path_of_the_loader_is_refused() {
        let file = "libcublasLt.so";
        if say(file) {
            return;
        }
        let root = tempfile::tempdir().unwrap();
        let packages = root.path().join("venv/lib/python3.12/site-packages/nvidia/cublas/lib");
        let version = |number| format!("unsigned long cublasLtGetVersion(void) {{ return {number}; }}");
        if !library(&packages.join("libcublasLt.so.12"), symbols::CUBLASLT, &version(120_900)) {
            return;
        }
        let said = || said_of(file, root.path(), "another_version_on_the_path_of_the_loader_is_refused");
        assert_eq!(said(), "ok", "one version alone");
        library(&root.path().join("loader/libcublasLt.so.13"), symbols::CUBLASLT, &version(130_000));
        let said = said();
        assert!(
            said.contains("two versions of cuBLASLt are installed, and the loader opens libcublasLt.so as"),
            "{said}"
        );
        assert!(
            said.contains("loader/libcublasLt.so.13, not as") && said.contains("cublas/lib/libcublasLt.so.12"),
            "{said}"
        );
        assert!(said.contains("help: take ") && said.contains("out of LD_LIBRARY_PATH"), "{said}");
    }

    #[test]
    fn a_stub_of_the_driver_is_refused() {
        let file = "libcuda.so";
        if say(file) {
            return;
        }
        let root = tempfile::tempdir().unwrap();
        if !library(&root.path().join("driver/libcuda.so.1"), &symbols::DRIVER[..1], "") {
            return;
        }
        library(&root.path().join("loader/libcuda.so"), &symbols::DRIVER[..1], "");
        let said = said_of(file, root.path(), "a_stub_of_the_driver_is_refused");
        assert!(
            said.contains("two versions of the NVIDIA driver") && said.contains("loader/libcuda.so, not as"),
            "{said}"
        );
        assert!(said.contains("driver's library is ") && said.contains("driver/libcuda.so.1"), "{said}");
    }

    #[test]
    fn a_library_that_lacks_a_function_is_refused_and_does_not_panic() {
        let file = "libnvrtc.so";
        if say(file) {
            return;
        }
        let root = tempfile::tempdir().unwrap();
        let version = "int nvrtcVersion(int *a, int *b) { *a = 13; *b = 0; return 0; }";
        let some: Vec<&str> = symbols::NVRTC.iter().copied().filter(|name| *name != "nvrtcGetCUBIN").collect();
        if !library(&root.path().join("usr/local/cuda/lib64/libnvrtc.so.13"), &some, version) {
            return;
        }
        let said = said_of(file, root.path(), "a_library_that_lacks_a_function_is_refused_and_does_not_panic");
        assert!(said.contains("NVRTC has no function nvrtcGetCUBIN"), "{said}");
        assert!(said.contains("help: install a newer version of NVRTC"), "{said}");
    }

    /// Of every library two versions are installed, neither on the path of the loader. What the search takes is what cudarc's first call
    /// finds, and no second file is mapped.
    #[test]
    fn of_two_versions_of_every_library_one_file_is_mapped_after_the_first_call() {
        if let Some(root) = std::env::var_os(PLANTED).map(PathBuf::from) {
            let home = root.join("venv");
            let search = Search::new(&root, &|name| (name == "VIRTUAL_ENV").then(|| home.clone().into()));
            let libraries = Libraries::open(&search, Some((12, 8)));
            let mut said = String::new();
            for opened in all().into_iter().filter(|opened| opened.file != "libcuda.so") {
                let found = libraries.found().iter().find(|found| found.library.file() == opened.file).unwrap();
                let checked = opened.is(found.path.as_deref()).and_then(|()| opened.has_all());
                said += &format!("{} {:?}: {}\n", opened.file, found.version, mapped(&root, opened.file).join(" "));
                checked.unwrap();
            }
            std::fs::write(root.join("said"), said).unwrap();
            return;
        }
        let root = tempfile::tempdir().unwrap();
        let packages = root.path().join("venv/lib/python3.12/site-packages/nvidia");
        let toolkit = root.path().join("usr/local/cuda-13.0/lib64");
        let lt = |number: u32| format!("unsigned long cublasLtGetVersion(void) {{ return {number}; }}");
        let nvrtc = |major: u32| format!("int nvrtcVersion(int *a, int *b) {{ *a = {major}; *b = 0; return 0; }}");
        let cudnn = |number: u32, cuda: u32| {
            format!(
                "unsigned long cudnnGetVersion(void) {{ return {number}; }}\n\
                 unsigned long cudnnGetCudartVersion(void) {{ return {cuda}; }}"
            )
        };
        if !library(&packages.join("cublas/lib/libcublasLt.so.12"), symbols::CUBLASLT, &lt(120_900)) {
            return;
        }
        library(&toolkit.join("libcublasLt.so.13"), symbols::CUBLASLT, &lt(130_000));
        library(&packages.join("cuda_nvrtc/lib/libnvrtc.so.12"), symbols::NVRTC, &nvrtc(12));
        library(&toolkit.join("libnvrtc.so.13"), symbols::NVRTC, &nvrtc(13));
        for (folder, version) in [(packages.join("cudnn/lib"), cudnn(91_002, 12_090)), (toolkit, cudnn(91_900, 13_000))]
        {
            library(&folder.join("libcudnn.so.9"), symbols::CUDNN, &version);
            library(&folder.join("libcudnn_graph.so.9"), &[], "");
        }
        let test = "of_two_versions_of_every_library_one_file_is_mapped_after_the_first_call";
        let said = said_of("", root.path(), test);
        let expected = "libcublasLt.so Some(\"12.9.0\"): venv/lib/python3.12/site-packages/nvidia/cublas/lib/libcublasLt.so.12\n\
                        libnvrtc.so Some(\"12.0\"): venv/lib/python3.12/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12\n\
                        libcudnn.so Some(\"9.10.2\"): venv/lib/python3.12/site-packages/nvidia/cudnn/lib/libcudnn.so.9\n";
        assert_eq!(said, expected);
    }

    /// The files of that name, below a folder, that this process has mapped.
    fn mapped(root: &Path, file: &str) -> Vec<String> {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let root = root.canonicalize().unwrap();
        let paths = maps.lines().filter_map(|line| Path::new(line.split_whitespace().nth(5)?).strip_prefix(&root).ok());
        let named = |path: &&Path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(file));
        let all: std::collections::BTreeSet<String> =
            paths.filter(named).map(|path| path.display().to_string()).collect();
        all.into_iter().collect()
    }

    /// The libraries of this machine.
    #[test]
    fn libraries_by_nvidia_have_every_function() {
        use crate::device::cuda::libraries;
        for library in [Library::CublasLt, Library::Nvrtc, Library::Cudnn] {
            if !libraries::is_loaded(library) {
                continue;
            }
            let path = libraries::load().get(library).and_then(|found| found.path.clone());
            let opened = all().into_iter().find(|opened| opened.file == library.file()).unwrap();
            opened.is(path.as_deref()).and_then(|()| opened.has_all()).unwrap();
        }
    }
}
