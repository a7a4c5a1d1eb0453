//! The CPU engine's own blocking, from the constants and functions that its operators use.

pub use crate::engine::cpu::blocking::Blocking;
pub use crate::engine::cpu::examples_of_the_busiest;
