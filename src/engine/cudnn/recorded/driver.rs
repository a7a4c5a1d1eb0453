//! The driver's functions, recorded. See [`super`].
#![allow(non_snake_case, clippy::too_many_arguments, clippy::missing_safety_doc)]

use std::ffi::{c_char, c_int, c_uchar, c_uint, c_ulonglong, c_void};

use cudarc::driver::sys;
pub use cudarc::driver::sys::*;

use super::{Library, calls, device, handle, put, recording, text, words};

calls! {
    Library::Driver, sys, CUresult:
        cuCtxSetCurrent(ctx: CUcontext) => 0;
        cuDeviceGet(device: *mut CUdevice, ordinal: c_int) => put(device, 0);
        cuDeviceGetAttribute(pi: *mut c_int, attrib: CUdevice_attribute, dev: CUdevice) => put(pi, device::attribute(attrib));
        cuDeviceGetName(name: *mut c_char, len: c_int, dev: CUdevice) => text(name, len, device::NAME);
        cuDeviceGetPCIBusId(pci_bus_id: *mut c_char, len: c_int, dev: CUdevice) => text(pci_bus_id, len, device::ADDRESS);
        cuDevicePrimaryCtxRelease_v2(dev: CUdevice) => 0;
        cuDevicePrimaryCtxRetain(pctx: *mut CUcontext, dev: CUdevice) => handle(pctx);
        cuDeviceTotalMem_v2(bytes: *mut usize, dev: CUdevice) => put(bytes, device::BYTES as usize);
        cuDriverGetVersion(driver_version: *mut c_int) => put(driver_version, device::CUDA);
        cuEventCreate(ph_event: *mut CUevent, flags: c_uint) => handle(ph_event);
        cuEventDestroy_v2(h_event: CUevent) => 0;
        cuEventElapsedTime_v2(p_milliseconds: *mut f32, h_start: CUevent, h_end: CUevent) => put(p_milliseconds, 1.0);
        cuEventRecord(h_event: CUevent, h_stream: CUstream) => 0;
        cuEventRecordWithFlags(h_event: CUevent, h_stream: CUstream, flags: c_uint) => 0;
        cuEventSynchronize(h_event: CUevent) => 0;
        cuFuncGetAttribute(pi: *mut c_int, attrib: CUfunction_attribute, hfunc: CUfunction) => put(pi, device::function_attribute(attrib));
        cuFuncGetName(name: *mut *const c_char, hfunc: CUfunction) => put(name, device::name_of(hfunc as usize));
        cuFuncGetParamInfo(func: CUfunction, param_index: usize, param_offset: *mut usize, param_size: *mut usize) => device::parameter(func as usize, param_index, param_size);
        cuFuncLoad(function: CUfunction) => 0;
        cuFuncSetAttribute(hfunc: CUfunction, attrib: CUfunction_attribute, value: c_int) => 0;
        cuGraphDestroy(h_graph: CUgraph) => 0;
        cuGraphExecDestroy(h_graph_exec: CUgraphExec) => 0;
        cuGraphGetNodes(h_graph: CUgraph, nodes: *mut CUgraphNode, num_nodes: *mut usize) => device::nodes(h_graph as usize, nodes.cast(), num_nodes);
        cuGraphInstantiateWithFlags(ph_graph_exec: *mut CUgraphExec, h_graph: CUgraph, flags: c_ulonglong) => handle(ph_graph_exec);
        cuGraphKernelNodeGetAttribute(h_node: CUgraphNode, attr: CUkernelNodeAttrID, value_out: *mut CUkernelNodeAttrValue) => device::cluster(h_node as usize, value_out);
        cuGraphKernelNodeGetParams_v2(h_node: CUgraphNode, node_params: *mut CUDA_KERNEL_NODE_PARAMS) => device::launch(h_node as usize, node_params);
        cuGraphLaunch(h_graph_exec: CUgraphExec, h_stream: CUstream) => 0;
        cuGraphNodeGetType(h_node: CUgraphNode, type_: *mut CUgraphNodeType) => put(type_.cast(), device::node_type(h_node as usize));
        cuGraphUpload(h_graph_exec: CUgraphExec, h_stream: CUstream) => 0;
        cuInit(flags: c_uint) => 0;
        cuKernelGetFunction(p_func: *mut CUfunction, kernel: CUkernel) => put(p_func, kernel.cast());
        cuLaunchKernel(f: CUfunction, grid_dim_x: c_uint, grid_dim_y: c_uint, grid_dim_z: c_uint, block_dim_x: c_uint, block_dim_y: c_uint, block_dim_z: c_uint, shared_mem_bytes: c_uint, h_stream: CUstream, kernel_params: *mut *mut c_void, extra: *mut *mut c_void) => device::kernel(f as usize, [grid_dim_x, grid_dim_y, grid_dim_z], [block_dim_x, block_dim_y, block_dim_z]);
        cuMemAlloc_v2(dptr: *mut CUdeviceptr, bytesize: usize) => device::allocate(dptr, bytesize);
        cuMemFreeHost(p: *mut c_void) => device::free_host(p as usize);
        cuMemFree_v2(dptr: CUdeviceptr) => device::free(dptr);
        cuMemGetInfo_v2(free: *mut usize, total: *mut usize) => put(total, device::BYTES as usize) | put(free, device::free_bytes());
        cuMemHostAlloc(pp: *mut *mut c_void, bytesize: usize, flags: c_uint) => device::allocate_host(pp, bytesize);
        cuMemcpyDtoDAsync_v2(dst_device: CUdeviceptr, src_device: CUdeviceptr, byte_count: usize, h_stream: CUstream) => 0;
        cuMemcpyDtoHAsync_v2(dst_host: *mut c_void, src_device: CUdeviceptr, byte_count: usize, h_stream: CUstream) => device::read(dst_host, src_device, byte_count);
        cuMemcpyHtoDAsync_v2(dst_device: CUdeviceptr, src_host: *const c_void, byte_count: usize, h_stream: CUstream) => 0;
        cuMemsetD32Async(dst_device: CUdeviceptr, ui: c_uint, n: usize, h_stream: CUstream) => device::memset(dst_device, 4 * n, ui as u8);
        cuMemsetD8Async(dst_device: CUdeviceptr, uc: c_uchar, n: usize, h_stream: CUstream) => device::memset(dst_device, n, uc);
        cuModuleGetFunction(hfunc: *mut CUfunction, hmod: CUmodule, name: *const c_char) => device::function(hfunc, hmod as usize, name);
        cuModuleLoadData(module: *mut CUmodule, image: *const c_void) => device::program(module, image.cast());
        cuModuleUnload(hmod: CUmodule) => 0;
        cuOccupancyMaxActiveBlocksPerMultiprocessor(num_blocks: *mut c_int, func: CUfunction, block_size: c_int, dynamic_smem_size: usize) => put(num_blocks, 2);
        cuOccupancyMaxActiveClusters(num_clusters: *mut c_int, func: CUfunction, config: *const CUlaunchConfig) => put(num_clusters, 20);
        cuStreamBeginCapture_v2(h_stream: CUstream, mode: CUstreamCaptureMode) => device::begin_capture();
        cuStreamCreate(ph_stream: *mut CUstream, flags: c_uint) => handle(ph_stream);
        cuStreamDestroy_v2(h_stream: CUstream) => 0;
        cuStreamEndCapture(h_stream: CUstream, ph_graph: *mut CUgraph) => device::end_capture(ph_graph);
        cuStreamSynchronize(h_stream: CUstream) => 0;
        cuStreamWaitEvent(h_stream: CUstream, h_event: CUevent, flags: c_uint) => 0;
}

/// The codes that faults have here, and what cuda.h calls them.
const CODES: [(u32, &str, &str); 5] = [
    (2, "CUDA_ERROR_OUT_OF_MEMORY\0", "out of memory\0"),
    (4, "CUDA_ERROR_DEINITIALIZED\0", "driver shutting down\0"),
    (700, "CUDA_ERROR_ILLEGAL_ADDRESS\0", "an illegal memory access was encountered\0"),
    (900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED\0", "operation not permitted when stream is capturing\0"),
    (901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED\0", "operation failed due to a previous error during capture\0"),
];

pub unsafe fn cuGetErrorName(error: CUresult, out: *mut *const c_char) -> CUresult {
    // SAFETY: as the caller says.
    unsafe {
        if !recording() {
            return sys::cuGetErrorName(error, out);
        }
        put(out, words(&CODES.map(|(code, name, _)| (code, name)), error as u32));
    }
    CUresult::CUDA_SUCCESS
}

pub unsafe fn cuGetErrorString(error: CUresult, out: *mut *const c_char) -> CUresult {
    // SAFETY: as the caller says.
    unsafe {
        if !recording() {
            return sys::cuGetErrorString(error, out);
        }
        put(out, words(&CODES.map(|(code, _, text)| (code, text)), error as u32));
    }
    CUresult::CUDA_SUCCESS
}

/// A function that not every driver has, by its name.
pub unsafe fn of_driver<T: Copy>(name: &[u8]) -> Option<T> {
    type Elapsed = unsafe extern "C" fn(*mut f32, CUevent, CUevent) -> CUresult;
    type Name = unsafe extern "C" fn(*mut *const c_char, CUfunction) -> CUresult;
    // SAFETY: the caller's type is the function's.
    unsafe {
        if !recording() {
            return sys::culib().get::<T>(name).ok().map(|found| *found);
        }
        assert_eq!(size_of::<T>(), size_of::<usize>());
        match name {
            b"cuEventElapsedTime_v2\0" => Some(std::mem::transmute_copy(&(elapsed as Elapsed))),
            b"cuFuncGetName\0" => Some(std::mem::transmute_copy(&(function_name as Name))),
            _ => None,
        }
    }
}

unsafe extern "C" fn elapsed(milliseconds: *mut f32, start: CUevent, end: CUevent) -> CUresult {
    // SAFETY: as the caller says.
    unsafe { cuEventElapsedTime_v2(milliseconds, start, end) }
}

unsafe extern "C" fn function_name(out: *mut *const c_char, function: CUfunction) -> CUresult {
    // SAFETY: as the caller says.
    unsafe { cuFuncGetName(out, function) }
}
