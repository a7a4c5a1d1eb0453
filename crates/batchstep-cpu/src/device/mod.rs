//! What an engine says and asks of its machine: the witness of a step, and the memory that is free.

pub mod free_memory;
pub mod witnessed;
