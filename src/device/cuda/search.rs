//! Where CUDA's libraries may be, from the user's most explicit choice to whatever happens to be installed.
//!
//! The order is: the files that the system's loader opens by the names that cudarc will ask for, since cudarc's calls
//! use these whatever else is installed; the folders in environment variables; the virtual environment next to the
//! experiment; the loader by sonames; the usual folders; and last the packages of `python3`, which has to be started to
//! list them.
//!
//! Opening a library runs its code, and the working folder may belong to someone else. So relative folders are not
//! searched, and the environment next to the experiment is searched only if it belongs to the caller or to root.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::library::Library;
use crate::device::python;

/// The places, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Search {
    folders_first: Vec<SearchFolder>,
    /// Ask the system's loader.
    asks_loader: bool,
    /// Ask `python3`, at the very end.
    asks_python: bool,
    folders_last: Vec<SearchFolder>,
}

/// A folder, and a description of how it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SearchFolder {
    origin: String,
    folder: PathBuf,
}

/// A file that may be the library, or a soname for the loader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LibraryCandidate {
    pub origin: String,
    pub path: PathBuf,
}

impl Search {
    /// This machine's places.
    pub fn system() -> Self {
        let search = Self::new(Path::new("/"), &|name| std::env::var_os(name)).with_loader();
        Self { asks_python: true, ..search }
    }

    /// The same places, with those of the process's loader.
    pub(crate) fn with_loader(self) -> Self {
        Self { asks_loader: true, ..self }
    }

    /// The places of a machine whose root folder is `root` and whose environment is `variable`, without those of the
    /// loader and of Python. Relative folders in it are left out.
    pub fn new(root: &Path, variable: &dyn Fn(&str) -> Option<OsString>) -> Self {
        let mut folders_first = named(variable);
        folders_first.extend(beside(&std::path::absolute(".venv").unwrap_or_default(), caller()));
        Self { folders_first, asks_loader: false, asks_python: false, folders_last: usual(root) }
    }

    /// The candidates for one library, best first. Python is started only when all others have been tried.
    pub fn candidates(&self, library: Library) -> impl Iterator<Item = LibraryCandidate> + '_ {
        let files = move |place: SearchFolder| files(&place, library);
        let by_loader = |name: String| LibraryCandidate { origin: "the system's loader".into(), path: name.into() };
        let (file, asks_loader) = (library.file(), self.asks_loader);
        let sonames =
            library.versions().iter().map(move |version| format!("{file}.{version}")).chain([file.to_owned()]);
        let sonames = sonames.filter(move |_| asks_loader);
        let bare = bare_names(library).into_iter().filter(move |_| asks_loader);
        let asks_python = self.asks_python;
        let packages =
            std::iter::once_with(move || if asks_python { packages_of_python() } else { Vec::new() }).flatten();
        let first = self.folders_first.iter().cloned().flat_map(files);
        let loader = sonames.map(by_loader);
        let last = self.folders_last.iter().cloned().flat_map(files).chain(packages.flat_map(files));
        bare.map(by_loader).chain(first).chain(loader).chain(last)
    }
}

/// The names by which cudarc asks the loader for a library, in its order: `libcublasLt.so` before `libcublasLt.so.13`.
/// cuBLAS itself is not called; it is taken from the same place as the others.
fn bare_names(library: Library) -> Vec<String> {
    let stem = library.file().trim_start_matches("lib").trim_end_matches(".so");
    match library {
        Library::NvrtcBuiltins => Vec::new(),
        _ => cudarc::get_lib_name_candidates(stem),
    }
}

/// The folders that environment variables name.
fn named(variable: &dyn Fn(&str) -> Option<OsString>) -> Vec<SearchFolder> {
    let mut places = Vec::new();
    let value = |name: &str| variable(name).map(PathBuf::from).filter(|folder| folder.is_absolute());
    for folder in
        variable("LD_LIBRARY_PATH").iter().flat_map(std::env::split_paths).filter(|folder| folder.is_absolute())
    {
        places.push(SearchFolder { origin: "$LD_LIBRARY_PATH".into(), folder });
    }
    for name in ["CUDA_HOME", "CUDA_PATH"] {
        places.extend(value(name).into_iter().flat_map(|home| toolkit(&format!("${name}"), &home)));
    }
    places.extend(value("VIRTUAL_ENV").into_iter().flat_map(|home| environment("$VIRTUAL_ENV", &home)));
    if let Some(home) = value("CONDA_PREFIX") {
        places.push(SearchFolder { origin: "$CONDA_PREFIX".into(), folder: home.join("lib") });
        places.extend(environment("$CONDA_PREFIX", &home));
    }
    places
}

/// The virtual environment next to the experiment, unless it belongs to someone else.
fn beside(environment_folder: &Path, caller: u32) -> Vec<SearchFolder> {
    let owner = fs::metadata(environment_folder).ok().map(|metadata| metadata.uid());
    match owner {
        Some(owner) if owner == caller || owner == 0 => environment(".venv", environment_folder),
        _ => Vec::new(),
    }
}

fn caller() -> u32 {
    // SAFETY: a call without arguments, which cannot fail.
    unsafe { libc::geteuid() }
}

/// Where installers and distributions put the libraries.
fn usual(root: &Path) -> Vec<SearchFolder> {
    let mut places = Vec::new();
    let toolkits = matching(&root.join("usr/local"), "cuda").into_iter().chain([root.join("opt/cuda")]);
    for home in toolkits {
        let origin = format!("/{}", home.strip_prefix(root).unwrap_or(&home).display());
        places.extend(toolkit(&origin, &home));
    }
    let triple = format!("usr/lib/{}-linux-gnu", std::env::consts::ARCH);
    for folder in [triple.as_str(), "usr/lib64", "usr/lib", "usr/local/lib", "usr/local/nvidia/lib64"] {
        places.push(SearchFolder { origin: format!("/{folder}"), folder: root.join(folder) });
    }
    for prefix in ["usr/local", "usr"] {
        places.extend(environment(&format!("/{prefix}"), &root.join(prefix)));
    }
    places
}

/// A toolkit's folders: `lib64` of an installation, `lib` of a wheel or a conda package, and the cross-compiler's.
fn toolkit(origin: &str, home: &Path) -> Vec<SearchFolder> {
    let targets = format!("targets/{}-linux/lib", std::env::consts::ARCH);
    let place = |part: &str| SearchFolder { origin: origin.to_string(), folder: home.join(part) };
    ["lib64", "lib", &targets].map(place).to_vec()
}

/// The NVIDIA wheels of a Python environment (or of a distribution's own Python).
fn environment(origin: &str, home: &Path) -> Vec<SearchFolder> {
    let pythons = ["lib", "lib64"].iter().flat_map(|lib| matching(&home.join(lib), "python3"));
    let packages = pythons.flat_map(|python| ["site-packages", "dist-packages"].map(|name| python.join(name)));
    packages.flat_map(|folder| wheels(&format!("{origin}'s packages"), &folder)).collect()
}

/// The library folders of NVIDIA's wheels: `nvidia/cu13/lib` and `nvidia/cudnn/lib` of CUDA 13, `nvidia/cublas/lib` and
/// so on of CUDA 12. The newest `cu` first.
fn wheels(origin: &str, packages: &Path) -> Vec<SearchFolder> {
    let parts = matching(&packages.join("nvidia"), "");
    let place = |part: PathBuf| SearchFolder { origin: origin.to_string(), folder: part.join("lib") };
    parts.into_iter().map(place).filter(|place| place.folder.is_dir()).collect()
}

fn packages_of_python() -> Vec<SearchFolder> {
    let folders = python::python().map(|python| python.folders.as_slice()).unwrap_or_default();
    folders.iter().flat_map(|folder| wheels("python3's packages", folder)).collect()
}

/// The entries of `folder` whose names begin with `prefix`, highest version first (`cuda-13.0` before `cuda-12.8`), and
/// a name without a version before all, since that is the link to the one in use.
fn matching(folder: &Path, prefix: &str) -> Vec<PathBuf> {
    let name = |path: &PathBuf| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut found: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    found.retain(|path| name(path).starts_with(prefix));
    found.sort_by_key(|path| {
        let numbers = numbers(&name(path)[prefix.len()..]);
        (!numbers.is_empty(), std::cmp::Reverse(numbers), name(path))
    });
    found
}

/// The files of `library` in a folder: highest version first; for equal versions the soname before longer names; and
/// the developers' link without a version last.
fn files(place: &SearchFolder, library: Library) -> Vec<LibraryCandidate> {
    let version = |path: &PathBuf| {
        let rest = path.file_name()?.to_str()?.strip_prefix(library.file())?.to_string();
        (rest.is_empty() || rest.starts_with('.')).then(|| numbers(&rest))
    };
    let Ok(entries) = fs::read_dir(&place.folder) else { return Vec::new() };
    let paths = entries.flatten().map(|entry| entry.path());
    let mut found: Vec<(Vec<u32>, PathBuf)> = paths.filter_map(|path| Some((version(&path)?, path))).collect();
    found.sort_by_key(|(version, path)| {
        let major = version.first().copied();
        (std::cmp::Reverse(major), version.len(), std::cmp::Reverse(version.clone()), path.clone())
    });
    found.into_iter().map(|(_, path)| LibraryCandidate { origin: place.origin.clone(), path }).collect()
}

/// The numbers in a name: `-13.0` gives 13 and 0.
fn numbers(text: &str) -> Vec<u32> {
    text.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A root with empty files at those paths.
    fn planted(paths: &[&str]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for path in paths {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        root
    }

    fn candidates(root: &Path, variables: &[(&str, PathBuf)], library: Library) -> Vec<(String, String)> {
        let variable =
            |name: &str| variables.iter().find(|entry| entry.0 == name).map(|entry| entry.1.clone().into_os_string());
        let relative = |path: &Path| path.strip_prefix(root).unwrap().display().to_string();
        let search = Search::new(root, &variable);
        let below = search.candidates(library).filter(|candidate| candidate.path.starts_with(root));
        below.map(|candidate| (candidate.origin.clone(), relative(&candidate.path))).collect()
    }

    #[test]
    fn the_users_choice_precedes_installed_libraries() {
        let root = planted(&[
            "usr/local/cuda-12.8/lib64/libcublas.so.12",
            "usr/local/cuda-13.0/lib64/libcublas.so.13",
            "usr/lib64/libcublas.so.11",
            "env/lib/python3.12/site-packages/nvidia/cu13/lib/libcublas.so.13",
            "conda/lib/libcublas.so.12",
            "home/lib/libcublas.so.13",
            "ld/libcublas.so.13",
            "ld/libcublasLt.so.13",
        ]);
        let at = |part: &str| root.path().join(part);
        let variables = [
            ("VIRTUAL_ENV", at("env")),
            ("CONDA_PREFIX", at("conda")),
            ("CUDA_HOME", at("home")),
            ("LD_LIBRARY_PATH", at("ld")),
        ];
        let found = candidates(root.path(), &variables, Library::Cublas);
        let expected = [
            ("$LD_LIBRARY_PATH", "ld/libcublas.so.13"),
            ("$CUDA_HOME", "home/lib/libcublas.so.13"),
            ("$VIRTUAL_ENV's packages", "env/lib/python3.12/site-packages/nvidia/cu13/lib/libcublas.so.13"),
            ("$CONDA_PREFIX", "conda/lib/libcublas.so.12"),
            ("/usr/local/cuda-13.0", "usr/local/cuda-13.0/lib64/libcublas.so.13"),
            ("/usr/local/cuda-12.8", "usr/local/cuda-12.8/lib64/libcublas.so.12"),
            ("/usr/lib64", "usr/lib64/libcublas.so.11"),
        ];
        assert_eq!(found, expected.map(|(origin, path)| (origin.to_string(), path.to_string())));
    }

    #[test]
    fn the_loader_is_asked_first_by_the_names_that_cudarc_asks_for() {
        let root = planted(&["conda/lib/libnvrtc.so.12"]);
        let conda = root.path().join("conda").into_os_string();
        let variable = |name: &str| (name == "CONDA_PREFIX").then(|| conda.clone());
        let search = Search::new(root.path(), &variable).with_loader();
        let found: Vec<PathBuf> = search.candidates(Library::Nvrtc).map(|candidate| candidate.path).collect();
        let at = |path: &Path| found.iter().position(|found| found == path).unwrap();
        assert_eq!(at(Path::new("libnvrtc.so")), 0);
        assert!(at(Path::new("libnvrtc.so.12")) < at(&root.path().join("conda/lib/libnvrtc.so.12")));
        assert!(Search::new(root.path(), &variable).candidates(Library::Nvrtc).all(|found| found.path.is_absolute()));
    }

    #[test]
    fn relative_folders_and_a_strangers_environment_are_not_searched() {
        let root = planted(&[".venv/lib/python3.12/site-packages/nvidia/cudnn/lib/libcudnn.so.9"]);
        let here = std::env::current_dir().unwrap();
        let up = "../".repeat(here.components().count());
        let relative = PathBuf::from(up + root.path().join(".venv").strip_prefix("/").unwrap().to_str().unwrap());
        assert!(relative.is_dir());
        let of = |name: &'static str, folder: &Path| {
            let folder = folder.as_os_str().to_owned();
            named(&move |asked| (asked == name).then(|| folder.clone()))
        };
        for name in ["VIRTUAL_ENV", "CONDA_PREFIX", "CUDA_HOME", "CUDA_PATH", "LD_LIBRARY_PATH"] {
            assert_eq!(of(name, &relative), [], "{name}");
            assert!(!of(name, &root.path().join(".venv")).is_empty(), "{name}");
        }
        let folder = root.path().join(".venv");
        assert_eq!(beside(&folder, caller()).len(), 1);
        let owner = if caller() == 0 { 4711 } else { caller() };
        if caller() == 0 {
            std::os::unix::fs::chown(&folder, Some(owner), None).unwrap();
        }
        assert_eq!((beside(&folder, owner).len(), beside(&folder, owner + 1).len()), (1, 0));
    }

    #[test]
    fn in_one_folder_the_newest_soname_comes_first() {
        let root = planted(&[
            "usr/lib64/libnvrtc.so",
            "usr/lib64/libnvrtc.so.12",
            "usr/lib64/libnvrtc.so.13.0.48",
            "usr/lib64/libnvrtc.so.13",
            "usr/lib64/libnvrtc-builtins.so.13.0",
            "usr/lib64/libnvrtc.alt.so.13",
        ]);
        let found = candidates(root.path(), &[], Library::Nvrtc);
        let names: Vec<&str> = found.iter().map(|entry| entry.1.rsplit('/').next().unwrap()).collect();
        assert_eq!(names, ["libnvrtc.so.13", "libnvrtc.so.13.0.48", "libnvrtc.so.12", "libnvrtc.so"]);
    }

    #[test]
    fn wheels_of_both_layouts_are_found() {
        let root = planted(&[
            "usr/local/lib/python3.12/dist-packages/nvidia/cudnn/lib/libcudnn.so.9",
            "usr/local/lib/python3.12/dist-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12",
        ]);
        let one = |library| candidates(root.path(), &[], library).len();
        assert_eq!((one(Library::Cudnn), one(Library::Nvrtc), one(Library::Cublas)), (1, 1, 0));
    }
}
