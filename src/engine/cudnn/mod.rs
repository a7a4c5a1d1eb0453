//! The fast GPU engine: a training step as a static plan of calls of cuDNN, cuBLASLt and our own kernels.
//!
//! ```text
//! workload -> plan (calls on buffers) -> algorithms -> arena (where buffers lie) -> program (calls made ready) -> step
//! ```
//! Everything up to the arena is arithmetic, in [`plan`], [`arena`], [`op`] and [`kernels`], and is tested without
//! a GPU: the kernels run on an emulator, and whole steps are compared with the CPU engine. Only [`cuda`] and
//! [`driver`] use a GPU. All memory of a step is allocated before its first call, in one piece; a step allocates
//! nothing, frees nothing, and uploads only its batch.

mod arena;
mod call;
pub(crate) mod cuda;
mod element;
#[cfg(test)]
pub(crate) mod emulated;
pub mod engine;
mod execution;
mod feature_maps;
mod feed;
mod isolated;
mod kernels;
pub(crate) mod op;
mod order;
mod peaks;
mod placed;
mod plan;
#[cfg(test)]
pub(crate) mod recorded;
mod source;
mod step;
mod trainer;

use crate::device::cuda::driver;
use crate::device::cuda::libraries::{self, Libraries};
use crate::error::Result;

/// Checks whether the GPU engine can run here, and loads everything that it needs: the driver with a GPU, then
/// cuBLASLt, cuBLAS, NVRTC and cuDNN. No function of cudarc may be called before, since cudarc panics where a library
/// or a function of it is missing.
///
/// # Errors
/// [`crate::error::Kind::Device`] with one sentence: what is missing, and the command that installs it.
pub fn available() -> Result<&'static Libraries> {
    driver::devices()?;
    let libraries = libraries::load();
    libraries.complete()?;
    driver::driver().map_or(Ok(()), |driver| cuda::opened::check(driver, libraries))?;
    Ok(libraries)
}
