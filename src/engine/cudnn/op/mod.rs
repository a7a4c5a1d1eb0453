//! The operators that batchstep computes with its own kernels. Each is a folder: `mod.rs` says what it computes and
//! lays out its launches, `kernel.cu` and the files after it are the kernels, and in the tests the same kernels run on
//! the CPU.
//!
//! A kernel is compiled once for each element type `T` of activations; parameters of batch norm, biases, statistics and
//! sums are always `float`. No kernel adds with atomics, so the same input gives the same bits in every run.

pub mod advance;
pub mod batch_norm;
pub mod bias;
pub mod depthwise_conv2d;
pub mod elementwise;
pub mod global_average_pool;
pub mod grid;
pub mod initial;
pub mod loss;
pub mod max_pool2d;
pub mod optimizer;
