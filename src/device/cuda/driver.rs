//! The NVIDIA driver's CUDA library, `libcuda.so.1`: is it installed, how new is it, and does it see a GPU?
//!
//! Opened through libloading, since cudarc panics where the library is missing. It stays open for the life of the
//! process, so that cudarc finds it by its soname wherever it was.

use std::ffi::{CStr, c_char, c_int, c_uint};
use std::path::PathBuf;
use std::sync::OnceLock;

use libloading::Library;

use super::loaded::loaded_path;
use super::refusal::{NO_DEVICE, Refusal};
use crate::error::{Error, Result};

/// The soname, then the places where containers, WSL and some distributions keep it without configuring the loader.
const PLACES: [&str; 4] = [
    "libcuda.so.1",
    "/usr/local/nvidia/lib64/libcuda.so.1",
    "/usr/lib/wsl/lib/libcuda.so.1",
    "/usr/lib64/libcuda.so.1",
];

#[derive(Debug)]
pub struct Driver {
    library: Library,
    pub path: Option<PathBuf>,
}

/// The driver, opened at the first call; `None` where there is none, or it does not load.
pub fn driver() -> Option<&'static Driver> {
    found().ok().flatten()
}

/// The driver; a library that exists but does not load is a refusal, like a driver that does not work.
fn found() -> Result<Option<&'static Driver>, &'static Refusal> {
    static DRIVER: OnceLock<Result<Option<Driver>, Refusal>> = OnceLock::new();
    DRIVER.get_or_init(|| open(&PLACES)).as_ref().map(Option::as_ref)
}

/// Why an installed driver gives no GPU; `None` if it gives one, or if there is no driver.
pub fn refusal() -> Option<Refusal> {
    match found() {
        Ok(driver) => driver?.count().err(),
        Err(refusal) => Some(refusal.clone()),
    }
}

/// The number of GPUs that CUDA shows to this process; at least one.
///
/// # Errors
/// [`crate::error::Kind::Device`] where there is no driver, no GPU, or the driver refuses.
pub fn devices() -> Result<u32> {
    let Some(driver) = found().map_err(refused)? else {
        let error = Error::device("the GPU engine cannot run here: there is no NVIDIA driver (libcuda.so.1)");
        return Err(
            error.hint("install the NVIDIA driver, or run with `--device cpu` a spec whose engine is `auto` or `cpu`")
        );
    };
    match driver.count().map_err(|refusal| refused(&refusal))? {
        0 => {
            let error = Error::device("the GPU engine cannot run here: the NVIDIA driver shows no GPU");
            Err(error
                .hint("check CUDA_VISIBLE_DEVICES, or run with `--device cpu` a spec whose engine is `auto` or `cpu`"))
        }
        count => Ok(count),
    }
}

/// Whether CUDA shows a GPU to this process. A machine without a driver, and a driver that says that there is no GPU, have none.
///
/// # Errors
/// [`crate::error::Kind::Device`] where a driver is installed but refuses: work for the GPU must not run on the CPU
/// instead.
pub fn has_gpu() -> Result<bool> {
    let driver = found().map_err(refused)?;
    driver.map_or(Ok(false), |driver| Ok(driver.count().map_err(|refusal| refused(&refusal))? > 0))
}

fn refused(refusal: &Refusal) -> Error {
    let Refusal { what, remedy, .. } = refusal;
    Error::device(format!("the GPU cannot be used: the NVIDIA driver is installed, but {what}"))
        .hint(format!("{remedy}; or run on the CPU with `--device cpu`"))
}

/// A GPU as described by CUDA, without the management library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CudaGpuFacts {
    pub name: String,
    /// Major and minor.
    pub compute_capability: (u32, u32),
    pub memory_bytes: u64,
    /// `0000:3B:00.0`.
    pub pci_bus_id: String,
}

/// The GPUs that CUDA shows to this process, in its order; none where CUDA is not available.
pub fn gpus() -> Vec<CudaGpuFacts> {
    let (Some(driver), Ok(count)) = (driver(), devices()) else { return Vec::new() };
    (0..count).filter_map(|ordinal| driver.seen(c_int::try_from(ordinal).ok()?)).collect()
}

impl Driver {
    /// The newest CUDA that this driver runs, as major and minor; cuDriverGetVersion, which needs no GPU.
    pub fn cuda_version(&self) -> Option<(u32, u32)> {
        let mut version: c_int = 0;
        // SAFETY: int cuDriverGetVersion(int*), of cuda.h; it writes one int.
        let result = unsafe {
            let call = self.library.get::<unsafe extern "C" fn(*mut c_int) -> c_int>(b"cuDriverGetVersion\0").ok()?;
            call(&raw mut version)
        };
        let version = u32::try_from(version).ok().filter(|version| result == 0 && *version > 0)?;
        Some((version / 1000, version % 1000 / 10))
    }

    /// Initialises CUDA and counts its GPUs.
    ///
    /// # Errors
    /// Why the driver refuses. The absence of a GPU is an answer, not an error.
    pub fn count(&self) -> Result<u32, Refusal> {
        let mut count: c_int = 0;
        // SAFETY: int cuInit(unsigned) and int cuDeviceGetCount(int*), of cuda.h.
        unsafe {
            let missing = |error: libloading::Error| Refusal::lacking(error.to_string());
            let init = self.library.get::<unsafe extern "C" fn(c_uint) -> c_int>(b"cuInit\0").map_err(missing)?;
            let counter = self.library.get::<unsafe extern "C" fn(*mut c_int) -> c_int>(b"cuDeviceGetCount\0");
            let counter = counter.map_err(missing)?;
            for call in [&|_| init(0), &|count| counter(count)] as [&dyn Fn(*mut c_int) -> c_int; 2] {
                match call(&raw mut count) {
                    0 => {}
                    NO_DEVICE => return Ok(0),
                    code => return Err(Refusal::of(code, &self.name_of(code))),
                }
            }
        }
        Ok(u32::try_from(count).unwrap_or(0))
    }

    /// What CUDA reports about one GPU; CUDA is initialised.
    fn seen(&self, ordinal: c_int) -> Option<CudaGpuFacts> {
        // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR.
        const CAPABILITY: [c_int; 2] = [75, 76];
        let mut device: c_int = 0;
        let (mut name, mut address) = ([0 as c_char; 256], [0 as c_char; 32]);
        let mut capability: [c_int; 2] = [0; 2];
        let mut bytes = 0_usize;
        type Text = unsafe extern "C" fn(*mut c_char, c_int, c_int) -> c_int;
        type Attribute = unsafe extern "C" fn(*mut c_int, c_int, c_int) -> c_int;
        // SAFETY: the signatures are those of cuda.h, where CUdevice is an int; texts end with a zero within their length.
        unsafe {
            let get = self.library.get::<unsafe extern "C" fn(*mut c_int, c_int) -> c_int>(b"cuDeviceGet\0").ok()?;
            let get_name = self.library.get::<Text>(b"cuDeviceGetName\0").ok()?;
            let get_address = self.library.get::<Text>(b"cuDeviceGetPCIBusId\0").ok()?;
            let get_attribute = self.library.get::<Attribute>(b"cuDeviceGetAttribute\0").ok()?;
            type Total = unsafe extern "C" fn(*mut usize, c_int) -> c_int;
            let get_total = self.library.get::<Total>(b"cuDeviceTotalMem_v2\0").ok()?;
            let mut answers = vec![get(&raw mut device, ordinal)];
            answers.push(get_name(name.as_mut_ptr(), 256, device));
            answers.push(get_address(address.as_mut_ptr(), 32, device));
            answers.push(get_total(&raw mut bytes, device));
            for (value, attribute) in capability.iter_mut().zip(CAPABILITY) {
                answers.push(get_attribute(value, attribute, device));
            }
            let text = |at: *const c_char| CStr::from_ptr(at).to_string_lossy().into_owned();
            let number = |value: c_int| u32::try_from(value).ok();
            answers.iter().all(|answer| *answer == 0).then_some(())?;
            Some(CudaGpuFacts {
                name: text(name.as_ptr()),
                compute_capability: (number(capability[0])?, number(capability[1])?),
                memory_bytes: bytes as u64,
                pci_bus_id: text(address.as_ptr()),
            })
        }
    }

    fn name_of(&self, code: c_int) -> String {
        let unknown = || format!("CUDA error {code}");
        let mut text: *const c_char = std::ptr::null();
        // SAFETY: int cuGetErrorString(int, const char**), of cuda.h; it gives a static string, or null.
        unsafe {
            type ErrorString = unsafe extern "C" fn(c_int, *mut *const c_char) -> c_int;
            let Ok(call) = self.library.get::<ErrorString>(b"cuGetErrorString\0") else { return unknown() };
            if call(code, &raw mut text) != 0 || text.is_null() {
                return unknown();
            }
            CStr::from_ptr(text).to_string_lossy().into_owned()
        }
    }
}

/// The first of some files that loads; `None` if none of them exists.
///
/// # Errors
/// Why the first existing file does not load.
pub(crate) fn open(places: &[&str]) -> Result<Option<Driver>, Refusal> {
    let mut refusal = None;
    for place in places {
        // SAFETY: the driver's library does nothing when it is loaded; CUDA begins at cuInit.
        match unsafe { Library::new(*place) } {
            Ok(library) => {
                let named = Some(PathBuf::from(place)).filter(|place| place.is_absolute());
                return Ok(Some(Driver { library, path: named.or_else(|| loaded_path("libcuda.so")) }));
            }
            Err(error) => {
                let why = std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
                if !is_missing(place, &why) {
                    refusal.get_or_insert_with(|| Refusal::unloadable(&why));
                }
            }
        }
    }
    refusal.map_or(Ok(None), Err)
}

/// Whether the loader's message says that this file is missing, rather than a library on which it depends:
/// `libcuda.so.1: cannot open shared object file: No such file or directory`.
fn is_missing(place: &str, message: &str) -> bool {
    message.split(':').next().is_some_and(|named| named.ends_with(place))
        && message.contains("No such file or directory")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_driver_is_no_driver() {
        for place in ["/nonexistent/libcuda.so.1", "libbatchstep-has-no-such-library.so.1"] {
            assert!(open(&[place]).unwrap().is_none());
        }
    }

    /// Work for the GPU must not run on the CPU because of a damaged installation.
    #[test]
    fn a_driver_that_is_there_and_does_not_load_is_a_refusal_with_a_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("libcuda.so.1");
        std::fs::write(&path, "").unwrap();
        let refusal = open(&["/nonexistent/libcuda.so.1", path.to_str().unwrap()]).unwrap_err();
        let error = refused(&refusal).to_string();
        assert!(error.contains("libcuda.so.1 does not load") && error.contains("file too short"), "{error}");
        assert!(error.contains("reinstall the NVIDIA driver") && error.contains("--device cpu"), "{error}");
    }

    #[test]
    fn a_file_that_the_driver_needs_and_that_is_missing_is_no_missing_driver() {
        let missing = "cannot open shared object file: No such file or directory";
        assert!(is_missing("libcuda.so.1", &format!("libcuda.so.1: {missing}")));
        assert!(!is_missing("libcuda.so.1", &format!("libnvidia-ptxjitcompiler.so.1: {missing}")));
        assert!(!is_missing("libcuda.so.1", "/usr/lib/libcuda.so.1: wrong ELF class: ELFCLASS32"));
    }

    /// A driver that answers only the calls that need no GPU.
    fn stub(folder: &std::path::Path, [init, count_answer, count]: [i32; 3]) -> Option<Driver> {
        let path = folder.join(format!("{init}-{count_answer}-{count}/libcuda.so.1"));
        let source = format!(
            "int cuInit(unsigned flags) {{ return {init}; }}\n\
             int cuDeviceGetCount(int *count) {{ *count = {count}; return {count_answer}; }}\n\
             int cuDriverGetVersion(int *version) {{ *version = 12080; return 0; }}\n"
        );
        crate::needs::shared_library(&source, &path).then(|| open(&[path.to_str().unwrap()]).unwrap().unwrap())
    }

    #[test]
    fn no_gpu_is_an_answer_and_every_other_code_a_refusal_with_its_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let said = |answers| stub(folder.path(), answers).map(|driver| driver.count());
        let Some(none) = said([100, 0, 0]) else { return };
        assert_eq!((none, said([0, 100, 0]), said([0, 0, 2])), (Ok(0), Some(Ok(0)), Some(Ok(2))));
        let remedies = [
            (34, "stubs"),
            (46, "nvidia-smi -c DEFAULT"),
            (101, "CUDA_VISIBLE_DEVICES"),
            (802, "nvidia-fabricmanager"),
            (803, "reboot"),
            (804, "cuda-compat"),
            (999, "modprobe nvidia_uvm"),
        ];
        for (code, remedy) in remedies {
            for answers in [[code, 0, 1], [0, code, 1]] {
                let refusal = said(answers).unwrap().unwrap_err();
                let error = refused(&refusal).to_string();
                assert!(error.contains(&format!(", {code})")) && error.contains(remedy), "{error}");
                assert!(error.contains("--device cpu"), "{error}");
            }
        }
    }

    /// `nvidia0`, `nvidia1`: the kernel module's device files, which CUDA opens; WSL has `dxg`.
    fn device_files() -> usize {
        let name = |entry: std::fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
        let is_gpu = |name: &String| {
            let number = name.strip_prefix("nvidia").unwrap_or_default();
            name == "dxg" || !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
        };
        std::fs::read_dir("/dev").into_iter().flatten().flatten().map(name).filter(is_gpu).count()
    }

    /// The driver must agree with the device files.
    #[test]
    fn this_machine_has_a_gpu_or_says_why_not() {
        let found = devices();
        let files = device_files();
        match (&found, driver()) {
            (Ok(count), Some(driver)) => {
                assert!((1..=files).contains(&(*count as usize)), "{count} GPUs, {files} device files");
                assert!(driver.cuda_version().is_some() && gpus().len() == *count as usize);
            }
            (Ok(count), None) => panic!("{count} GPUs without a driver"),
            (Err(error), driver) => {
                let error = error.to_string();
                assert!(error.contains("cannot "), "{error}");
                assert_eq!(driver.is_none(), error.contains("there is no NVIDIA driver"), "{error}");
                let hidden = std::env::var_os("CUDA_VISIBLE_DEVICES").is_some();
                assert!(driver.is_none() || hidden || files == 0, "{files} device files, and yet: {error}");
                assert!(gpus().is_empty());
            }
        }
    }
}
