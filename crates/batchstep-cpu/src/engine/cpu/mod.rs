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
pub mod loss;
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
pub mod trainer;
pub mod training;

#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use super::threads;
use super::train::{self, Trainer};
use super::{DeviceName, Engine, Peaks, Step, Workload, check_shapes, memory, processor, refuse};
use crate::error::Result;
use crate::os::cache::Cache;
use crate::settings::{Algorithms, DataPath, Launch, Layout, Precision, Settings, Winograd};
use algorithm_choice::WinogradThreshold;
use blocking::Blocking;
use op::product::bf16;
use pass::Choices;
pub use pass::{chosen_kernel, examples_of_the_busiest};
use step::CpuStep;
use thread_team::Team;
use trainer::CpuTrainer;
use training::Training;

/// A workload with its settings in force, a training for it, and its threads.
type Begun = (Workload, Rc<RefCell<Training<f32>>>, Rc<Team>);

/// Executes training steps on the processor, in float32; [`op`] and [`training`] also know float64, in which the tests
/// compare them with PyTorch.
#[derive(Debug)]
pub struct CpuEngine {
    device: DeviceName,
    threads: Option<usize>,
    /// By the number of their threads.
    teams: BTreeMap<usize, Rc<Team>>,
    /// Where this machine's thresholds are kept; `None`: they are not measured.
    thresholds: Option<Cache>,
    /// The training of the last workload. The next one reuses its memory where it can.
    last: Option<Rc<RefCell<Training<f32>>>>,
}

impl CpuEngine {
    /// An engine on the processor. `threads` applies where the settings name no number; `None`: all cores that the
    /// process may use.
    pub fn cpu(threads: Option<usize>) -> Self {
        Self { device: processor::device_name(), threads, teams: BTreeMap::new(), thresholds: None, last: None }
    }

    /// The same engine, which chooses the algorithm that is faster on this machine. The choice is measured once and
    /// kept in `thresholds`.
    pub fn measuring(self, thresholds: Cache) -> Self {
        Self { thresholds: Some(thresholds), ..self }
    }

    /// The size at which this workload's convolutions change their algorithm.
    fn threshold(&self, workload: &Workload, team: &Team) -> WinogradThreshold {
        let factors = Blocking::from(&workload.settings).factors;
        match &self.thresholds {
            Some(cache) if pass::depends_on_threshold(workload) => {
                WinogradThreshold::of_machine(&self.device.name, team, factors, cache)
            }
            _ => WinogradThreshold::default(),
        }
    }

    fn team(&mut self, settings: &Settings) -> Result<Rc<Team>> {
        threads::of(&mut self.teams, settings.threads.or(self.threads), |threads| Team::new(threads).map(Rc::new))
    }

    /// What a workload that passes the `check` needs.
    fn begin(&mut self, workload: &Workload, check: fn(&Workload) -> Result<()>) -> Result<Begun> {
        let settings = self.in_force(&workload.settings)?;
        let workload = Workload { settings, ..workload.clone() };
        check(&workload)?;
        let team = self.team(&workload.settings)?;
        let training = self.training(&workload, &team)?;
        training.borrow_mut().fit(workload.batch_size)?;
        Ok((workload, training, team))
    }

    fn trainer(&mut self, workload: &Workload) -> Result<CpuTrainer> {
        let (workload, training, team) = self.begin(workload, train::check)?;
        Ok(CpuTrainer::new(workload, training, team))
    }

    /// A training in its initial state: the last one, reset, if it fits the workload and is no longer in use.
    fn training(&mut self, workload: &Workload, team: &Team) -> Result<Rc<RefCell<Training<f32>>>> {
        let Workload { network, settings, .. } = workload;
        let threshold = self.threshold(workload, team);
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
        training.borrow_mut().pass.choose(Choices { threshold, ..settings.into() });
        self.last = Some(training.clone());
        Ok(training)
    }
}

impl Engine for CpuEngine {
    fn device(&self) -> &DeviceName {
        &self.device
    }

    fn peaks(&mut self, settings: &Settings) -> Result<Option<Peaks>> {
        let pool = threads::pool(settings.threads.or(self.threads).unwrap_or_else(processor::cores))?;
        Ok(Some(peaks::measure(&pool, Blocking::from(settings).factors)))
    }

    /// `tf32` becomes `fp32`: a processor has no such mode. In `bf16` the factors of convolutions and matrix products
    /// are rounded, where the processor has instructions for that; everything else is float32, including what is
    /// stored.
    fn in_force(&self, asked: &Settings) -> Result<Settings> {
        let Settings { layout, data, algorithms, launch, .. } = *asked;
        let precision = if asked.precision == Precision::Tf32 { Precision::Fp32 } else { asked.precision };
        let lacks_bf16 = precision == Precision::Bf16 && !bf16::is_there();
        let what = "this processor has no instructions for products of bf16 (AVX512-BF16)";
        refuse(lacks_bf16, what, "use `fp32`, or the engine `torch`")?;
        let what = format!("the CPU engine does not compute in {precision}");
        refuse(precision == Precision::Fp16, what, "use `fp32`, or `bf16` where the processor has it")?;
        refuse(layout != Layout::Nchw, format!("the CPU engine has no layout {layout}"), "use `nchw`")?;
        let what = format!("`data = \"{data}\"` applies only to GPUs");
        refuse(matches!(data, DataPath::Pinned | DataPath::Prefetch), what, "use `resident` or `pageable`")?;
        let what = format!("the CPU engine has no algorithms to choose from with `{algorithms}`");
        refuse(algorithms != Algorithms::Heuristic, what, "use `heuristic`")?;
        refuse(launch != Launch::Eager, format!("the CPU engine cannot launch a {launch}"), "use `eager`")?;
        refuse(asked.streams != 1, "the CPU engine has no second stream", "leave `streams` out")?;
        let what = "the CPU engine has only one form of Winograd's algorithm";
        refuse(asked.winograd == Winograd::NonFused, what, "use `any` or `never`")?;
        let is_cut_to_nothing = asked.batch_padding == 0 || asked.product_columns == Some(0);
        let what = "a batch cannot be padded to a multiple of 0, nor a product cut into 0 columns";
        refuse(is_cut_to_nothing, what, "leave `batch_padding` and `product_columns` out")?;
        let hint = "leave `threads` out to use all cores";
        refuse(asked.threads == Some(0), "a step cannot run on 0 threads", hint)?;
        Ok(Settings { precision, ..asked.clone() })
    }

    fn prepare(&mut self, workload: &Workload) -> Result<Box<dyn Step>> {
        let (workload, training, team) = self.begin(workload, check_shapes)?;
        Ok(Box::new(CpuStep::new(workload, training, team)))
    }

    fn trains(&self) -> bool {
        true
    }

    fn train(&mut self, workload: &Workload) -> Result<Box<dyn Trainer>> {
        Ok(Box::new(self.trainer(workload)?))
    }
}
