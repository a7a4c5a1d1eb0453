//! The libraries' functions and types as this folder uses them: cudarc's raw bindings. In tests the same names lead through
//! [`crate::engine::cudnn::recorded`], which can write calls down and let them fail.

#[cfg(test)]
pub(super) use crate::engine::cudnn::recorded::{cublaslt, cudnn, driver, driver::of_driver, nvrtc};
#[cfg(not(test))]
pub(super) use cudarc::{cublaslt::sys as cublaslt, cudnn::sys as cudnn, driver::sys as driver, nvrtc::sys as nvrtc};

/// A function of the driver that not every version has; `None` where this one lacks it. `name` ends with a zero.
///
/// # Safety
/// `T` is the function's type.
#[cfg(not(test))]
pub(super) unsafe fn of_driver<T: Copy>(name: &[u8]) -> Option<T> {
    // SAFETY: as the caller says; cudarc keeps the library loaded.
    unsafe { driver::culib().get::<T>(name).ok().map(|found| *found) }
}
