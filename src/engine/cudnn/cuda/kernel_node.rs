//! The kernels of a captured graph: their names, blocks and threads, and how many blocks the GPU holds at a time.
//!
//! The driver reports them for every kernel, whichever library launches it, without a profiler and without running
//! anything.

use std::ffi::{CStr, c_char, c_int};
use std::mem::MaybeUninit;
use std::sync::OnceLock;

use super::api::{driver as sys, of_driver};
use sys::CUfunction_attribute as Attribute;

use super::capture::Graph;
use crate::engine::cudnn::kernels::Launched;

/// A node that launches a kernel.
struct KernelNode {
    node: sys::CUgraphNode,
    function: sys::CUfunction,
    grid: [u32; 3],
    block: [u32; 3],
    /// Dynamic shared memory of a block.
    shared_bytes: u32,
}

impl Graph {
    /// Its kernels, on a GPU with that number of multiprocessors; `None` if the driver does not report one of them. A
    /// driver older than CUDA 12.3 reports no names.
    pub(super) fn kernels(&self, multiprocessors: u32) -> Option<Vec<Launched>> {
        let mut kernels = Vec::new();
        for node in self.handles().ok()? {
            if launches(node)? {
                kernels.push(KernelNode::of(node)?.launched(multiprocessors)?);
            }
        }
        Some(kernels)
    }
}

impl KernelNode {
    fn of(node: sys::CUgraphNode) -> Option<Self> {
        // SAFETY: numbers and pointers, for which zero is a value.
        let mut launch: sys::CUDA_KERNEL_NODE_PARAMS_v2 = unsafe { MaybeUninit::zeroed().assume_init() };
        // SAFETY: a kernel's node; it fills the structure.
        succeeded(unsafe { sys::cuGraphKernelNodeGetParams_v2(node, &raw mut launch) })?;
        let mut function = launch.func;
        if function.is_null() {
            // Launched as a kernel of a CUlibrary, and not as a function of a module.
            // SAFETY: the GPU's context is current; it writes one handle.
            succeeded(unsafe { sys::cuKernelGetFunction(&raw mut function, launch.kern) })?;
        }
        let grid = [launch.gridDimX, launch.gridDimY, launch.gridDimZ];
        let block = [launch.blockDimX, launch.blockDimY, launch.blockDimZ];
        Some(Self { node, function, grid, block, shared_bytes: launch.sharedMemBytes })
    }

    fn launched(&self, multiprocessors: u32) -> Option<Launched> {
        let blocks_per_multiprocessor = self.blocks_per_multiprocessor();
        let cluster = self.cluster();
        let capacity = match cluster.iter().product::<u32>() {
            // Blocks of a cluster run side by side within a group of multiprocessors: fewer may fit than one by one.
            size @ 2.. => self.clusters(cluster).map(|clusters| u64::from(clusters) * u64::from(size)),
            _ => blocks_per_multiprocessor.map(|blocks| u64::from(blocks) * u64::from(multiprocessors)),
        };
        Some(Launched {
            name: name(self.function)?,
            blocks: self.grid.iter().map(|n| u64::from(*n)).product(),
            threads_per_block: self.block.iter().product(),
            blocks_per_multiprocessor,
            capacity: capacity.filter(|capacity| *capacity > 0),
        })
    }

    fn blocks_per_multiprocessor(&self) -> Option<u32> {
        let threads = c_int::try_from(self.block.iter().product::<u32>()).ok()?;
        let (mut blocks, shared_bytes) = (0, self.shared_bytes as usize);
        // SAFETY: a loaded function; it writes one int.
        succeeded(unsafe {
            sys::cuOccupancyMaxActiveBlocksPerMultiprocessor(&raw mut blocks, self.function, threads, shared_bytes)
        })?;
        u32::try_from(blocks).ok().filter(|blocks| *blocks > 0)
    }

    /// The blocks of a cluster along x, y, z, as set by the launch or else by the kernel; zeros without clusters.
    fn cluster(&self) -> [u32; 3] {
        // SAFETY: a union of numbers, for which zero is a value.
        let mut value: sys::CUlaunchAttributeValue = unsafe { MaybeUninit::zeroed().assume_init() };
        let attribute = sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
        // SAFETY: a kernel's node; it fills the union.
        let answer = unsafe { sys::cuGraphKernelNodeGetAttribute(self.node, attribute, &raw mut value) };
        // SAFETY: for this attribute the union holds three numbers; they are zero where it was not filled.
        let launched = unsafe { value.clusterDim };
        if succeeded(answer).is_some() && launched.x > 0 {
            return [launched.x, launched.y, launched.z];
        }
        [
            Attribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH,
            Attribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT,
            Attribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH,
        ]
        .map(|attribute| {
            let mut blocks = 0;
            // SAFETY: a loaded function; it writes one int.
            let answer = unsafe { sys::cuFuncGetAttribute(&raw mut blocks, attribute, self.function) };
            succeeded(answer).and_then(|()| u32::try_from(blocks).ok()).unwrap_or(0)
        })
    }

    /// The clusters that the whole GPU holds at a time.
    fn clusters(&self, cluster: [u32; 3]) -> Option<u32> {
        // SAFETY: a union of numbers, for which zero is a value.
        let mut value: sys::CUlaunchAttributeValue = unsafe { MaybeUninit::zeroed().assume_init() };
        let [x, y, z] = cluster;
        value.clusterDim = sys::CUlaunchAttributeValue_union__bindgen_ty_1 { x, y, z };
        let id = sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
        let mut attribute = sys::CUlaunchAttribute { id, pad: [0; 4], value };
        let launch = sys::CUlaunchConfig {
            gridDimX: self.grid[0],
            gridDimY: self.grid[1],
            gridDimZ: self.grid[2],
            blockDimX: self.block[0],
            blockDimY: self.block[1],
            blockDimZ: self.block[2],
            sharedMemBytes: self.shared_bytes,
            hStream: std::ptr::null_mut(),
            attrs: &raw mut attribute,
            numAttrs: 1,
        };
        let mut clusters = 0;
        // SAFETY: a loaded function and one attribute, which lives; it writes one int.
        succeeded(unsafe { sys::cuOccupancyMaxActiveClusters(&raw mut clusters, self.function, &raw const launch) })?;
        u32::try_from(clusters).ok().filter(|clusters| *clusters > 0)
    }
}

/// Whether a node launches a kernel.
fn launches(node: sys::CUgraphNode) -> Option<bool> {
    let mut kind = 0_u32;
    // SAFETY: a node of a graph that lives; it writes an enum of four bytes, which may be one that the bindings lack.
    succeeded(unsafe { sys::cuGraphNodeGetType(node, (&raw mut kind).cast()) })?;
    Some(kind == sys::CUgraphNodeType::CU_GRAPH_NODE_TYPE_KERNEL as u32)
}

/// `None` where a call did not succeed: the value is then not known, which does not fail a run.
fn succeeded(answer: sys::CUresult) -> Option<()> {
    (answer == sys::CUresult::CUDA_SUCCESS).then_some(())
}

/// A function's name as its library's compiler made it, mangled where it is C++.
fn name(function: sys::CUfunction) -> Option<String> {
    type Name = unsafe extern "C" fn(*mut *const c_char, sys::CUfunction) -> sys::CUresult;
    static FOUND: OnceLock<Option<Name>> = OnceLock::new();
    // The bindings' own function ends the program where the driver is older than CUDA 12.3 and lacks it. SAFETY: the
    // signature is that of cuda.h.
    let find = || unsafe { of_driver::<Name>(b"cuFuncGetName\0") };
    let call = (*FOUND.get_or_init(find))?;
    let mut text: *const c_char = std::ptr::null();
    // SAFETY: a loaded function; it writes a pointer to a string that lives as long as the function.
    succeeded(unsafe { call(&raw mut text, function) })?;
    if text.is_null() {
        return None;
    }
    // SAFETY: see above.
    Some(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}
