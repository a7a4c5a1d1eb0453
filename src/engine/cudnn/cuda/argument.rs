//! The arguments of a kernel as cuLaunchKernel takes them: an array of pointers, each to one value.
//!
//! Source: cuLaunchKernel in the CUDA driver API, `kernelParams`. The driver copies each value during the call, with the
//! size that the compiled kernel says. The emulator of the tests takes its arguments from here, too.

use std::ffi::c_void;

use crate::engine::cudnn::call::{Arg, Slice};
use crate::error::Result;

/// The values and pointers to them, built once and passed at every launch.
#[derive(Debug)]
pub struct Arguments {
    /// One value in each, from its first byte on. Boxed, since the pointers point here.
    _values: Box<[[u8; 8]]>,
    pointers: Vec<*mut c_void>,
    sizes: Vec<usize>,
}

impl Arguments {
    /// The arguments with every slice replaced by its address.
    pub fn new(args: &[Arg], address: impl Fn(Slice) -> Result<u64>) -> Result<Self> {
        let encoded: Vec<(usize, [u8; 8])> = args.iter().map(|arg| encode(arg, &address)).collect::<Result<_>>()?;
        let sizes = encoded.iter().map(|(size, _)| *size).collect();
        let mut values: Box<[[u8; 8]]> = encoded.into_iter().map(|(_, value)| value).collect();
        let pointers = values.iter_mut().map(|value| value.as_mut_ptr().cast()).collect();
        Ok(Self { _values: values, pointers, sizes })
    }

    /// For `kernelParams`; the driver only reads through it.
    pub fn pointers(&self) -> *mut *mut c_void {
        self.pointers.as_ptr().cast_mut()
    }

    /// The bytes of each argument.
    pub fn sizes(&self) -> &[usize] {
        &self.sizes
    }
}

/// The bytes of a value, and the value from the first byte on.
fn encode(arg: &Arg, address: &impl Fn(Slice) -> Result<u64>) -> Result<(usize, [u8; 8])> {
    let short = |bytes: [u8; 4]| (4, [bytes[0], bytes[1], bytes[2], bytes[3], 0, 0, 0, 0]);
    Ok(match *arg {
        Arg::Read(slice) | Arg::Write(slice) | Arg::Update(slice) => (8, address(slice)?.to_ne_bytes()),
        Arg::Null => (8, [0; 8]),
        Arg::I32(value) => short(value.to_ne_bytes()),
        Arg::F32(value) => short(value.to_ne_bytes()),
        Arg::I64(value) => (8, value.to_ne_bytes()),
        Arg::U64(value) => (8, value.to_ne_bytes()),
    })
}
