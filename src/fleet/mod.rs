//! Runs on several machines: their progress, their tables as one, the scripts that start them.

pub mod merge;
pub mod status;
pub mod submission;
