//! Operators that candle lacks, built from those that it has, as a user would have to do.

pub mod convolution;
pub mod dropout;
pub mod max_pool;
pub mod window;

use candle_core::{Device, Result, Tensor};

/// The indices `first`, `first + stride`, ... of one dimension, `count` of them.
fn strided(first: usize, stride: usize, count: usize, device: &Device) -> Result<Tensor> {
    Tensor::from_iter((0..count).map(|at| (first + at * stride) as u32), device)
}
