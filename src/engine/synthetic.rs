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

use std::cell::Cell;
use std::rc::Rc;

use super::counter::{Purpose, Stream};
use super::{DeviceName, Engine, LayerExecution, Settings, Step, StepTimes, Workload};
use crate::error::{Error, Result};

/// What is true about the time of a step, and what hides it.
///
/// The time of step `n` of the engine's life (counted from 0 over all its prepared steps) at a batch size is
/// `step_s(batch size) x drift(n) x noise(n)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Truth {
    /// The time at batch size 0, in seconds.
    pub base_s: f64,
    /// What each image adds.
    pub slope_s_per_image: f64,
    /// (after, size in seconds): from batch size `after + 1` on, a step takes `size` longer; negative for shorter.
    pub jumps: Vec<(usize, f64)>,
    /// (at, change in seconds per image): beyond batch size `at`, each image adds that much more.
    pub kinks: Vec<(usize, f64)>,
    pub noise: Noise,
    pub drift: Drift,
    /// Whether the device clock is there too; it shows the same time as the host's.
    pub device_clock: bool,
    /// Seeds the noise.
    pub seed: u64,
}

/// What is random in each step. All is relative to the step's time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Noise {
    /// The standard deviation of the normal part.
    pub relative_sd: f64,
    /// The share of steps, 0 to 1, whose noise has the same scale but heavy tails: Student's t with 3 degrees of freedom.
    pub heavy_tail_share: f64,
    /// The share of steps, 0 to 1, that something interrupts.
    pub outlier_share: f64,
    /// What an interruption adds: 1 doubles the time.
    pub outlier_size: f64,
}

/// A device that gets slower as it gets warm: the factor goes from 1 to 1 + `relative_amplitude`, exponentially.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Drift {
    /// Negative for a device that gets faster.
    pub relative_amplitude: f64,
    /// Steps until 63 % of it are there; 0: from the first step on.
    pub time_constant_steps: f64,
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
            drift: Drift::default(),
            device_clock: false,
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

    /// The time that step `number` shows at a batch size, in seconds: never below a tenth of the true one, which no noise
    /// of a real clock would reach.
    fn observed_s(&self, batch_size: usize, number: u64) -> f64 {
        let shown = self.drift.factor(number) * self.noise.factor(self.seed, number);
        self.step_s(batch_size) * shown.max(0.1)
    }

    /// Refuses shares, spreads and times that cannot be.
    fn check(&self) -> Result<()> {
        let Noise { relative_sd, heavy_tail_share, outlier_share, outlier_size } = self.noise;
        let share = |value: f64| (0.0..=1.0).contains(&value);
        let finite = |value: f64| value.is_finite() && value >= 0.0;
        let complaint = if !(share(heavy_tail_share) && share(outlier_share)) {
            "a share is not between 0 and 1"
        } else if !(finite(relative_sd) && finite(outlier_size) && finite(self.drift.time_constant_steps)) {
            "the noise, the outliers' size or the drift's time constant is negative or not finite"
        } else if self.drift.relative_amplitude.is_nan() || self.drift.relative_amplitude <= -1.0 {
            "the drift takes all of the time away"
        } else {
            return Ok(());
        };
        Err(Error::spec(complaint).at("synthetic truth"))
    }
}

impl Drift {
    fn factor(&self, number: u64) -> f64 {
        let there =
            if self.time_constant_steps > 0.0 { -(-(number as f64) / self.time_constant_steps).exp_m1() } else { 1.0 };
        1.0 + self.relative_amplitude * there
    }
}

impl Noise {
    fn factor(&self, seed: u64, number: u64) -> f64 {
        let draw = Stream::new(seed, Purpose::Noise, (number, 0));
        let heavy = draw.uniform_f64(0) < self.heavy_tail_share;
        let interrupted = draw.uniform_f64(1) < self.outlier_share;
        let normal = |index| Stream::new(seed, Purpose::Noise, (number, 1)).normal(index);
        let deviation = if heavy {
            let chi_square: f64 = (1..=3).map(|index| normal(index).powi(2)).sum();
            normal(0) / (chi_square / 3.0).sqrt()
        } else {
            normal(0)
        };
        1.0 + self.relative_sd * deviation + if interrupted { self.outlier_size } else { 0.0 }
    }
}

/// Gives the times of a [`Truth`]. The same calls in the same order give the same times.
#[derive(Debug)]
pub struct SyntheticEngine {
    truth: Rc<Truth>,
    device: DeviceName,
    steps: Rc<Cell<u64>>,
}

impl SyntheticEngine {
    /// An engine of that truth.
    ///
    /// # Errors
    /// [`crate::error::Kind::Spec`] where a share, a spread or the drift is out of range.
    pub fn new(truth: Truth) -> Result<Self> {
        truth.check()?;
        let device = DeviceName { id: "synthetic".to_owned(), name: "a known truth".to_owned(), multiprocessors: None };
        Ok(Self { truth: Rc::new(truth), device, steps: Rc::default() })
    }
}

impl Engine for SyntheticEngine {
    fn device(&self) -> &DeviceName {
        &self.device
    }

    fn in_force(&self, asked: &Settings) -> Result<Settings> {
        Ok(asked.clone())
    }

    /// # Errors
    /// [`crate::error::Kind::Engine`] where the truth has no positive time at this batch size.
    fn prepare(&mut self, workload: &Workload) -> Result<Box<dyn Step>> {
        let batch_size = workload.batch_size;
        let true_s = self.truth.step_s(batch_size);
        if !(true_s.is_finite() && true_s > 0.0) {
            return Err(Error::engine(format!("the synthetic truth gives {true_s} s at batch size {batch_size}")));
        }
        Ok(Box::new(SyntheticStep { truth: self.truth.clone(), batch_size, steps: self.steps.clone() }))
    }
}

#[derive(Debug)]
struct SyntheticStep {
    truth: Rc<Truth>,
    batch_size: usize,
    steps: Rc<Cell<u64>>,
}

impl Step for SyntheticStep {
    fn run(&mut self) -> Result<StepTimes> {
        let number = self.steps.get();
        self.steps.set(number + 1);
        let step_s = self.truth.observed_s(self.batch_size, number);
        Ok(StepTimes { step_s, gpu_s: self.truth.device_clock.then_some(step_s), ..StepTimes::default() })
    }

    fn layers(&self) -> Vec<LayerExecution> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests;
