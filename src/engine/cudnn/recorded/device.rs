//! The recorded GPU: its memory as sizes and fills, its kernels as signatures, a capture as a list of names.

use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ops::Range;

use cudarc::driver::sys;

use super::{Library, device, put};

pub const NAME: &str = "a recorded GPU\0";
pub const ADDRESS: &str = "0000:03:00.0\0";
/// 16 GiB.
pub const BYTES: u64 = 16 << 30;
/// 12.8.
pub const CUDA: c_int = 12_080;

/// CUDA_ERROR_STREAM_CAPTURE_INVALIDATED.
const INVALIDATED: u32 = 901;

/// A kernel of a module, or of a library.
struct Function {
    name: CString,
    /// Bytes of its parameters.
    parameters: Vec<usize>,
}

/// The launch of a captured call.
#[derive(Clone)]
struct Node {
    /// 0 where it is not a kernel.
    function: usize,
    grid: [u32; 3],
    block: [u32; 3],
    /// Launched through a library's kernel and in clusters, as cuBLASLt does.
    of_library: bool,
}

#[derive(Default)]
pub struct Device {
    last: usize,
    memory: HashMap<u64, u64>,
    /// Ranges of addresses and the values with which they were filled, the latest last.
    fills: Vec<(Range<u64>, u8)>,
    host: HashMap<usize, Vec<u64>>,
    sources: HashMap<usize, CString>,
    functions: HashMap<usize, Function>,
    /// The nodes of the present capture so far.
    capture: Option<Vec<usize>>,
    is_invalid: bool,
    graphs: HashMap<usize, Vec<usize>>,
    nodes: HashMap<usize, Node>,
    /// The code that every call has from now on.
    lost: Option<u32>,
    /// The stream of each cuDNN handle.
    pub cudnn_stream: HashMap<usize, usize>,
    pub cudnn_streams: Vec<usize>,
    pub numbers: HashMap<usize, Vec<i32>>,
    pub math: HashMap<usize, u32>,
    /// The place of each of cuDNN's configurations, and of its engine, in their list.
    pub places: HashMap<usize, i64>,
    /// The first of them, up to this number, are compiled when they are chosen.
    pub compiled: i64,
}

impl Device {
    /// A new handle, and an address: a multiple of 256.
    pub fn number(&mut self) -> usize {
        self.last += 256;
        (1 << 40) + self.last
    }

    pub fn held_bytes(&self) -> u64 {
        self.memory.values().sum::<u64>() + self.host.values().map(|words| 8 * words.len() as u64).sum::<u64>()
    }

    pub fn is_capturing(&self) -> bool {
        self.capture.is_some()
    }

    /// A capture whose end fails has ended nevertheless.
    pub fn fails(&mut self, name: &str, code: u32, lasts: bool) {
        self.is_invalid |= code == INVALIDATED;
        if name == "cuStreamEndCapture" {
            (self.capture, self.is_invalid) = (None, false);
        }
        if lasts {
            self.lost = Some(code);
        }
    }

    /// The code of a call for which no fault was planned: that of a lost GPU, or of an invalidated capture.
    pub fn refusal(&mut self, library: Library, name: &str) -> Option<u32> {
        if let Some(code) = self.lost {
            return match library {
                Library::Driver => Some(code),
                // CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER, CUBLAS_STATUS_EXECUTION_FAILED.
                Library::Cudnn => Some(5001),
                Library::CublasLt => Some(13),
                Library::Nvrtc => None,
            };
        }
        let ends = name == "cuStreamEndCapture" || name == "cuCtxSetCurrent";
        match library {
            // Waiting is not permitted: CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED.
            Library::Driver if self.is_capturing() && name == "cuStreamSynchronize" => Some(900),
            Library::Driver if self.is_capturing() && self.is_invalid && !ends => Some(INVALIDATED),
            _ => None,
        }
    }

    fn launched(&mut self, node: Node) {
        let number = self.number();
        if let Some(nodes) = &mut self.capture {
            nodes.push(number);
            self.nodes.insert(number, node);
        }
    }
}

pub fn attribute(attribute: sys::CUdevice_attribute) -> c_int {
    use sys::CUdevice_attribute as A;
    match attribute {
        A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR => 8,
        A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR => 0,
        A::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT => 40,
        A::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE => 4 << 20,
        A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN => 96 << 10,
        // In kHz.
        A::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE => 1_000_000,
        A::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH => 256,
        other => panic!("{other:?} is not recorded"),
    }
}

pub fn function_attribute(attribute: sys::CUfunction_attribute) -> c_int {
    match attribute {
        sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK => 1024,
        _ => 0,
    }
}

pub unsafe fn allocate(out: *mut u64, bytes: usize) -> u32 {
    let address = device(|device| {
        let address = device.number() as u64;
        device.last = (device.last + bytes).next_multiple_of(256);
        device.memory.insert(address, bytes as u64);
        address
    });
    // SAFETY: as the caller says.
    unsafe { put(out, address) }
}

pub fn free(address: u64) -> u32 {
    let known = device(|device| device.memory.remove(&address));
    assert!(known.is_some(), "memory is freed that was not allocated");
    0
}

pub fn free_bytes() -> usize {
    device(|device| (BYTES - device.memory.values().sum::<u64>()) as usize)
}

pub unsafe fn allocate_host(out: *mut *mut c_void, bytes: usize) -> u32 {
    let mut words = vec![0_u64; bytes.div_ceil(8)];
    let pointer = words.as_mut_ptr();
    device(|device| device.host.insert(pointer as usize, words));
    // SAFETY: as the caller says.
    unsafe { put(out, pointer.cast()) }
}

pub fn free_host(pointer: usize) -> u32 {
    assert!(device(|device| device.host.remove(&pointer)).is_some(), "freed, and not allocated");
    0
}

/// The value with which the memory was last filled; zeros where it was not filled.
pub unsafe fn read(to: *mut c_void, address: u64, bytes: usize) -> u32 {
    // SAFETY: as the caller says.
    let content = unsafe {
        std::ptr::write_bytes(to.cast::<u8>(), 0, bytes);
        std::slice::from_raw_parts_mut(to.cast::<u8>(), bytes)
    };
    device(|device| {
        for (filled, value) in &device.fills {
            let (start, end) = (filled.start.max(address), filled.end.min(address + bytes as u64));
            if start < end {
                content[(start - address) as usize..(end - address) as usize].fill(*value);
            }
        }
    });
    0
}

/// Success, with a new handle, to which `keep` gives a meaning.
unsafe fn made<T>(out: *mut *mut T, keep: impl FnOnce(&mut Device, usize)) -> u32 {
    let number = device(|device| {
        let number = device.number();
        keep(device, number);
        number
    });
    // SAFETY: as the caller says.
    unsafe { put(out, number as *mut T) }
}

/// Also a module: its image is the source that `code` gave.
pub unsafe fn program<T>(out: *mut *mut T, source: *const c_char) -> u32 {
    // SAFETY: the caller gives a string that ends with a zero, and the place of the handle.
    unsafe {
        let source = CStr::from_ptr(source).to_owned();
        made(out, |device, number| drop(device.sources.insert(number, source)))
    }
}

/// The code of a program is its source.
pub unsafe fn code(program: usize, out: *mut c_char) -> u32 {
    let source = device(|device| device.sources[&program].clone());
    let bytes = source.as_bytes_with_nul();
    // SAFETY: room for [`code_size`].
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr().cast(), out, bytes.len()) };
    0
}

pub unsafe fn code_size(program: usize, out: *mut usize) -> u32 {
    let bytes = device(|device| device.sources[&program].as_bytes_with_nul().len());
    // SAFETY: as the caller says.
    unsafe { put(out, bytes) }
}

/// A kernel of a module, with its parameters as its source declares them.
pub unsafe fn function<T>(out: *mut *mut T, module: usize, name: *const c_char) -> u32 {
    // SAFETY: the caller gives a string that ends with a zero, and the place of the handle.
    unsafe {
        let name = CStr::from_ptr(name).to_owned();
        made(out, |device, number| {
            let source = device.sources[&module].to_str().expect("a source is text");
            let parameters = parameters(source, name.to_str().expect("a name is text"));
            device.functions.insert(number, Function { name, parameters });
        })
    }
}

/// Bytes of each parameter of `KERNEL name(...)`.
fn parameters(source: &str, name: &str) -> Vec<usize> {
    let begins = |at: &usize| source[..*at].lines().next_back().is_some_and(|line| line.starts_with("KERNEL"));
    let call = format!(" {name}(");
    let at = source.match_indices(&call).map(|(at, _)| at).find(begins);
    let at = at.unwrap_or_else(|| panic!("there is no kernel {name}"));
    let list = source[at..].split_once('(').and_then(|(_, rest)| rest.split_once(')')).expect("a list").0;
    let size = |parameter: &str| match parameter.split_whitespace().next() {
        _ if parameter.contains('*') => 8,
        Some("i64" | "u64") => 8,
        Some("int" | "float" | "unsigned") => 4,
        other => panic!("{name} has a parameter of type {other:?}"),
    };
    list.split(',').filter(|one| !one.trim().is_empty()).map(size).collect()
}

/// CUDA_ERROR_INVALID_VALUE past the last.
pub unsafe fn parameter(function: usize, index: usize, out: *mut usize) -> u32 {
    match device(|device| device.functions[&function].parameters.get(index).copied()) {
        // SAFETY: as the caller says.
        Some(bytes) => unsafe { put(out, bytes) },
        None => 1,
    }
}

/// Lives as long as the recording.
pub fn name_of(function: usize) -> *const c_char {
    device(|device| device.functions[&function].name.as_ptr())
}

pub fn kernel(function: usize, grid: [u32; 3], block: [u32; 3]) -> u32 {
    device(|device| device.launched(Node { function, grid, block, of_library: false }));
    0
}

/// A kernel that a library launches.
pub fn work(name: &str, of_library: bool) -> u32 {
    device(|device| {
        let function = device.number();
        device.functions.insert(function, Function { name: CString::new(name).expect("no zero"), parameters: vec![] });
        device.launched(Node { function, grid: [8, 1, 1], block: [128, 1, 1], of_library });
    });
    0
}

/// Fills with one byte. Fills of a graph are not kept.
pub fn memset(address: u64, bytes: usize, value: u8) -> u32 {
    device(|device| {
        if !device.is_capturing() {
            let range = address..address + bytes as u64;
            device.fills.retain(|(old, _)| old.start < range.start || old.end > range.end);
            device.fills.push((range, value));
        }
        device.launched(Node { function: 0, grid: [0; 3], block: [0; 3], of_library: false });
    });
    0
}

pub fn begin_capture() -> u32 {
    device(|device| device.capture = Some(Vec::new()));
    0
}

/// Null where the capture was invalidated.
pub unsafe fn end_capture<T>(out: *mut *mut T) -> u32 {
    let graph = device(|device| {
        let nodes = device.capture.take().expect("a capture was begun");
        let number = device.number();
        device.graphs.insert(number, nodes);
        (!std::mem::take(&mut device.is_invalid)).then_some(number)
    });
    // SAFETY: as the caller says.
    unsafe { put(out, graph.unwrap_or(0) as *mut T) };
    if graph.is_some() { 0 } else { INVALIDATED }
}

/// The number of nodes and, where there is room, the nodes.
pub unsafe fn nodes(graph: usize, out: *mut usize, count: *mut usize) -> u32 {
    let nodes = device(|device| device.graphs[&graph].clone());
    // SAFETY: a null pointer asks only for the number; else there is room for `count`.
    unsafe {
        if !out.is_null() {
            assert!(*count >= nodes.len());
            std::ptr::copy_nonoverlapping(nodes.as_ptr(), out, nodes.len());
        }
        put(count, nodes.len())
    }
}

fn node(number: usize) -> Node {
    device(|device| device.nodes[&number].clone())
}

/// CU_GRAPH_NODE_TYPE_KERNEL is 0, ..._MEMSET is 2.
pub fn node_type(number: usize) -> u32 {
    if node(number).function == 0 { 2 } else { 0 }
}

pub unsafe fn launch(number: usize, out: *mut sys::CUDA_KERNEL_NODE_PARAMS_v2) -> u32 {
    let Node { function, grid, block, of_library } = node(number);
    let function = function as *mut c_void;
    // SAFETY: the caller gives the structure.
    unsafe {
        ((*out).gridDimX, (*out).gridDimY, (*out).gridDimZ) = (grid[0], grid[1], grid[2]);
        ((*out).blockDimX, (*out).blockDimY, (*out).blockDimZ) = (block[0], block[1], block[2]);
        match of_library {
            true => (*out).kern = function.cast(),
            false => (*out).func = function.cast(),
        }
    }
    0
}

pub unsafe fn cluster(number: usize, out: *mut sys::CUlaunchAttributeValue) -> u32 {
    if node(number).of_library {
        // SAFETY: the caller gives the union.
        unsafe { (*out).clusterDim = sys::CUlaunchAttributeValue_union__bindgen_ty_1 { x: 2, y: 1, z: 1 } };
    }
    0
}
