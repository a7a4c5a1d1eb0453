//! The CPU engine's own blocking, from the constants and functions that its operators compute with.

pub use crate::engine::cpu::blocking::Blocking;
