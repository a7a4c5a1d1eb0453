//! cuBLASLt's functions, recorded. See [`super`].
#![allow(non_snake_case, clippy::too_many_arguments, clippy::missing_safety_doc)]

use std::ffi::{c_char, c_int, c_void};

use cudarc::cublaslt::sys;
pub use cudarc::cublaslt::sys::*;

use super::{Library, calls, device, handle, recording, words};

calls! {
    Library::CublasLt, sys, cublasStatus_t:
        cublasLtCreate(light_handle: *mut cublasLtHandle_t) => handle(light_handle);
        cublasLtDestroy(light_handle: cublasLtHandle_t) => 0;
        cublasLtMatmul(light_handle: cublasLtHandle_t, compute_desc: cublasLtMatmulDesc_t, alpha: *const c_void, a: *const c_void, adesc: cublasLtMatrixLayout_t, b: *const c_void, bdesc: cublasLtMatrixLayout_t, beta: *const c_void, c: *const c_void, cdesc: cublasLtMatrixLayout_t, d: *mut c_void, ddesc: cublasLtMatrixLayout_t, algo: *const cublasLtMatmulAlgo_t, workspace: *mut c_void, workspace_size_in_bytes: usize, stream: cudaStream_t) => device::work("recorded_product", true);
        cublasLtMatmulAlgoCapGetAttribute(algo: *const cublasLtMatmulAlgo_t, attr: cublasLtMatmulAlgoCapAttributes_t, buf: *mut c_void, size_in_bytes: usize, size_written: *mut usize) => zeros(buf, size_in_bytes, size_written);
        cublasLtMatmulAlgoConfigGetAttribute(algo: *const cublasLtMatmulAlgo_t, attr: cublasLtMatmulAlgoConfigAttributes_t, buf: *mut c_void, size_in_bytes: usize, size_written: *mut usize) => configuration(algo, buf, size_in_bytes, size_written);
        cublasLtMatmulAlgoGetHeuristic(light_handle: cublasLtHandle_t, operation_desc: cublasLtMatmulDesc_t, adesc: cublasLtMatrixLayout_t, bdesc: cublasLtMatrixLayout_t, cdesc: cublasLtMatrixLayout_t, ddesc: cublasLtMatrixLayout_t, preference: cublasLtMatmulPreference_t, requested_algo_count: c_int, heuristic_results_array: *mut cublasLtMatmulHeuristicResult_t, return_algo_count: *mut c_int) => two_algorithms(heuristic_results_array, return_algo_count);
        cublasLtMatmulDescCreate(matmul_desc: *mut cublasLtMatmulDesc_t, compute_type: cublasComputeType_t, scale_type: cudaDataType_t) => handle(matmul_desc);
        cublasLtMatmulDescDestroy(matmul_desc: cublasLtMatmulDesc_t) => 0;
        cublasLtMatmulDescGetAttribute(matmul_desc: cublasLtMatmulDesc_t, attr: cublasLtMatmulDescAttributes_t, buf: *mut c_void, size_in_bytes: usize, size_written: *mut usize) => zeros(buf, size_in_bytes, size_written);
        cublasLtMatmulDescSetAttribute(matmul_desc: cublasLtMatmulDesc_t, attr: cublasLtMatmulDescAttributes_t, buf: *const c_void, size_in_bytes: usize) => 0;
        cublasLtMatmulPreferenceCreate(pref: *mut cublasLtMatmulPreference_t) => handle(pref);
        cublasLtMatmulPreferenceDestroy(pref: cublasLtMatmulPreference_t) => 0;
        cublasLtMatmulPreferenceSetAttribute(pref: cublasLtMatmulPreference_t, attr: cublasLtMatmulPreferenceAttributes_t, buf: *const c_void, size_in_bytes: usize) => 0;
        cublasLtMatrixLayoutCreate(mat_layout: *mut cublasLtMatrixLayout_t, type_: cudaDataType, rows: u64, cols: u64, ld: i64) => handle(mat_layout);
        cublasLtMatrixLayoutDestroy(mat_layout: cublasLtMatrixLayout_t) => 0;
        cublasLtMatrixLayoutGetAttribute(mat_layout: cublasLtMatrixLayout_t, attr: cublasLtMatrixLayoutAttribute_t, buf: *mut c_void, size_in_bytes: usize, size_written: *mut usize) => zeros(buf, size_in_bytes, size_written);
}

/// Codes of cublas_api.h.
const CODES: [(u32, &str); 4] = [
    (1, "CUBLAS_STATUS_NOT_INITIALIZED\0"),
    (3, "CUBLAS_STATUS_ALLOC_FAILED\0"),
    (13, "CUBLAS_STATUS_EXECUTION_FAILED\0"),
    (15, "CUBLAS_STATUS_NOT_SUPPORTED\0"),
];

pub unsafe fn cublasLtGetStatusName(status: cublasStatus_t) -> *const c_char {
    match recording() {
        true => words(&CODES, status as u32),
        // SAFETY: as the caller says.
        false => unsafe { sys::cublasLtGetStatusName(status) },
    }
}

unsafe fn zeros(buffer: *mut c_void, bytes: usize, written: *mut usize) -> u32 {
    // SAFETY: there are `bytes` bytes.
    unsafe {
        std::ptr::write_bytes(buffer.cast::<u8>(), 0, bytes);
        *written = bytes;
    }
    0
}

/// Every part of an algorithm's configuration is the number of its proposal.
unsafe fn configuration(
    algorithm: *const cublasLtMatmulAlgo_t,
    buffer: *mut c_void,
    bytes: usize,
    written: *mut usize,
) -> u32 {
    // SAFETY: there are `bytes` bytes, and an algorithm.
    unsafe {
        std::ptr::write_bytes(buffer.cast::<u8>(), (*algorithm).data[0] as u8, 1);
        zeros(buffer.cast::<u8>().add(1).cast(), bytes - 1, written);
        *written = bytes;
    }
    0
}

/// Zeros are an algorithm that succeeds without a workspace; the second one differs only in its number.
unsafe fn two_algorithms(results: *mut cublasLtMatmulHeuristicResult_t, count: *mut c_int) -> u32 {
    // SAFETY: there is room for eight, which the engine asks for.
    unsafe {
        std::ptr::write_bytes(results, 0, 2);
        (*results.add(1)).algo.data[0] = 1;
        *count = 2;
    }
    0
}
