//! The operators of the CPU engine: forward and backward kernels of our own.
//!
//! Each operator is compared with PyTorch and with finite differences. [`super::pass`] calls them in the order of a step,
//! [`super::single`] one layer by itself. Rules that hold for all operators:
//!
//! - float32 and float64, by the same code.
//! - Work is spread over the threads of the [`super::team`] that is installed. The same inputs, number of threads and seed give the same bits.
//! - A gradient that is not needed (that of the images, in the first layer) is not computed.

pub mod activation;
pub(super) mod batch_norm;
pub mod conv2d;
pub(super) mod dense;
pub mod dropout;
mod exponential;
pub mod filters;
pub(super) mod global_average_pool;
pub mod huge_pages;
mod lanes;
pub mod max_pool2d;
pub(super) mod parallel;
pub mod product;
pub(super) mod scalar;
pub mod scratch;
mod vector;

#[cfg(test)]
pub(crate) mod cases;
#[cfg(test)]
mod tests;
