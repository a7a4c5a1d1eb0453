//! NVRTC's functions, recorded. See [`super`].
#![allow(non_snake_case, clippy::too_many_arguments, clippy::missing_safety_doc)]

use std::ffi::{c_char, c_int};

use cudarc::nvrtc::sys;
pub use cudarc::nvrtc::sys::*;

use super::{Library, calls, device, put, recording, text, words};

const LOG: &str = "an error\0";

calls! {
    Library::Nvrtc, sys, nvrtcResult:
        nvrtcCompileProgram(prog: nvrtcProgram, num_options: c_int, options: *const *const c_char) => 0;
        nvrtcCreateProgram(prog: *mut nvrtcProgram, src: *const c_char, name: *const c_char, num_headers: c_int, headers: *const *const c_char, include_names: *const *const c_char) => device::program(prog, src);
        nvrtcDestroyProgram(prog: *mut nvrtcProgram) => 0;
        nvrtcGetCUBIN(prog: nvrtcProgram, cubin: *mut c_char) => device::code(prog as usize, cubin);
        nvrtcGetCUBINSize(prog: nvrtcProgram, cubin_size_ret: *mut usize) => device::code_size(prog as usize, cubin_size_ret);
        nvrtcGetNumSupportedArchs(num_archs: *mut c_int) => put(num_archs, 1);
        nvrtcGetPTX(prog: nvrtcProgram, ptx: *mut c_char) => device::code(prog as usize, ptx);
        nvrtcGetPTXSize(prog: nvrtcProgram, ptx_size_ret: *mut usize) => device::code_size(prog as usize, ptx_size_ret);
        nvrtcGetProgramLog(prog: nvrtcProgram, log: *mut c_char) => text(log, LOG.len() as c_int, "an error\0");
        nvrtcGetProgramLogSize(prog: nvrtcProgram, log_size_ret: *mut usize) => put(log_size_ret, LOG.len());
        nvrtcGetSupportedArchs(supported_archs: *mut c_int) => put(supported_archs, 80);
}

/// nvrtc.h.
const CODES: [(u32, &str); 3] = [
    (1, "NVRTC_ERROR_OUT_OF_MEMORY\0"),
    (6, "NVRTC_ERROR_COMPILATION\0"),
    (7, "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE\0"),
];

pub unsafe fn nvrtcGetErrorString(result: nvrtcResult) -> *const c_char {
    match recording() {
        true => words(&CODES, result as u32),
        // SAFETY: as the caller says.
        false => unsafe { sys::nvrtcGetErrorString(result) },
    }
}
