//! Memory of the device and of the host, and copies between them.

use std::ffi::c_void;

use super::api::driver as sys;

use super::device::{Gpu, StreamId};
use super::status;
use crate::error::{Error, Result};

/// A piece of the device's memory; freed when it is dropped. It begins at a multiple of 256 bytes.
#[derive(Debug)]
pub struct Memory {
    gpu: Gpu,
    address: u64,
    bytes: u64,
}

impl Memory {
    /// Its first byte on the device.
    pub fn address(&self) -> u64 {
        self.address
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let freed = self.gpu.make_current().and_then(|()| {
            // SAFETY: allocated once, freed once; the driver waits for the work that still uses it.
            status::driver("free memory of the GPU", unsafe { sys::cuMemFree_v2(self.address) })
        });
        self.gpu.defer(freed);
    }
}

/// Host memory that batches are copied from: page-locked, which the GPU reads directly, or pageable, which the driver
/// copies through a page-locked buffer of its own.
#[derive(Debug)]
pub struct HostBuffer {
    kind: HostMemory,
    bytes: usize,
}

#[derive(Debug)]
enum HostMemory {
    /// Whole words, so that every element type is aligned.
    Ordinary(Box<[u64]>),
    Pinned {
        gpu: Gpu,
        pointer: *mut c_void,
    },
}

impl HostBuffer {
    /// The content; it begins at a multiple of 8 bytes.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: `bytes` bytes, initialised, for as long as self.
        unsafe { std::slice::from_raw_parts(self.pointer().cast(), self.bytes) }
    }

    /// The content. It must not be changed while a copy from or to it is under way.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and self is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.pointer().cast_mut().cast(), self.bytes) }
    }

    fn pointer(&self) -> *const c_void {
        match &self.kind {
            HostMemory::Ordinary(words) => words.as_ptr().cast(),
            HostMemory::Pinned { pointer, .. } => *pointer,
        }
    }
}

impl Drop for HostBuffer {
    fn drop(&mut self) {
        if let HostMemory::Pinned { gpu, pointer } = &self.kind {
            let freed = gpu.make_current().and_then(|()| {
                // SAFETY: allocated once, freed once.
                status::driver("free page-locked memory", unsafe { sys::cuMemFreeHost(*pointer) })
            });
            gpu.defer(freed);
        }
    }
}

impl Gpu {
    /// Allocates device memory, without initialising it.
    ///
    /// # Errors
    /// [`crate::error::Kind::OutOfMemory`] where it does not fit.
    pub fn allocate(&self, bytes: u64) -> Result<Memory> {
        self.bind()?;
        // The driver refuses to allocate 0 bytes.
        let mut address = 0;
        // SAFETY: it writes one address.
        let answer = unsafe { sys::cuMemAlloc_v2(&raw mut address, bytes.max(1) as usize) };
        status::driver(format_args!("allocate {bytes} bytes on the GPU"), answer)?;
        Ok(Memory { gpu: self.clone(), address, bytes })
    }

    /// Allocates host memory, all zeros.
    ///
    /// # Errors
    /// [`crate::error::Kind::OutOfMemory`] where that much cannot be page-locked.
    pub fn host_buffer(&self, bytes: usize, pinned: bool) -> Result<HostBuffer> {
        if !pinned {
            let words = vec![0_u64; bytes.div_ceil(8)].into_boxed_slice();
            return Ok(HostBuffer { kind: HostMemory::Ordinary(words), bytes });
        }
        self.bind()?;
        let mut pointer = std::ptr::null_mut();
        // SAFETY: it writes one pointer.
        let answer = unsafe { sys::cuMemHostAlloc(&raw mut pointer, bytes.max(1), 0) };
        status::driver(format_args!("page-lock {bytes} bytes"), answer)?;
        // SAFETY: at least `bytes` bytes were just allocated.
        unsafe { std::ptr::write_bytes(pointer.cast::<u8>(), 0, bytes) };
        Ok(HostBuffer { kind: HostMemory::Pinned { gpu: self.clone(), pointer }, bytes })
    }

    /// Starts a copy of the first `bytes` of a host buffer to the device; from page-locked memory it returns at once,
    /// from pageable memory when the driver has read the data.
    pub fn enqueue_to_device(&self, id: StreamId, address: u64, from: &HostBuffer, bytes: usize) -> Result<()> {
        if bytes > from.bytes {
            return Err(Error::engine(format!("a copy of {bytes} bytes from a host buffer of {}", from.bytes)));
        }
        // SAFETY: `bytes` bytes lie there; the caller keeps the buffer until the stream has passed.
        let answer = unsafe { sys::cuMemcpyHtoDAsync_v2(address, from.pointer(), bytes, self.stream(id)) };
        status::driver("copy to the GPU", answer)
    }

    /// Copies to the device, after everything on the compute stream, and waits.
    pub fn copy_to_device(&self, address: u64, data: &[u8]) -> Result<()> {
        self.bind()?;
        let stream = self.stream(StreamId::Compute);
        // SAFETY: the data lives until the wait below is over.
        let answer = unsafe { sys::cuMemcpyHtoDAsync_v2(address, data.as_ptr().cast(), data.len(), stream) };
        status::driver("copy to the GPU", answer)?;
        self.synchronize(StreamId::Compute)
    }

    /// Copies from the device, after everything on the compute stream, and waits.
    pub fn copy_to_host(&self, data: &mut [u8], address: u64) -> Result<()> {
        self.bind()?;
        let stream = self.stream(StreamId::Compute);
        // SAFETY: the data lives until the wait below is over.
        let answer = unsafe { sys::cuMemcpyDtoHAsync_v2(data.as_mut_ptr().cast(), address, data.len(), stream) };
        status::driver("copy from the GPU", answer)?;
        self.synchronize(StreamId::Compute)
    }

    /// The bytes at an address, as [`Gpu::copy_to_host`] copies them.
    pub fn read(&self, address: u64, bytes: usize) -> Result<Vec<u8>> {
        let mut content = vec![0; bytes];
        self.copy_to_host(&mut content, address)?;
        Ok(content)
    }

    /// Starts a copy within the device, on the compute stream.
    pub fn enqueue_within_device(&self, to: u64, from: u64, bytes: usize) -> Result<()> {
        // SAFETY: the caller owns both pieces of memory.
        let answer = unsafe { sys::cuMemcpyDtoDAsync_v2(to, from, bytes, self.stream(StreamId::Compute)) };
        status::driver("copy within the GPU", answer)
    }

    /// Starts to set every byte to one value. 0xFF makes every float a NaN.
    pub fn enqueue_fill(&self, id: StreamId, address: u64, value: u8, bytes: u64) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        let (stream, count) = (self.stream(id), bytes as usize);
        // SAFETY: the caller owns the memory.
        let answer = unsafe {
            // Filling by words is faster where the driver does not check the alignment itself.
            match address.is_multiple_of(4) && bytes.is_multiple_of(4) {
                true => sys::cuMemsetD32Async(address, u32::from_ne_bytes([value; 4]), count / 4, stream),
                false => sys::cuMemsetD8Async(address, value, count, stream),
            }
        };
        status::driver("fill memory of the GPU", answer)
    }
}
