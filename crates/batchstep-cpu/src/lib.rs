//! Trains a neural network step by step on a processor, and times each step: the CPU engine of [batchstep](https://crates.io/crates/batchstep).
//!
//! [`network`] has the networks (VGG, ResNet, MobileNet, and any other of the same layers), [`settings`] what a step can be told, [`engine`] what an
//! engine is, with two of them: [`engine::cpu`], which is fast, and [`engine::reference`], the definitions that it is checked against.
//!
//! ```
//! use std::sync::Arc;
//! use batchstep_cpu::engine::{Engine, Workload, cpu::CpuEngine};
//! use batchstep_cpu::network::{Network, Shape};
//! use batchstep_cpu::settings::Settings;
//!
//! let network = Arc::new(Network::by_name("mlp", Shape::Flat(2), 2)?);
//! let mut step = CpuEngine::cpu(None).prepare(&Workload { network, batch_size: 16, settings: Settings::default() })?;
//! let times = step.run()?;
//! assert!(times.step_s > 0.0 && times.loss.is_some());
//! # Ok::<(), batchstep_cpu::error::Error>(())
//! ```

pub mod device;
pub mod engine;
pub mod error;
pub mod network;
pub mod os;
pub mod settings;
pub mod units;

pub use batchstep_detect::{random, stats};
