//! The libraries' functions and types as this folder uses them: cudarc's raw bindings. In tests the same names lead through
//! [`crate::engine::cudnn::recorded`], which can write calls down and let them fail.

#[cfg(test)]
pub(super) use crate::engine::cudnn::recorded::{cublaslt, cudnn, driver, nvrtc};
#[cfg(not(test))]
pub(super) use cudarc::{cublaslt::sys as cublaslt, cudnn::sys as cudnn, driver::sys as driver, nvrtc::sys as nvrtc};
