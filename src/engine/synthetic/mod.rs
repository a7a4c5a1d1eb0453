//! A known truth: an engine whose step times are a formula, with planted jumps, kinks, drift and noise. Nothing is computed
//! and nothing sleeps; the times go through the same run loop, store and detector as measured ones, so that power, false
//! positives and errors of localisation of the whole pipeline can be tested.
//!
//! ```
//! use batchstep::engine::synthetic::Truth;
//! let truth = Truth { base_s: 0.010, slope_s_per_image: 0.001, jumps: vec![(16, 0.005)], ..Truth::default() };
//! assert!((truth.step_s(16) - 0.026).abs() < 1e-12);
//! assert!((truth.step_s(17) - 0.032).abs() < 1e-12);
//! ```

mod device;
mod disturbance;
mod layers;
mod machines;

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

use super::{DeviceName, Engine, LayerExecution, Settings, Step, StepTimes, Workload};
use crate::error::{Error, Result};
use crate::settings::EngineName;
pub use device::SyntheticDevice;
use disturbance::Moment;
pub use disturbance::{Boost, Clock, ClockStep, Common, Disturbance, Drift, Neighbour, Noise, Throttle};
pub use machines::{Machine, Machines};

/// The true time of a step, and the disturbances added to it.
///
/// The time of step `n` (counted from 0 over all steps that the engine prepared) at a batch size is
/// `step_s(batch size) x disturbance(n) x noise(n)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Truth {
    /// The time at batch size 0, in seconds.
    pub base_s: f64,
    /// The time that each image adds, in seconds.
    pub slope_s_per_image: f64,
    /// (after, size in seconds): from batch size `after + 1` on, a step takes `size` longer; negative for shorter.
    pub jumps: Vec<(usize, f64)>,
    /// (at, change in seconds per image): beyond batch size `at`, each image adds that much more.
    pub kinks: Vec<(usize, f64)>,
    pub noise: Noise,
    pub disturbance: Disturbance,
    pub machines: Machines,
    /// Which of several machines this is; `None` where there is only one. Not part of a spec.
    pub machine: Option<Machine>,
    /// Whether the device clock is there too; it shows the same time as the host's. The device is then taken for a GPU.
    pub device_clock: bool,
    /// The clock that can be read beside each visit; `None` where there is none.
    pub clock: Option<Clock>,
    pub faults: Faults,
    pub seed: u64,
}

/// Batch sizes at which the step fails or misbehaves.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Faults {
    pub nan_loss: Vec<usize>,
    pub fails: Vec<usize>,
    /// The step fails, and so does every step after it.
    pub lost: Vec<usize>,
    /// (at, seconds): each step really sleeps this long, whatever time it reports.
    pub hangs: Vec<(usize, f64)>,
}

impl Default for Truth {
    /// A straight line from 10 ms, 1 ms for each image, without noise.
    fn default() -> Self {
        Self {
            base_s: 0.010,
            slope_s_per_image: 0.001,
            jumps: Vec::new(),
            kinks: Vec::new(),
            noise: Noise::default(),
            disturbance: Disturbance::default(),
            machines: Machines::default(),
            machine: None,
            device_clock: false,
            clock: None,
            faults: Faults::default(),
            seed: 1,
        }
    }
}

impl Truth {
    /// The true time of a step, in seconds.
    pub fn step_s(&self, batch_size: usize) -> f64 {
        let jumps = self.jumps.iter().filter(|(after, _)| batch_size > *after).map(|(_, size)| size);
        let kinks = self.kinks.iter().map(|(at, change)| change * batch_size.saturating_sub(*at) as f64);
        self.base_s + self.slope_s_per_image * batch_size as f64 + jumps.sum::<f64>() + kinks.sum::<f64>()
    }

    /// The reported time of a step, in seconds; at least a tenth of the true one, which is less than the noise of a
    /// real clock can make it.
    fn observed_s(&self, at: Moment) -> f64 {
        let shown = self.disturbance.factor(self.seed, at) * self.noise.factor(self.seed, at);
        self.step_s(at.batch_size) * self.machine_factor(at.batch_size) * shown.max(0.1)
    }

    /// Refuses impossible shares, spreads and times.
    fn check(&self) -> Result<()> {
        let Noise { relative_sd, visit_sd, heavy_tail_share, outlier_share, outlier_size } = self.noise;
        let Disturbance { drift, clock_step, neighbour, boost, common, throttle, first_visit } = self.disturbance;
        let share = |value: f64| (0.0..=1.0).contains(&value);
        let finite = |value: f64| value.is_finite() && value >= 0.0;
        let factors = [drift.relative_amplitude, clock_step.relative, neighbour.relative, boost.relative];
        let leaves = |change: f64| change.is_finite() && change > -1.0;
        let clock = self.clock.is_none_or(|clock| clock.hz > 0.0 && finite(clock.hz) && finite(clock.relative_sd));
        let complaint = if !(share(heavy_tail_share) && share(outlier_share) && share(boost.share)) {
            "a share is not between 0 and 1"
        } else if ![relative_sd, visit_sd, outlier_size, drift.time_constant_steps, common.relative_sd, common.steps]
            .into_iter()
            .all(finite)
        {
            "a standard deviation, the outliers' size or a time constant is negative or not finite"
        } else if !factors.into_iter().chain([throttle.relative, first_visit]).all(leaves) {
            "a disturbance takes all of the time away"
        } else if !clock {
            "the clock is not positive, or its noise is negative"
        } else {
            return Ok(());
        };
        Err(Error::spec(complaint).at("synthetic truth"))
    }
}

/// Gives the times of a [`Truth`]. The same calls in the same order give the same times.
#[derive(Debug)]
pub struct SyntheticEngine {
    life: Rc<Life>,
    name: DeviceName,
}

/// The state that all steps of an engine share.
#[derive(Debug, Default)]
struct Life {
    truth: Truth,
    steps: Cell<u64>,
    /// ln of the common factor at the last step.
    common: Cell<f64>,
    visits: Cell<u64>,
    seen: RefCell<BTreeSet<usize>>,
    /// Every further step fails.
    lost: Cell<bool>,
    gauge: device::Gauge,
}

impl SyntheticEngine {
    /// An engine for that truth.
    ///
    /// # Errors
    /// [`crate::error::Kind::Spec`] where a share, a spread or a disturbance is out of range.
    pub fn new(truth: Truth) -> Result<Self> {
        truth.check()?;
        let name = DeviceName { id: "synthetic".to_owned(), name: "a known truth".to_owned(), multiprocessors: None };
        Ok(Self { life: Rc::new(Life { truth, ..Life::default() }), name })
    }

    /// The device whose covariates stand beside this engine's steps.
    pub fn covariates(&self) -> SyntheticDevice {
        SyntheticDevice { gauge: self.life.gauge.clone(), gpu: self.life.truth.device_clock }
    }
}

impl Engine for SyntheticEngine {
    fn device(&self) -> &DeviceName {
        &self.name
    }

    fn in_force(&self, asked: &Settings) -> Result<Settings> {
        Ok(asked.of(EngineName::Synthetic))
    }

    /// The time at batch size 0. No step runs, because it would shift the noise of the steps that count.
    fn smallest_step_s(&mut self) -> Result<f64> {
        Ok(self.life.truth.step_s(0))
    }

    /// # Errors
    /// [`crate::error::Kind::Engine`] where the truth has no positive time at this batch size, or a fault there.
    fn prepare(&mut self, workload: &Workload) -> Result<Box<dyn Step>> {
        let (life, batch_size) = (Rc::clone(&self.life), workload.batch_size);
        let true_s = life.truth.step_s(batch_size);
        if !(true_s.is_finite() && true_s > 0.0) {
            return Err(Error::engine(format!("the synthetic truth gives {true_s} s at batch size {batch_size}")));
        }
        if life.truth.faults.fails.contains(&batch_size) {
            return Err(Error::engine(format!("the synthetic truth has a fault at batch size {batch_size}")));
        }
        life.lost.set(life.lost.get() || life.truth.faults.lost.contains(&batch_size));
        self.still_works()?;
        let visit = life.visits.replace(life.visits.get() + 1);
        let first_visit = life.seen.borrow_mut().insert(batch_size);
        Ok(Box::new(SyntheticStep { life, batch_size, visit, first_visit, timed: false }))
    }

    fn still_works(&mut self) -> Result<()> {
        if self.life.lost.get() { Err(Error::engine("the synthetic device is lost")) } else { Ok(()) }
    }
}

#[derive(Debug)]
struct SyntheticStep {
    life: Rc<Life>,
    batch_size: usize,
    visit: u64,
    first_visit: bool,
    /// Whether times of the layers were requested.
    timed: bool,
}

impl Step for SyntheticStep {
    fn run(&mut self) -> Result<StepTimes> {
        let Life { truth, steps, gauge, .. } = self.life.as_ref();
        let step = steps.replace(steps.get() + 1);
        let common = truth.disturbance.common.next(truth.seed, step, self.life.common.get());
        self.life.common.set(common);
        let (visit, batch_size, first_visit) = (self.visit, self.batch_size, self.first_visit);
        let at = Moment { step, visit, batch_size, first_visit, common };
        if let Some((_, seconds)) = truth.faults.hangs.iter().find(|(size, _)| *size == self.batch_size) {
            std::thread::sleep(Duration::try_from_secs_f64(*seconds).unwrap_or(Duration::MAX));
        }
        if let Some(clock) = &truth.clock {
            let held = self.batch_size > truth.disturbance.throttle.after && truth.disturbance.throttle.relative > 0.0;
            gauge.set(clock.reading(&truth.disturbance, truth.seed, at), held);
        }
        let step_s = truth.observed_s(at);
        let loss = truth.faults.nan_loss.contains(&self.batch_size).then_some(f64::NAN);
        Ok(StepTimes { step_s, gpu_s: truth.device_clock.then_some(step_s), loss, ..StepTimes::default() })
    }

    fn layers(&self) -> Vec<LayerExecution> {
        layers::layers(&self.life.truth, self.batch_size, self.timed)
    }

    fn time_layers(&mut self) -> Result<()> {
        self.timed = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
