//! The reference engine.

pub mod op;
