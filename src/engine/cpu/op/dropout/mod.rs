//! Dropout with a mask that depends only on the seed and the position: nothing is stored for the backward pass.

pub mod cpu;
#[cfg(test)]
mod tests;
