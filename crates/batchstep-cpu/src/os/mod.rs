//! Files and processes: writes that are whole or not at all, reads that may fail, results kept on disk, processes with a limit.

pub mod atomic;
pub mod cache;
pub mod child;
pub mod look;
