//! A library's version, as the library reports it. None of these calls needs a GPU or a driver.

use std::ffi::c_int;
use std::path::Path;

use super::library::Library;

/// The oldest cuDNN that the engine supports: the calls that report why something was refused exist since then.
const OLDEST_CUDNN: usize = 90_000;

/// What a library reports about itself; `None` where it reports nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Version {
    /// `9.19.0`.
    pub text: Option<String>,
    /// The major version of the CUDA that it is built for.
    pub cuda: Option<u32>,
}

/// The version of a library.
///
/// # Errors
/// One clause, if the library cannot be used although it loads.
pub(super) fn read(library: Library, handle: &libloading::Library, path: &Path) -> Result<Version, String> {
    let text = match library {
        Library::CublasLt => size_call(handle, b"cublasLtGetVersion\0").map(cublas),
        Library::Cublas => cublas_property(handle),
        Library::NvrtcBuiltins => path.to_str().and_then(|path| path.rsplit_once(".so.")).map(|at| at.1.to_string()),
        Library::Nvrtc => nvrtc(handle),
        Library::Cudnn => {
            sublibrary(path)?;
            let number = size_call(handle, b"cudnnGetVersion\0");
            if let Some(old) = number.filter(|number| *number < OLDEST_CUDNN) {
                return Err(format!(
                    "it is cuDNN {}, and 9.0 is the oldest that the GPU engine works with",
                    cudnn(old)
                ));
            }
            // The version of CUDA's runtime, as major * 1000 + minor * 10.
            let cuda =
                size_call(handle, b"cudnnGetCudartVersion\0").and_then(|number| u32::try_from(number / 1000).ok());
            return Ok(Version { text: number.map(cudnn), cuda });
        }
    };
    // All except cuDNN are numbered like CUDA.
    let cuda = text.as_ref().and_then(|text| text.split('.').next()?.parse().ok());
    Ok(Version { text, cuda })
}

/// `size_t name(void)`: cublasLtGetVersion of cublasLt.h, cudnnGetVersion and cudnnGetCudartVersion of cudnn_graph.h.
fn size_call(handle: &libloading::Library, name: &[u8]) -> Option<usize> {
    // SAFETY: all have this signature in the headers of every version.
    unsafe { handle.get::<unsafe extern "C" fn() -> usize>(name).ok().map(|call| call()) }
}

/// cublasGetVersion needs a handle, and a handle needs a GPU; cublasGetProperty(libraryPropertyType, int*) needs
/// neither.
fn cublas_property(handle: &libloading::Library) -> Option<String> {
    // SAFETY: the signature of cublas_api.h; it writes one int.
    let call =
        unsafe { handle.get::<unsafe extern "C" fn(c_int, *mut c_int) -> c_int>(b"cublasGetProperty\0") }.ok()?;
    // MAJOR_VERSION, MINOR_VERSION, PATCH_LEVEL of library_types.h.
    let mut numbers = [0; 3];
    for (which, number) in (0..).zip(&mut numbers) {
        // SAFETY: as above.
        if unsafe { call(which, number) } != 0 {
            return None;
        }
    }
    Some(numbers.map(|number| number.to_string()).join("."))
}

/// nvrtcVersion(int* major, int* minor), of nvrtc.h.
fn nvrtc(handle: &libloading::Library) -> Option<String> {
    let (mut major, mut minor): (c_int, c_int) = (0, 0);
    // SAFETY: the signature of nvrtc.h; it writes two ints.
    let result = unsafe {
        let call = handle.get::<unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int>(b"nvrtcVersion\0").ok()?;
        call(&raw mut major, &raw mut minor)
    };
    (result == 0).then(|| format!("{major}.{minor}"))
}

/// cuDNN is a thin library over others and ends the process if it cannot find them, so they are searched for first.
fn sublibrary(path: &Path) -> Result<(), String> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let suffix = name.strip_prefix("libcudnn.so.").unwrap_or("9");
    let major = suffix.split('.').next().unwrap_or(suffix);
    // libcudnn_graph since version 9; version 8 has libcudnn_ops_infer.
    let part = if major == "8" { "libcudnn_ops_infer.so.8".to_string() } else { format!("libcudnn_graph.so.{major}") };
    let beside = path.with_file_name(&part);
    if beside.exists() {
        return Ok(());
    }
    // SAFETY: as for cuDNN itself; it is closed again immediately.
    let elsewhere = unsafe { libloading::Library::new(&part) };
    elsewhere.map(|_| ()).map_err(|_| format!("its component {part} is missing"))
}

/// `CUBLAS_VERSION` is major * 10000 + minor * 100 + patch (cublas_api.h).
fn cublas(number: usize) -> String {
    format!("{}.{}.{}", number / 10_000, number / 100 % 100, number % 100)
}

/// `CUDNN_VERSION` is major * 10000 + minor * 100 + patch since version 9, and major * 1000 before (cudnn_version.h).
fn cudnn(number: usize) -> String {
    if number < 10_000 {
        return format!("{}.{}.{}", number / 1000, number / 100 % 10, number % 100);
    }
    cublas(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    // Numbers of cudnn_version.h 8.9.7 (8907) and 9.19.0 (91900), and of cublas_api.h 12.1.3 (120103).
    #[test]
    fn version_numbers_are_taken_apart() {
        assert_eq!((cudnn(8907), cudnn(91_900), cublas(120_103)), ("8.9.7".into(), "9.19.0".into(), "12.1.3".into()));
    }

    #[test]
    fn cudnn_without_its_parts_is_not_called() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("libcudnn.so.77");
        let error = sublibrary(&path).unwrap_err();
        assert!(error.contains("libcudnn_graph.so.77"), "{error}");
        std::fs::write(folder.path().join("libcudnn_graph.so.77"), "").unwrap();
        assert_eq!(sublibrary(&path), Ok(()));
    }
}
