//! batchstep finds, proves and explains the batch sizes at which a neural network's training step suddenly gets slower.
//!
//! The way of the data, one direction only:
//!
//! ```text
//! spec.toml -> spec -> plan (cells in randomised blocks) -> run (the loop)
//!    run: engine (one training step) + measure (clocks, warm-up, stop rule) + device (covariates) -> store (Parquet)
//! store (read side) -> detect (jumps, kinks, periods) -> report, chart
//! ```

pub mod analysis;
pub mod chart;
pub mod detect;
pub mod device;
pub mod engine;
pub mod environment;
pub mod error;
pub mod measure;
pub mod network;
pub mod plan;
pub mod report;
pub mod run;
pub mod selftest;
pub mod spec;
pub mod stats;
pub mod store;
pub mod units;
