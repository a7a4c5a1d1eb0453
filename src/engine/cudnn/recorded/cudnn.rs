//! cuDNN's functions, recorded. See [`super`].
#![allow(non_snake_case, clippy::too_many_arguments, clippy::missing_safety_doc)]

use std::ffi::{c_char, c_int, c_void};

use cudarc::cudnn::sys;
pub use cudarc::cudnn::sys::*;

use super::descriptors::{self, AttributeValues};
use super::{Library, calls, handle, put, recording, words};

/// One algorithm in a list of cuDNN's older calls: deterministic, in float32, of 4 KiB.
macro_rules! listed {
    ($count:expr, $results:expr, $algorithm:expr) => {{
        std::ptr::write_bytes($results, 0, 1);
        (*$results).algo = $algorithm;
        (*$results).memory = 4096;
        (*$results).determinism = sys::cudnnDeterminism_t::CUDNN_DETERMINISTIC;
        (*$results).mathType = sys::cudnnMathType_t::CUDNN_FMA_MATH;
        *$count = 1;
        0
    }};
}

calls! {
    Library::Cudnn, sys, cudnnStatus_t:
        cudnnBackendCreateDescriptor(descriptor_type: cudnnBackendDescriptorType_t, descriptor: *mut cudnnBackendDescriptor_t) => handle(descriptor);
        cudnnBackendDestroyDescriptor(descriptor: cudnnBackendDescriptor_t) => 0;
        cudnnBackendExecute(handle: cudnnHandle_t, execution_plan: cudnnBackendDescriptor_t, variant_pack: cudnnBackendDescriptor_t) => descriptors::execute(handle as usize);
        cudnnBackendFinalize(descriptor: cudnnBackendDescriptor_t) => 0;
        cudnnBackendGetAttribute(descriptor: cudnnBackendDescriptor_t, attribute_name: cudnnBackendAttributeName_t, attribute_type: cudnnBackendAttributeType_t, requested_element_count: i64, element_count: *mut i64, array_of_elements: *mut c_void) => descriptors::attribute(descriptor as usize, attribute_name, &mut AttributeValues { count: element_count, elements: array_of_elements });
        cudnnBackendSetAttribute(descriptor: cudnnBackendDescriptor_t, attribute_name: cudnnBackendAttributeName_t, attribute_type: cudnnBackendAttributeType_t, element_count: i64, array_of_elements: *const c_void) => 0;
        cudnnConvolutionBackwardData(handle: cudnnHandle_t, alpha: *const c_void, w_desc: cudnnFilterDescriptor_t, w: *const c_void, dy_desc: cudnnTensorDescriptor_t, dy: *const c_void, conv_desc: cudnnConvolutionDescriptor_t, algo: cudnnConvolutionBwdDataAlgo_t, work_space: *mut c_void, work_space_size_in_bytes: usize, beta: *const c_void, dx_desc: cudnnTensorDescriptor_t, dx: *mut c_void) => descriptors::execute(handle as usize);
        cudnnConvolutionBackwardFilter(handle: cudnnHandle_t, alpha: *const c_void, x_desc: cudnnTensorDescriptor_t, x: *const c_void, dy_desc: cudnnTensorDescriptor_t, dy: *const c_void, conv_desc: cudnnConvolutionDescriptor_t, algo: cudnnConvolutionBwdFilterAlgo_t, work_space: *mut c_void, work_space_size_in_bytes: usize, beta: *const c_void, dw_desc: cudnnFilterDescriptor_t, dw: *mut c_void) => descriptors::execute(handle as usize);
        cudnnConvolutionForward(handle: cudnnHandle_t, alpha: *const c_void, x_desc: cudnnTensorDescriptor_t, x: *const c_void, w_desc: cudnnFilterDescriptor_t, w: *const c_void, conv_desc: cudnnConvolutionDescriptor_t, algo: cudnnConvolutionFwdAlgo_t, work_space: *mut c_void, work_space_size_in_bytes: usize, beta: *const c_void, y_desc: cudnnTensorDescriptor_t, y: *mut c_void) => descriptors::execute(handle as usize);
        cudnnCreate(handle_: *mut cudnnHandle_t) => handle(handle_);
        cudnnCreateConvolutionDescriptor(conv_desc: *mut cudnnConvolutionDescriptor_t) => handle(conv_desc);
        cudnnCreateFilterDescriptor(filter_desc: *mut cudnnFilterDescriptor_t) => handle(filter_desc);
        cudnnCreateTensorDescriptor(tensor_desc: *mut cudnnTensorDescriptor_t) => handle(tensor_desc);
        cudnnDestroy(handle: cudnnHandle_t) => 0;
        cudnnDestroyConvolutionDescriptor(conv_desc: cudnnConvolutionDescriptor_t) => 0;
        cudnnDestroyFilterDescriptor(filter_desc: cudnnFilterDescriptor_t) => 0;
        cudnnDestroyTensorDescriptor(tensor_desc: cudnnTensorDescriptor_t) => 0;
        cudnnGetConvolution2dForwardOutputDim(conv_desc: cudnnConvolutionDescriptor_t, input_tensor_desc: cudnnTensorDescriptor_t, filter_desc: cudnnFilterDescriptor_t, n: *mut c_int, c: *mut c_int, h: *mut c_int, w: *mut c_int) => descriptors::output([conv_desc as usize, input_tensor_desc as usize, filter_desc as usize], [n, c, h, w]);
        cudnnGetConvolutionBackwardDataAlgorithm_v7(handle: cudnnHandle_t, filter_desc: cudnnFilterDescriptor_t, diff_desc: cudnnTensorDescriptor_t, conv_desc: cudnnConvolutionDescriptor_t, grad_desc: cudnnTensorDescriptor_t, requested_algo_count: c_int, returned_algo_count: *mut c_int, perf_results: *mut cudnnConvolutionBwdDataAlgoPerf_t) => listed!(returned_algo_count, perf_results, sys::cudnnConvolutionBwdDataAlgo_t::CUDNN_CONVOLUTION_BWD_DATA_ALGO_1);
        cudnnGetConvolutionBackwardDataWorkspaceSize(handle: cudnnHandle_t, w_desc: cudnnFilterDescriptor_t, dy_desc: cudnnTensorDescriptor_t, conv_desc: cudnnConvolutionDescriptor_t, dx_desc: cudnnTensorDescriptor_t, algo: cudnnConvolutionBwdDataAlgo_t, size_in_bytes: *mut usize) => put(size_in_bytes, 4096);
        cudnnGetConvolutionBackwardFilterAlgorithm_v7(handle: cudnnHandle_t, src_desc: cudnnTensorDescriptor_t, diff_desc: cudnnTensorDescriptor_t, conv_desc: cudnnConvolutionDescriptor_t, grad_desc: cudnnFilterDescriptor_t, requested_algo_count: c_int, returned_algo_count: *mut c_int, perf_results: *mut cudnnConvolutionBwdFilterAlgoPerf_t) => listed!(returned_algo_count, perf_results, sys::cudnnConvolutionBwdFilterAlgo_t::CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1);
        cudnnGetConvolutionBackwardFilterWorkspaceSize(handle: cudnnHandle_t, x_desc: cudnnTensorDescriptor_t, dy_desc: cudnnTensorDescriptor_t, conv_desc: cudnnConvolutionDescriptor_t, grad_desc: cudnnFilterDescriptor_t, algo: cudnnConvolutionBwdFilterAlgo_t, size_in_bytes: *mut usize) => put(size_in_bytes, 4096);
        cudnnGetConvolutionForwardAlgorithm_v7(handle: cudnnHandle_t, src_desc: cudnnTensorDescriptor_t, filter_desc: cudnnFilterDescriptor_t, conv_desc: cudnnConvolutionDescriptor_t, dest_desc: cudnnTensorDescriptor_t, requested_algo_count: c_int, returned_algo_count: *mut c_int, perf_results: *mut cudnnConvolutionFwdAlgoPerf_t) => listed!(returned_algo_count, perf_results, sys::cudnnConvolutionFwdAlgo_t::CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM);
        cudnnGetConvolutionForwardWorkspaceSize(handle: cudnnHandle_t, x_desc: cudnnTensorDescriptor_t, w_desc: cudnnFilterDescriptor_t, conv_desc: cudnnConvolutionDescriptor_t, y_desc: cudnnTensorDescriptor_t, algo: cudnnConvolutionFwdAlgo_t, size_in_bytes: *mut usize) => put(size_in_bytes, 4096);
        cudnnGetConvolutionMathType(conv_desc: cudnnConvolutionDescriptor_t, math_type: *mut cudnnMathType_t) => descriptors::math(conv_desc as usize, math_type);
        cudnnSetConvolution2dDescriptor(conv_desc: cudnnConvolutionDescriptor_t, pad_h: c_int, pad_w: c_int, u: c_int, v: c_int, dilation_h: c_int, dilation_w: c_int, mode: cudnnConvolutionMode_t, compute_type: cudnnDataType_t) => descriptors::keep(conv_desc as usize, &[pad_h, pad_w, u, v]);
        cudnnSetConvolutionGroupCount(conv_desc: cudnnConvolutionDescriptor_t, group_count: c_int) => 0;
        cudnnSetConvolutionMathType(conv_desc: cudnnConvolutionDescriptor_t, math_type: cudnnMathType_t) => descriptors::keep_math(conv_desc as usize, math_type);
        cudnnSetFilter4dDescriptor(filter_desc: cudnnFilterDescriptor_t, data_type: cudnnDataType_t, format: cudnnTensorFormat_t, k: c_int, c: c_int, h: c_int, w: c_int) => descriptors::keep(filter_desc as usize, &[k, c, h, w]);
        cudnnSetStream(handle: cudnnHandle_t, stream_id: cudaStream_t) => descriptors::set_stream(handle as usize, stream_id as usize);
        cudnnSetTensor4dDescriptor(tensor_desc: cudnnTensorDescriptor_t, format: cudnnTensorFormat_t, data_type: cudnnDataType_t, n: c_int, c: c_int, h: c_int, w: c_int) => descriptors::keep(tensor_desc as usize, &[n, c, h, w]);
}

/// Codes of cudnn_graph.h.
const CODES: [(u32, &str); 5] = [
    (1008, "CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED\0"),
    (3000, "CUDNN_STATUS_NOT_SUPPORTED\0"),
    (4004, "CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED\0"),
    (5000, "CUDNN_STATUS_EXECUTION_FAILED\0"),
    (5001, "CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER\0"),
];

pub unsafe fn cudnnGetErrorString(status: cudnnStatus_t) -> *const c_char {
    match recording() {
        true => words(&CODES, status as u32),
        // SAFETY: as the caller says.
        false => unsafe { sys::cudnnGetErrorString(status) },
    }
}

/// Gives no message besides the code, as cuDNN does where it has none.
pub unsafe fn cudnnGetLastErrorString(message: *mut c_char, size: usize) {
    // SAFETY: as the caller says; at least one byte lies there.
    unsafe {
        match recording() {
            true => *message = 0,
            false => sys::cudnnGetLastErrorString(message, size),
        }
    }
}
