#![doc = include_str!("../README.md")]
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

pub mod detect;
pub mod random;
pub mod sequential;
pub mod shapes;
pub mod stats;

pub use detect::{Findings, Jump, Observation, Settings, detect};
