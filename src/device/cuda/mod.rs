//! The CUDA driver and the CUDA libraries of this machine: which are installed, where, and in which version.

mod compatibility;
pub mod driver;
pub mod libraries;
mod library;
pub mod loaded;
pub mod refusal;
pub mod search;
mod version;
