//! The CPU engine: our own kernels for forward pass, backward pass and update, in float32, on memory assigned beforehand.
//!
//! [`op`] has the operators, [`pass`] the order in which a step calls their kernels and the memory that they work on. A
//! step is compared with [`super::reference`] and with PyTorch.
//!
//! ```
//! use std::sync::Arc;
//! use batchstep_cpu::engine::cpu::CpuEngine;
//! use batchstep_cpu::settings::*;
//! use batchstep_cpu::engine::{Engine, Workload};
//! use batchstep_cpu::network::{Network, Shape};
//!
//! let settings = Settings {
//!     optimizer: Optimizer::Sgd,
//!     learning_rate: 0.01,
//!     loss: Loss::MeanSquaredError,
//!     precision: Precision::Fp32,
//!     threads: Some(1),
//!     ..Settings::default()
//! };
//! let network = Arc::new(Network::by_name("mlp", Shape::Flat(2), 1)?);
//! let mut engine = CpuEngine::cpu(None);
//! let mut step = engine.prepare(&Workload { network, batch_size: 8, settings })?;
//! let (first, second) = (step.run()?, step.run()?);
//! assert!(second.loss < first.loss);
//! # Ok::<(), batchstep_cpu::error::Error>(())
//! ```

pub mod algorithm_choice;
pub mod blocking;
pub mod data;
pub mod evaluator;
mod execution;
pub mod loss;
pub mod masks;
mod meeting;
pub mod op;
pub mod optimizer;
pub mod parameters;
pub mod part;
pub mod pass;
mod peaks;
pub mod single;
mod step;
pub mod thread_team;
mod trainer;
pub mod training;

#[cfg(test)]
pub(super) mod tests;

use std::cell::RefCell;
use std::rc::Rc;

use super::threads::Pools;
use super::train::{self, Trainer};
use super::{DeviceName, Engine, Peaks, Step, Workload, check_shapes, memory, processor};
use crate::error::{Error, Result};
use crate::os::cache::Cache;
use crate::settings::{Algorithms, DataPath, Launch, Layout, Precision, Settings, Winograd};
use algorithm_choice::Switch;
use blocking::Blocking;
use data::Batch;
use op::product::bf16;
pub use pass::{chosen_kernel, examples_of_the_busiest};
use step::CpuStep;
use thread_team::{Team, Teams};
use trainer::CpuTrainer;
use training::Training;

/// Executes training steps on the processor, in float32; [`op`] and [`training`] also know float64, in which the tests
/// compare them with PyTorch.
#[derive(Debug)]
pub struct CpuEngine {
    device: DeviceName,
    threads: Option<usize>,
    teams: Teams,
    /// Where this machine's switches are kept; `None`: they are not measured.
    switches: Option<Cache>,
    /// The training of the last workload. The next one reuses its memory where it can.
    last: Option<Rc<RefCell<Training<f32>>>>,
}

impl CpuEngine {
    /// An engine on the processor. `threads` applies where the settings name no number; `None`: all cores that the
    /// process may use.
    pub fn cpu(threads: Option<usize>) -> Self {
        Self { device: processor::device_name(), threads, teams: Teams::default(), switches: None, last: None }
    }

    /// The same engine, which chooses the algorithm that is faster on this machine. The choice is measured once and
    /// kept in `switches`.
    pub fn measuring(self, switches: Cache) -> Self {
        Self { switches: Some(switches), ..self }
    }

    /// The size at which this workload's convolutions change their algorithm.
    fn switch(&self, workload: &Workload, team: &Team) -> Switch {
        let factors = Blocking::from(&workload.settings).factors;
        match &self.switches {
            Some(cache) if pass::depends_on_switch(workload) => {
                Switch::of_machine(&self.device.name, team, factors, cache)
            }
            _ => Switch::default(),
        }
    }

    fn team(&mut self, settings: &Settings) -> Result<Rc<Team>> {
        self.teams.of(settings.threads.or(self.threads))
    }

    /// A training in its initial state: the last one, reset, if it fits the workload and is no longer in use.
    fn training(&mut self, workload: &Workload, team: &Team) -> Result<Rc<RefCell<Training<f32>>>> {
        let Workload { network, settings, .. } = workload;
        let switch = self.switch(workload, team);
        self.last.take_if(|last| Rc::strong_count(last) > 1 || !last.borrow().fits(network, settings));
        let held = self.last.as_ref().map_or(0, |last| last.borrow().bytes());
        memory::check_step(workload, size_of::<f32>() as u64, held)?;

        let training = match &self.last {
            Some(last) => {
                let training = &mut *last.borrow_mut();
                team.install(|| training.reset(settings));
                last.clone()
            }
            None => Rc::new(RefCell::new(team.install(|| Training::new(network.clone(), settings)))),
        };
        training.borrow_mut().switch_at(switch);
        self.last = Some(training.clone());
        Ok(training)
    }
}

impl Engine for CpuEngine {
    fn device(&self) -> &DeviceName {
        &self.device
    }

    fn peaks(&mut self, settings: &Settings) -> Result<Option<Peaks>> {
        let pool = Pools::default().of(settings.threads.or(self.threads))?;
        Ok(Some(peaks::measure(&pool, Blocking::from(settings).factors)))
    }

    /// `tf32` becomes `fp32`: a processor has no such mode. In `bf16` the factors of convolutions and matrix products
    /// are rounded, where the processor has instructions for that; everything else is float32, including what is
    /// stored.
    fn in_force(&self, asked: &Settings) -> Result<Settings> {
        let refuse = |what: String, hint: &str| Err(Error::spec(what).hint(hint));
        let precision = match asked.precision {
            Precision::Fp32 | Precision::Tf32 => Precision::Fp32,
            Precision::Bf16 if bf16::is_there() => Precision::Bf16,
            Precision::Bf16 => {
                let what = "this processor has no instructions for products of bf16 (AVX512-BF16)";
                return refuse(what.to_owned(), "use `fp32`, or the engine `torch`");
            }
            other => {
                return refuse(
                    format!("the CPU engine does not compute in {other}"),
                    "use `fp32`, or `bf16` where the processor has it",
                );
            }
        };
        if asked.layout != Layout::Nchw {
            return refuse(format!("the CPU engine has no layout {}", asked.layout), "use `nchw`");
        }
        if matches!(asked.data, DataPath::Pinned | DataPath::Prefetch) {
            let what = format!("`data = \"{}\"` applies only to GPUs", asked.data);
            return refuse(what, "use `resident` or `pageable`");
        }
        if asked.algorithms != Algorithms::Heuristic {
            return refuse(
                format!("the CPU engine has no algorithms to choose from with `{}`", asked.algorithms),
                "use `heuristic`",
            );
        }
        if asked.launch != Launch::Eager {
            return refuse(format!("the CPU engine cannot launch a {}", asked.launch), "use `eager`");
        }
        if asked.streams != 1 {
            return refuse("the CPU engine has no second stream".to_owned(), "leave `streams` out");
        }
        if asked.winograd == Winograd::NonFused {
            return refuse(
                "the CPU engine has only one form of Winograd's algorithm".to_owned(),
                "use `any` or `never`",
            );
        }
        if asked.batch_padding == 0 || asked.product_columns == Some(0) {
            let what = "a batch cannot be padded to a multiple of 0, nor a product cut into 0 columns".to_owned();
            return refuse(what, "leave `batch_padding` and `product_columns` out");
        }
        if asked.threads == Some(0) {
            return refuse("a step cannot run on 0 threads".to_owned(), "leave `threads` out to use all cores");
        }
        Ok(Settings { precision, ..asked.clone() })
    }

    fn prepare(&mut self, workload: &Workload) -> Result<Box<dyn Step>> {
        let settings = self.in_force(&workload.settings)?;
        let workload = Workload { settings, ..workload.clone() };
        check_shapes(&workload)?;
        let team = self.team(&workload.settings)?;
        let training = self.training(&workload, &team)?;
        training.borrow_mut().fit(workload.batch_size)?;
        let batch = Batch::new(&workload);
        let layers = execution::layers(&workload, &training.borrow(), &[]);
        Ok(Box::new(CpuStep { workload, training, batch, team, layers }))
    }

    fn trains(&self) -> bool {
        true
    }

    fn train(&mut self, workload: &Workload) -> Result<Box<dyn Trainer>> {
        let settings = self.in_force(&workload.settings)?;
        let workload = Workload { settings, ..workload.clone() };
        train::check(&workload)?;
        let team = self.team(&workload.settings)?;
        let training = self.training(&workload, &team)?;
        training.borrow_mut().fit(workload.batch_size)?;
        Ok(Box::new(CpuTrainer::new(workload, training, team)))
    }
}
