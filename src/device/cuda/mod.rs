//! The CUDA driver and the CUDA libraries of this machine: which there are, where, and in which version.

pub mod driver;
pub mod libraries;
pub mod search;
mod version;
