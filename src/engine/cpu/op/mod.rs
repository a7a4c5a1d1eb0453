//! The operators of the CPU engine: forward and backward kernels of our own.
//!
//! Each operator is a folder: its definition in `mod.rs`, the kernels in `cpu.rs`, and tests against PyTorch beside them. A
//! step calls the kernels directly ([`super::pass`]); `mod.rs` also wraps them as a candle operation with a gradient, which
//! the tests use. Rules that hold for all operators:
//!
//! - float32 and float64, by the same code; any other type is an error.
//! - Inputs may be strided; they are made contiguous first. An empty batch is an error.
//! - Work is spread over the threads of the [`super::team`] that is installed. The same inputs, number of threads and seed give the same bits.
//! - A gradient that is not needed (that of the images, in the first layer) is not computed.

pub mod activation;
pub(super) mod batch_norm;
pub(super) mod binary_cross_entropy;
pub mod conv2d;
pub(super) mod dense;
pub(super) mod dropout;
mod exponential;
pub mod filters;
pub(super) mod global_average_pool;
pub mod huge_pages;
pub(super) mod max_pool2d;
pub(super) mod mean_squared_error;
pub(super) mod operand;
pub(super) mod parallel;
pub mod place;
pub mod product;
pub(super) mod scalar;
pub mod scratch;
pub(super) mod softmax_cross_entropy;
mod vector;

#[cfg(test)]
mod gradcheck;
#[cfg(test)]
pub(in crate::engine) mod reference;

pub use activation::{relu, relu6};
pub use batch_norm::{RunningStats, batch_norm};
pub use binary_cross_entropy::binary_cross_entropy;
pub use conv2d::conv2d;
pub use dense::dense;
pub use dropout::dropout;
pub use global_average_pool::global_average_pool;
pub use max_pool2d::max_pool2d;
pub use mean_squared_error::mean_squared_error;
pub use softmax_cross_entropy::softmax_cross_entropy;
