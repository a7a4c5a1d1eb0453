//! Which files cudarc's calls use.
//!
//! cudarc opens a library at its first call, by its own names: `libX.so`, then `libX.so.13`, `libX.so.12`, whatever
//! this program has loaded before. The search therefore begins with the files that those names open. If such a file
//! cannot be used, for example because a toolkit is too new for the driver, the search takes another file, and cudarc's
//! calls would not use that one. That is checked here, before the first call.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use cudarc::{cublaslt::sys as cublaslt, cudnn::sys as cudnn, driver::sys as driver, nvrtc::sys as nvrtc};

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
}

/// Fails if cudarc's calls use other files than those that were found.
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
    }
    Ok(())
}

fn all() -> Vec<CudarcLibrary> {
    macro_rules! opened {
        ($name:literal, $file:literal, $sys:ident, $function:literal) => {
            CudarcLibrary {
                name: $name,
                file: $file,
                // SAFETY: cudarc's `culib` opens the library, as its first call would; `is_culib_present` is asked
                // first, because `culib` panics where there is none.
                handle: unsafe { $sys::is_culib_present().then(|| $sys::culib()) },
                function: $function,
            }
        };
    }
    vec![
        opened!("the NVIDIA driver", "libcuda.so", driver, "cuInit"),
        opened!("cuBLASLt", "libcublasLt.so", cublaslt, "cublasLtGetVersion"),
        opened!("NVRTC", "libnvrtc.so", nvrtc, "nvrtcVersion"),
        opened!("cuDNN", "libcudnn.so", cudnn, "cudnnGetVersion"),
    ]
}

impl CudarcLibrary {
    fn is(&self, wanted: Option<&Path>) -> Result<()> {
        let Self { name, file, .. } = self;
        let (Some(handle), Some(wanted)) = (self.handle, wanted) else {
            let what = format!("the GPU engine cannot run here: {name} is loaded, and cannot be opened as {file}");
            return Err(Error::device(what).hint("install a version for CUDA 12 or 13"));
        };
        // SAFETY: only the address is taken; nothing is called.
        let function = unsafe { handle.get::<unsafe extern "C" fn()>(self.function.as_bytes()) };
        match function.ok().and_then(|function| file_at(*function as usize)) {
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
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::device::cuda::driver;
    use crate::device::cuda::libraries::Search;

    /// Makes a library of that source; false where there is no compiler.
    fn library(path: &Path, source: &str) -> bool {
        crate::needs::shared_library(source, path)
    }

    const PLANTED: &str = "BATCHSTEP_TEST_PLANTED";

    /// What [`check`] says about one library, in a separate process, because a process opens each library only once.
    /// The process's loader knows the folder `loader` of the planted libraries.
    fn said_of(file: &str, root: &Path, test: &str) -> String {
        let name = format!("engine::cudnn::cuda::opened::tests::{test}");
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args([&name, "--exact", "--nocapture"]).env(PLANTED, root).env("LD_LIBRARY_PATH", root.join("loader"));
        let output = child.output().unwrap();
        assert!(output.status.success(), "{file}: {}", String::from_utf8_lossy(&output.stderr));
        std::fs::read_to_string(root.join("said")).unwrap()
    }

    /// The part of the child process.
    fn say(file: &str) -> bool {
        let Some(root) = std::env::var_os(PLANTED).map(PathBuf::from) else { return false };
        let home = root.join("venv");
        let search = Search::new(&root, &|name| (name == "VIRTUAL_ENV").then(|| home.clone().into())).with_loader();
        let newest = std::fs::read_to_string(root.join("newest")).ok().and_then(|major| major.parse().ok());
        let libraries = Libraries::open(&search, newest.map(|major| (major, 0)));
        let found = libraries.found().iter().find(|found| found.library.file() == file);
        let wanted = match file {
            "libcuda.so" => driver::open(&[root.join("driver/libcuda.so.1").to_str().unwrap()]).unwrap().unwrap().path,
            _ => found.unwrap().path.clone(),
        };
        let opened = all().into_iter().find(|opened| opened.file == file).unwrap();
        let said = opened.is(wanted.as_deref());
        let path = wanted.unwrap_or_default();
        let version = found.and_then(|found| found.version.clone()).unwrap_or_default();
        let ok = format!("ok {version} {}", path.display());
        std::fs::write(root.join("said"), said.map_or_else(|error| error.to_string(), |()| ok)).unwrap();
        true
    }

    /// A toolkit on the loader's path, with the bare link that installers create, next to a virtual environment with
    /// the wheel.
    #[test]
    fn what_the_loader_opens_is_taken_where_the_driver_runs_it_and_refused_where_not() {
        let file = "libcublasLt.so";
        if say(file) {
            return;
        }
        let root = tempfile::tempdir().unwrap();
        let packages = root.path().join("venv/lib/python3.12/site-packages/nvidia/cublas/lib");
        let version = |number| format!("unsigned long cublasLtGetVersion(void) {{ return {number}; }}");
        if !library(&packages.join("libcublasLt.so.12"), &version(120_900)) {
            return;
        }
        let said = |newest: &str| {
            std::fs::write(root.path().join("newest"), newest).unwrap();
            said_of(file, root.path(), "what_the_loader_opens_is_taken_where_the_driver_runs_it_and_refused_where_not")
        };
        assert_eq!(
            said("13"),
            format!("ok 12.9.0 {}", packages.join("libcublasLt.so.12").display()),
            "the wheel alone"
        );
        let toolkit = root.path().join("loader/libcublasLt.so.13");
        library(&toolkit, &version(130_000));
        let toolkit = toolkit.canonicalize().unwrap();
        let by_soname = said("13");
        assert_eq!(by_soname, format!("ok 13.0.0 {}", toolkit.display()));
        let link = root.path().join("loader/libcublasLt.so");
        std::os::unix::fs::symlink("libcublasLt.so.13", &link).unwrap();
        assert_eq!(said("13"), by_soname, "by the bare link");
        let said = said("12");
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
    fn the_remedy_for_a_folder_of_the_loaders_cache_is_no_variable_that_does_not_name_it() {
        let opened = CudarcLibrary { name: "cuBLASLt", file: "libcublasLt.so", handle: None, function: "" };
        let (used, wanted) = (Path::new("/opt/cuda/lib64/libcublasLt.so.13"), Path::new("/venv/lib/libcublasLt.so.12"));
        let named = opened.remedy(used, wanted, OsStr::new("/a:/opt/cuda/lib64"));
        assert!(named.contains("take /opt/cuda/lib64 out of LD_LIBRARY_PATH"), "{named}");
        let cached = opened.remedy(used, wanted, OsStr::new("/a:/b"));
        assert!(!cached.contains("out of LD_LIBRARY_PATH") && cached.contains("ldconfig -p"), "{cached}");
        assert!(cached.contains("ln -sf /venv/lib/libcublasLt.so.12 links/libcublasLt.so"), "{cached}");
    }

    #[test]
    fn a_stub_of_the_driver_is_refused() {
        let file = "libcuda.so";
        if say(file) {
            return;
        }
        let root = tempfile::tempdir().unwrap();
        if !library(&root.path().join("driver/libcuda.so.1"), "void cuInit(void) {}") {
            return;
        }
        library(&root.path().join("loader/libcuda.so"), "void cuInit(void) {} int is_a_stub;");
        let said = said_of(file, root.path(), "a_stub_of_the_driver_is_refused");
        assert!(
            said.contains("two versions of the NVIDIA driver") && said.contains("loader/libcuda.so, not as"),
            "{said}"
        );
        assert!(said.contains("driver's library is ") && said.contains("driver/libcuda.so.1"), "{said}");
    }

    /// Two versions of every library are installed, neither on the loader's path. The search takes the file that
    /// cudarc's first call finds, and no second file is mapped.
    #[test]
    fn of_two_versions_of_every_library_one_file_is_mapped_after_the_first_call() {
        if let Some(root) = std::env::var_os(PLANTED).map(PathBuf::from) {
            let home = root.join("venv");
            let search = Search::new(&root, &|name| (name == "VIRTUAL_ENV").then(|| home.clone().into()));
            let libraries = Libraries::open(&search, Some((12, 8)));
            let mut said = String::new();
            for opened in all().into_iter().filter(|opened| opened.file != "libcuda.so") {
                let found = libraries.found().iter().find(|found| found.library.file() == opened.file).unwrap();
                let checked = opened.is(found.path.as_deref());
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
        if !library(&packages.join("cublas/lib/libcublasLt.so.12"), &lt(120_900)) {
            return;
        }
        library(&toolkit.join("libcublasLt.so.13"), &lt(130_000));
        library(&packages.join("cuda_nvrtc/lib/libnvrtc.so.12"), &nvrtc(12));
        library(&toolkit.join("libnvrtc.so.13"), &nvrtc(13));
        for (folder, version) in [(packages.join("cudnn/lib"), cudnn(91_002, 12_090)), (toolkit, cudnn(91_900, 13_000))]
        {
            library(&folder.join("libcudnn.so.9"), &version);
            library(&folder.join("libcudnn_graph.so.9"), "");
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
    fn libraries_by_nvidia_are_those_that_were_found() {
        use crate::device::cuda::libraries;
        for library in
            [Library::CublasLt, Library::Nvrtc, Library::Cudnn].into_iter().filter(|one| libraries::is_loaded(*one))
        {
            let path = libraries::load().get(library).and_then(|found| found.path.clone());
            all().into_iter().find(|opened| opened.file == library.file()).unwrap().is(path.as_deref()).unwrap();
        }
    }
}
