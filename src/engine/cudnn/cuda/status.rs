//! Status codes of the libraries as results: which call failed, and the library's own message.
//!
//! A code is never printed through its Rust enum: a newer library may know more codes than the bindings do.

use std::ffi::{CStr, c_char};
use std::fmt::Display;

use super::api::cublaslt as blas;
use super::api::cudnn as dnn;
use super::api::driver as cuda;
use super::api::nvrtc as rtc;

use super::remedy;
use crate::error::{Error, Kind, Result};

/// The driver's answer to `doing` something. Here and below the error is [`Kind::OutOfMemory`] where memory is short, else
/// [`Kind::Engine`].
pub(super) fn driver(doing: impl Display, answer: cuda::CUresult) -> Result<()> {
    if answer == cuda::CUresult::CUDA_SUCCESS {
        return Ok(());
    }
    let (mut name, mut text): (*const c_char, *const c_char) = (std::ptr::null(), std::ptr::null());
    // SAFETY: both write a pointer to a static string, or null for a code that the driver does not know.
    unsafe {
        let _ = cuda::cuGetErrorName(answer, &raw mut name);
        let _ = cuda::cuGetErrorString(answer, &raw mut text);
    }
    let why = format!("{} ({})", words(name), words(text));
    let is_of_memory = answer == cuda::CUresult::CUDA_ERROR_OUT_OF_MEMORY;
    let error = refusal("the CUDA driver", doing, &why, is_of_memory).hint(remedy::of_driver(answer as u32));
    Err(if is_of_a_kernel(answer as u32) { error } else { error.no_kernels_fault() })
}

/// Whether a CUresult may concern the kernel of a call: its code, name, arguments, launch or behaviour. All others
/// concern the GPU, its memory, a stream or a graph.
fn is_of_a_kernel(code: u32) -> bool {
    match code {
        // Invalid value, device function, image; no binary for this GPU; invalid or unsupported PTX; not found.
        1 | 98 | 200 | 209 | 218 | 222 | 500 => true,
        // Illegal address or instruction and the like; too many resources, too long, a cooperative launch that is too large.
        700..=702 | 710 | 714..=720 => true,
        _ => false,
    }
}

/// cuDNN's answer, with its last message where it left one.
pub(super) fn cudnn(doing: impl Display, answer: dnn::cudnnStatus_t) -> Result<()> {
    use dnn::cudnnStatus_t as Status;
    if answer == Status::CUDNN_STATUS_SUCCESS {
        return Ok(());
    }
    let mut message = [0_u8; 512];
    // SAFETY: a static string; and at most 512 bytes with a zero at the end (cudnn_graph.h). Both exist since cuDNN 9.0.
    let (name, detail) = unsafe {
        let name = words(dnn::cudnnGetErrorString(answer));
        dnn::cudnnGetLastErrorString(message.as_mut_ptr().cast(), message.len());
        (name, CStr::from_bytes_until_nul(&message).map(CStr::to_string_lossy).unwrap_or_default())
    };
    let detail = detail.trim();
    let why = if detail.is_empty() { name } else { format!("{name}: {detail}") };
    let is_of_memory = answer == Status::CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
    let error = refusal("cuDNN", doing, &why, is_of_memory);
    Err(error.no_kernels_fault().hint(remedy::of_cudnn(answer as u32)))
}

/// cuBLASLt's answer.
pub(super) fn cublas(doing: impl Display, answer: blas::cublasStatus_t) -> Result<()> {
    if answer == blas::cublasStatus_t::CUBLAS_STATUS_SUCCESS {
        return Ok(());
    }
    // SAFETY: a static string.
    let name = words(unsafe { blas::cublasLtGetStatusName(answer) });
    let error = refusal("cuBLASLt", doing, &name, answer == blas::cublasStatus_t::CUBLAS_STATUS_ALLOC_FAILED);
    Err(error.no_kernels_fault().hint(remedy::of_cublas(answer as u32)))
}

/// NVRTC's answer.
pub(super) fn nvrtc(doing: impl Display, answer: rtc::nvrtcResult) -> Result<()> {
    if answer == rtc::nvrtcResult::NVRTC_SUCCESS {
        return Ok(());
    }
    // SAFETY: a static string.
    let name = words(unsafe { rtc::nvrtcGetErrorString(answer) });
    let error = refusal("NVRTC", doing, &name, answer == rtc::nvrtcResult::NVRTC_ERROR_OUT_OF_MEMORY);
    let error = error.hint(remedy::of_nvrtc(answer as u32));
    // If the source does not compile, the kernel's source is at fault.
    Err(if answer == rtc::nvrtcResult::NVRTC_ERROR_COMPILATION { error } else { error.no_kernels_fault() })
}

fn refusal(who: &str, doing: impl Display, why: &str, is_of_memory: bool) -> Error {
    let kind = if is_of_memory { Kind::OutOfMemory } else { Kind::Engine };
    Error::new(kind, format!("{who} refused to {doing}: {why}"))
}

fn words(text: *const c_char) -> String {
    if text.is_null() {
        return "an unknown code".into();
    }
    // SAFETY: the libraries give static strings that end with a zero.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}
