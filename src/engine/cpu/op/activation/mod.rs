//! Rectified linear units. The gradient at an end of the range, at 0 and at 6, is 0, as in PyTorch.

pub mod cpu;
#[cfg(test)]
mod tests;

pub use cpu::{Range, Rectifier};
