//! The operators that batchstep computes with kernels of its own. Each is a folder: what it computes and how its launches
//! are laid out in `mod.rs`, the kernels in `kernel.cu` and files that follow it, and the tests, in which the same kernels run
//! on the CPU.
//!
//! A kernel is compiled once for each element type `T` of activations; parameters of batch norm, biases, statistics and
//! sums are always `float`. No kernel adds with atomics: the same input gives the same bits in every run.

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
pub mod rectifier;
