//! Operators that candle lacks, built from those that it has, as a user would have to do.

pub mod convolution;
pub mod dropout;
pub mod max_pool;
pub mod window;
