//! cuDNN's backend descriptors: created, filled attribute by attribute, finalised, destroyed.
//!
//! Source of the attributes' types and counts: the comments of cudnn_graph.h. Enumerations are passed and read as 32-bit
//! numbers, so that a number that only a newer cuDNN knows never becomes a Rust enum.

use std::ffi::c_void;
use std::fmt::Display;

use crate::engine::cudnn::cuda::api::cudnn as sys;
pub use sys::cudnnBackendAttributeName_t as Name;
pub use sys::cudnnBackendAttributeType_t as Type;
pub use sys::cudnnBackendDescriptorType_t as Kind;

use crate::engine::cudnn::cuda::status;
use crate::error::{Error, Result};

owned!(Descriptor, sys::cudnnBackendDescriptor_t, sys::cudnnBackendDestroyDescriptor);

/// A value of an attribute, and its type there.
pub trait Value: Copy {
    const TYPE: Type;
}

impl Value for i64 {
    const TYPE: Type = Type::CUDNN_TYPE_INT64;
}

impl Value for f32 {
    const TYPE: Type = Type::CUDNN_TYPE_FLOAT;
}

impl Value for bool {
    const TYPE: Type = Type::CUDNN_TYPE_BOOLEAN;
}

impl Value for sys::cudnnHandle_t {
    const TYPE: Type = Type::CUDNN_TYPE_HANDLE;
}

impl Value for *mut c_void {
    const TYPE: Type = Type::CUDNN_TYPE_VOID_PTR;
}

/// Text, for the descriptors with which a test describes a GPU.
#[cfg(test)]
impl Value for u8 {
    const TYPE: Type = Type::CUDNN_TYPE_CHAR;
}

impl Descriptor {
    /// An empty one.
    pub fn new(kind: Kind) -> Result<Self> {
        let mut descriptor = std::ptr::null_mut();
        // SAFETY: it writes one pointer.
        let answer = unsafe { sys::cudnnBackendCreateDescriptor(kind, &raw mut descriptor) };
        status::cudnn(format_args!("create {kind:?}"), answer)?;
        Ok(Self(descriptor))
    }

    pub fn set<T: Value>(&self, name: Name, values: &[T]) -> Result<()> {
        self.set_as(name, T::TYPE, values)
    }

    /// A number of the enumeration that `kind` is.
    pub fn set_number(&self, name: Name, kind: Type, value: i32) -> Result<()> {
        self.set_as(name, kind, &[value])
    }

    pub fn set_descriptors(&self, name: Name, values: &[&Self]) -> Result<()> {
        let raw: Vec<sys::cudnnBackendDescriptor_t> = values.iter().map(|value| value.0).collect();
        self.set_as(name, Type::CUDNN_TYPE_BACKEND_DESCRIPTOR, &raw)
    }

    /// T has the size of the attribute's type; the callers are above.
    fn set_as<T>(&self, name: Name, kind: Type, values: &[T]) -> Result<()> {
        let count = i64::try_from(values.len()).unwrap_or(i64::MAX);
        // SAFETY: `count` elements of the type's size lie there; cuDNN copies them.
        let answer =
            unsafe { sys::cudnnBackendSetAttribute(self.0, name, kind, count, values.as_ptr().cast::<c_void>()) };
        status::cudnn(format_args!("set {name:?}"), answer)
    }

    /// Finalises it, so that it can be used and no longer changed.
    ///
    /// # Errors
    /// [`crate::error::Kind::Engine`]: cuDNN does not support what it describes.
    pub fn finalize(&self, what: impl Display) -> Result<()> {
        // SAFETY: it lives.
        let answer = unsafe { sys::cudnnBackendFinalize(self.0) };
        status::cudnn(format_args!("finalise {what}"), answer)
    }

    pub fn integer(&self, name: Name) -> Result<i64> {
        let mut value = [0_i64];
        match self.get(name, Type::CUDNN_TYPE_INT64, &mut value)? {
            1 => Ok(value[0]),
            count => Err(Error::engine(format!("cuDNN gave {count} values for {name:?}"))),
        }
    }

    /// At most `most` numbers of an enumeration.
    pub fn numbers(&self, name: Name, kind: Type, most: usize) -> Result<Vec<i32>> {
        let mut values = vec![0_i32; most];
        let count = self.get(name, kind, &mut values)?;
        values.truncate(count);
        Ok(values)
    }

    /// At most `count` descriptors of an attribute, which cuDNN fills into new ones.
    pub fn descriptors(&self, name: Name, kind: Kind, count: usize) -> Result<Vec<Self>> {
        let mut made: Vec<Self> = (0..count).map(|_| Self::new(kind)).collect::<Result<_>>()?;
        let mut raw: Vec<sys::cudnnBackendDescriptor_t> = made.iter().map(|one| one.0).collect();
        let filled = self.get(name, Type::CUDNN_TYPE_BACKEND_DESCRIPTOR, &mut raw)?;
        made.truncate(filled);
        Ok(made)
    }

    /// Fills `values` and returns how many were written.
    fn get<T>(&self, name: Name, kind: Type, values: &mut [T]) -> Result<usize> {
        let room = i64::try_from(values.len()).unwrap_or(i64::MAX);
        let (mut count, pointer) = (0_i64, values.as_mut_ptr().cast::<c_void>());
        // SAFETY: room for `room` elements of the type's size.
        let answer = unsafe { sys::cudnnBackendGetAttribute(self.0, name, kind, room, &raw mut count, pointer) };
        status::cudnn(format_args!("report {name:?}"), answer)?;
        Ok(usize::try_from(count).unwrap_or(0).min(values.len()))
    }
}
