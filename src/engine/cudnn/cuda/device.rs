//! An open GPU: its context, its streams, the handles of cuDNN and cuBLASLt, and the loaded kernels.
//!
//! The driver's API is called through cudarc's raw bindings. Its safe layer would create two events with every
//! allocation to synchronise streams; here a plan says which of its calls wait for each other.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::api::cublaslt as blas;
use super::api::cudnn as dnn;
use super::api::driver as sys;

use super::module::{Modules, SourceOf};
use super::properties::Properties;
use super::status;
use super::trial::Trials;
use crate::device::cuda::libraries::Libraries;
use crate::error::{Error, Result};

/// A GPU that steps run on. Clones refer to the same GPU. It belongs to the thread that opened it.
#[derive(Clone)]
pub struct Gpu {
    pub(super) shared: Rc<SharedGpu>,
}

/// One of a GPU's streams. They are independent of CUDA's default stream, and of each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamId {
    /// Everything that computes.
    Compute,
    /// The side stream of a plan.
    Side,
    /// Batches that are copied while a step runs.
    Copy,
}

/// What the clones share. Fields are dropped from first to last, so the context outlives everything created in it.
pub(super) struct SharedGpu {
    pub modules: RefCell<Modules>,
    pub cudnn: CudnnHandle,
    pub cublaslt: CublasLtHandle,
    compute: CudaStream,
    side: CudaStream,
    copy: CudaStream,
    /// The compute stream is being captured into a graph.
    pub capturing: Cell<bool>,
    /// An error met while something was dropped, where it could not be returned.
    deferred: RefCell<Option<Error>>,
    context: Context,
    pub properties: Properties,
    trials: Trials,
}

impl Gpu {
    /// Opens a GPU by its index in CUDA's order. `source` gives the source of an operator's kernels for an element
    /// type.
    ///
    /// # Errors
    /// [`crate::error::Kind::Device`] where a library, the driver or the GPU is missing, or the GPU is too
    /// old; otherwise the driver's error.
    pub fn open(ordinal: u32, source: SourceOf) -> Result<Self> {
        Self::with(crate::engine::cudnn::available()?, ordinal, source)
    }

    /// The same, with libraries that were found and checked before.
    pub(in crate::engine::cudnn) fn with(libraries: &Libraries, ordinal: u32, source: SourceOf) -> Result<Self> {
        Self::open_with(libraries, ordinal, source).map_err(|error| error.at(format!("cuda:{ordinal}")))
    }

    fn open_with(libraries: &Libraries, ordinal: u32, source: SourceOf) -> Result<Self> {
        // SAFETY: no arguments; the driver's library is loaded.
        status::driver("initialise CUDA", unsafe { sys::cuInit(0) })?;
        let mut device = 0;
        let number = i32::try_from(ordinal).unwrap_or(i32::MAX);
        // SAFETY: it writes one CUdevice.
        status::driver(format_args!("open GPU {ordinal}"), unsafe { sys::cuDeviceGet(&raw mut device, number) })
            .map_err(|error| Error::device(error.clause()).hint("`batchstep doctor` lists the GPUs"))?;
        let properties = Properties::read(ordinal, device, libraries)?;
        properties.suffices()?;
        supports_graphs(&properties)?;
        let context = Context::retain(device)?;
        let (compute, side, copy) = (CudaStream::new()?, CudaStream::new()?, CudaStream::new()?);
        let cudnn = CudnnHandle::new(&compute)?;
        let shared = SharedGpu {
            modules: RefCell::new(Modules::new(&properties, source)?),
            cudnn,
            cublaslt: CublasLtHandle::new()?,
            compute,
            side,
            copy,
            capturing: Cell::new(false),
            deferred: RefCell::new(None),
            context,
            properties,
            trials: Trials::default(),
        };
        Ok(Self { shared: Rc::new(shared) })
    }

    pub fn properties(&self) -> &Properties {
        &self.shared.properties
    }

    /// Which algorithms have run on it, and which were refused.
    pub fn trials(&self) -> &Trials {
        &self.shared.trials
    }

    /// Makes this GPU the thread's current one, and returns the error that an earlier drop left behind.
    pub(super) fn bind(&self) -> Result<()> {
        self.make_current()?;
        match self.shared.deferred.borrow_mut().take() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// Makes this GPU the thread's current one, for a `drop`, which must not fail because of an earlier one.
    pub(super) fn make_current(&self) -> Result<()> {
        self.shared.context.bind()
    }

    /// Keeps an error that a `drop` met until the next call that can return it.
    pub(super) fn defer(&self, result: Result<()>) {
        if let Err(error) = result {
            self.shared.deferred.borrow_mut().get_or_insert(error);
        }
    }

    /// Whether work on a stream is now captured into a graph. A capture begins on the compute stream; work of the side
    /// stream that waits for that stream is captured with it.
    pub(super) fn captures(&self, id: StreamId) -> bool {
        id == StreamId::Compute && self.shared.capturing.get()
    }

    pub(super) fn stream(&self, id: StreamId) -> sys::CUstream {
        match id {
            StreamId::Compute => self.shared.compute.0,
            StreamId::Side => self.shared.side.0,
            StreamId::Copy => self.shared.copy.0,
        }
    }

    /// Lets cuDNN put work on a stream.
    pub(super) fn cudnn(&self, id: StreamId, enqueue: impl FnOnce(dnn::cudnnHandle_t) -> Result<()>) -> Result<()> {
        let cudnn = &self.shared.cudnn;
        cudnn.take(self.stream(id))?;
        enqueue(cudnn.handle)
    }

    /// Waits until all work on a stream is done.
    pub fn synchronize(&self, id: StreamId) -> Result<()> {
        self.bind()?;
        // SAFETY: the stream lives as long as this GPU.
        status::driver("wait for the GPU's work", unsafe { sys::cuStreamSynchronize(self.stream(id)) })
    }

    /// To be called before the work of another step: an error that the end of an earlier step could not return does not
    /// concern later steps, as long as the GPU works.
    ///
    /// # Errors
    /// [`crate::error::Kind::Device`] where the GPU does not work; [`crate::error::Kind::OutOfMemory`].
    pub fn settle(&self) -> Result<()> {
        drop(self.shared.deferred.borrow_mut().take());
        let works = self.synchronize(StreamId::Compute);
        works.map_err(|error| {
            if error.is_out_of_memory() {
                return error;
            }
            let hint = "continue with `--resume`; where it comes back, `sudo dmesg | grep -i xid` shows why";
            let place = format!("cuda:{}", self.properties().ordinal);
            Error::device(format!("the GPU works no more: {}", error.clause())).at(place).hint(hint).no_kernels_fault()
        })
    }

    /// Bytes of the device's memory that are free now.
    pub fn free_bytes(&self) -> Result<u64> {
        self.bind()?;
        let (mut free, mut total) = (0_usize, 0_usize);
        // SAFETY: it writes two size_t.
        let answer = unsafe { sys::cuMemGetInfo_v2(&raw mut free, &raw mut total) };
        status::driver("report the free memory", answer)?;
        Ok(free as u64)
    }
}

impl std::fmt::Debug for Gpu {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gpu").field("properties", &self.shared.properties).finish_non_exhaustive()
    }
}

/// cuDNN 9 needs a driver of CUDA 12 or newer; graphs with timing events need one of 11.4.
fn supports_graphs(properties: &Properties) -> Result<()> {
    let (major, minor) = properties.driver_cuda;
    if major >= 12 {
        return Ok(());
    }
    let what =
        format!("the GPU engine cannot run here: the NVIDIA driver is for CUDA {major}.{minor}, and 12.0 is needed");
    Err(Error::device(what).hint("install a newer NVIDIA driver"))
}

/// The primary context of a device, which cuDNN and cuBLASLt use as well.
struct Context {
    device: sys::CUdevice,
    context: sys::CUcontext,
}

impl Context {
    fn retain(device: sys::CUdevice) -> Result<Self> {
        let mut context = std::ptr::null_mut();
        // SAFETY: it writes one handle.
        let answer = unsafe { sys::cuDevicePrimaryCtxRetain(&raw mut context, device) };
        status::driver("open the GPU's context", answer)?;
        let context = Self { device, context };
        context.bind()?;
        Ok(context)
    }

    fn bind(&self) -> Result<()> {
        // SAFETY: retained until this is dropped.
        status::driver("use the GPU's context", unsafe { sys::cuCtxSetCurrent(self.context) })
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // Nothing is left that could return an error. SAFETY: retained once, released once.
        let _ = unsafe { sys::cuDevicePrimaryCtxRelease_v2(self.device) };
    }
}

owned!(CudaStream, sys::CUstream, sys::cuStreamDestroy_v2);

impl CudaStream {
    /// A stream that does not wait for CUDA's default stream.
    fn new() -> Result<Self> {
        let mut stream = std::ptr::null_mut();
        let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        // SAFETY: it writes one handle.
        status::driver("create a stream", unsafe { sys::cuStreamCreate(&raw mut stream, flags) })?;
        Ok(Self(stream))
    }
}

/// cuDNN's handle, and the stream that it works on.
pub(super) struct CudnnHandle {
    pub handle: dnn::cudnnHandle_t,
    /// Null where the stream is not known.
    stream: Cell<sys::CUstream>,
}

impl CudnnHandle {
    fn new(stream: &CudaStream) -> Result<Self> {
        let mut handle = std::ptr::null_mut();
        // SAFETY: it writes one handle.
        status::cudnn("start", unsafe { dnn::cudnnCreate(&raw mut handle) })?;
        let handle = Self { handle, stream: Cell::new(std::ptr::null_mut()) };
        handle.take(stream.0)?;
        Ok(handle)
    }

    fn take(&self, stream: sys::CUstream) -> Result<()> {
        if self.stream.get() == stream {
            return Ok(());
        }
        // Where cuDNN refuses, the next call sets it again.
        self.stream.set(std::ptr::null_mut());
        // SAFETY: both live; the two bindings have different names for the same type.
        status::cudnn("take its stream", unsafe { dnn::cudnnSetStream(self.handle, stream.cast()) })?;
        self.stream.set(stream);
        Ok(())
    }
}

impl Drop for CudnnHandle {
    fn drop(&mut self) {
        // SAFETY: created once, destroyed once.
        let _ = unsafe { dnn::cudnnDestroy(self.handle) };
    }
}

owned!(CublasLtHandle, blas::cublasLtHandle_t, blas::cublasLtDestroy);

impl CublasLtHandle {
    fn new() -> Result<Self> {
        let mut handle = std::ptr::null_mut();
        // SAFETY: it writes one handle.
        status::cublas("start", unsafe { blas::cublasLtCreate(&raw mut handle) })?;
        Ok(Self(handle))
    }
}
