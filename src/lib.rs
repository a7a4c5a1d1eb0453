//! batchstep finds, proves and explains the batch sizes at which a neural network's training step suddenly gets slower.
//!
//! # Terms
//! - **step**: one training step: batch to device, forward, loss, backward, optimizer update. **Step time**: its seconds.
//! - **cell**: one point of the experiment (model, batch size, precision, ...). **Visit**: one stay at a cell, some steps in a
//!   row. **Block**: a visit to each of the cells in question, at first all of them, in a fresh random order.
//! - **jump after k**: the step time at k + 1 leaves, upwards or downwards, the line that held up to k. **Kink at k**: the slope
//!   changes at k, with no gap. **Period P**: jumps after multiples of P.
//! - **engine**: what executes the step: [`engine::cpu`], our kernels; [`engine::candle`], candle as its users use it;
//!   [`engine::cudnn`], our GPU engine; [`engine::torch`], PyTorch in its own process; [`engine::synthetic`], a known truth;
//!   [`engine::reference`], the definitions that the others are checked against.
//!
//! # The order of the data
//! ```text
//! spec.toml -> spec -> plan (cells in randomised blocks) -> run (the loop)
//!    run: engine (one training step) + measure (clocks, warm-up, stop rule) + device (covariates) -> store (Parquet)
//!    training: data -> loader -> engine (whole epochs) -> store
//! store (read side) -> analysis (series) -> detect (jumps, kinks, periods) -> report, chart -> page
//! ```
//!
//! Two crates hold what computes: `batchstep-cpu` (networks, settings, the CPU engine) and `batchstep-detect` (the detector and its statistics). This
//! library has their modules under the same names.
//!
//! Data flow one way, and `tests/program/architecture.rs` checks that every room uses only the rooms in its list. [`detect`] and [`stats`]
//! take slices of numbers and know neither Parquet nor a network nor a GPU. Every setting of a step that an experiment can vary is
//! an entry of one table, [`settings::AXES`]; the settings of loaders are in the specs that have a loader, [`study::training`] and
//! [`study::pipeline`].
//!
//! # Where to begin
//! The method, in five files: `docs/method.md`; the rules that decide when a step counts and when a cell is
//! known, `src/measure/warmup.rs` and `src/measure/precision.rs`; the course of a detection, `crates/batchstep-detect/src/detect/mod.rs`; the
//! threshold for a jump, `crates/batchstep-detect/src/detect/verify/threshold.rs`. The loop around all of it is `src/run/mod.rs`; the decisions on
//! boundaries during a run are in `crates/batchstep-detect/src/sequential/mod.rs`.
//!
//! ```
//! use batchstep::detect::{self, Observation};
//! // A step of 10 ms and 1 ms for each image, and 4 ms more beyond 16.
//! let time = |batch: i32| 0.010 + 0.001 * f64::from(batch) + if batch > 16 { 0.004 } else { 0.0 };
//! let ripple = |i: i32| 1.0 + 0.001 * f64::from(i * 7919 % 11 - 5);
//! let steps: Vec<Observation> =
//!     (0..200).map(|i| Observation::new(f64::from(i % 40 + 1), time(i % 40 + 1) * ripple(i))).collect();
//! let found = detect::detect(&steps, &detect::Settings::default());
//! assert_eq!(found.jumps.iter().map(|jump| jump.after).collect::<Vec<_>>(), [16.0]);
//! ```

#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

pub mod analysis;
pub mod chart;
pub mod check;
pub mod data;
pub mod device;
pub mod engine;
pub mod fleet;
pub mod foreign;
pub mod kinds;
pub mod measure;
pub mod page;
pub mod predict;
pub mod report;
pub mod run;
pub mod spec;
pub mod store;
pub mod study;
pub mod table;
pub mod words;

pub use batchstep_cpu::{error, network, os, settings, units};
pub use batchstep_detect::{detect, random, sequential, stats};

#[cfg(test)]
#[path = "../tests/needs/mod.rs"]
mod needs;
