//! Disturbances of a known truth: everything that a machine does and that could be mistaken for a jump.

use crate::random::{Purpose, Stream};

/// The random part of each step and each visit, relative to the step time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Noise {
    /// The standard deviation of the normal part.
    pub relative_sd: f64,
    /// The standard deviation of a normal part that all steps of a visit share.
    pub visit_sd: f64,
    /// The share of steps, 0 to 1, whose noise has the same scale but heavy tails: Student's t with 3 degrees of
    /// freedom. The part that a visit shares has heavy tails in the same share of visits.
    pub heavy_tail_share: f64,
    /// The share of steps, 0 to 1, that are interrupted.
    pub outlier_share: f64,
    /// The time that an interruption adds: 1 doubles the step time.
    pub outlier_size: f64,
}

/// A device that slows down as it warms up: the factor goes from 1 to 1 + `relative_amplitude`, exponentially. Its clock
/// falls as its times rise.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Drift {
    /// Negative for a device that gets faster.
    pub relative_amplitude: f64,
    /// Steps until 63 % of it are reached; 0: all of it from the first step on.
    pub time_constant_steps: f64,
}

/// A clock that changes once: from step `at_step` of the run on, each step takes 1 + `relative` times as long.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ClockStep {
    pub at_step: u64,
    pub relative: f64,
}

/// Another process on the machine for a while; the clock does not show it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Neighbour {
    pub from_step: u64,
    pub steps: u64,
    pub relative: f64,
}

/// A device with two clock states: for `share` of the time it is slower by `relative`. It stays in each state for a random
/// multiple of `dwell_steps`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Boost {
    pub share: f64,
    pub relative: f64,
    pub dwell_steps: u64,
}

/// A factor that all steps share: a first-order autoregressive process with the standard deviation `relative_sd`, whose
/// correlation falls to 1 / e within `steps`. The clock does not show it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Common {
    pub relative_sd: f64,
    pub steps: f64,
}

/// A device that holds its clock down under large batches: beyond batch size `after` it is slower by `relative`. It
/// does no more work: such a jump exists in seconds but not in cycles.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Throttle {
    pub after: usize,
    pub relative: f64,
}

/// The clock that can be read beside each visit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clock {
    /// The clock before anything slows it.
    pub hz: f64,
    pub relative_sd: f64,
}

/// All disturbances of the machine during a run; none by default.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Disturbance {
    pub drift: Drift,
    pub clock_step: ClockStep,
    pub neighbour: Neighbour,
    pub boost: Boost,
    pub common: Common,
    pub throttle: Throttle,
    /// Every step of the first visit to a batch size takes longer by this share.
    pub first_visit: f64,
}

/// The position of a step among all steps of the engine.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    pub step: u64,
    pub visit: u64,
    pub batch_size: usize,
    /// Nothing ran at this batch size before this visit.
    pub first_visit: bool,
    /// ln of the common factor at this step.
    pub common: f64,
}

impl Disturbance {
    /// The factor by which the clock falls and, with it, the times rise.
    pub(super) fn clock_factor(&self, seed: u64, at: Moment) -> f64 {
        let stepped = if at.step >= self.clock_step.at_step { self.clock_step.relative } else { 0.0 };
        let held = if at.batch_size > self.throttle.after { self.throttle.relative } else { 0.0 };
        self.drift.factor(at.step) * (1.0 + stepped) * (1.0 + held) * self.boost.factor(seed, at.step)
    }

    pub(super) fn factor(&self, seed: u64, at: Moment) -> f64 {
        let Neighbour { from_step, steps, relative } = self.neighbour;
        let shared = if (from_step..from_step.saturating_add(steps)).contains(&at.step) { relative } else { 0.0 };
        let first = if at.first_visit { self.first_visit } else { 0.0 };
        self.clock_factor(seed, at) * (1.0 + shared) * (1.0 + first) * at.common.exp()
    }
}

impl Common {
    /// ln of the factor at step `number`, given its value at the step before; the first step draws from the stationary
    /// distribution.
    pub(super) fn next(&self, seed: u64, number: u64, before: f64) -> f64 {
        let draw = Stream::new(seed, Purpose::Noise, [number, 5]).normal(0);
        let rho = if number > 0 && self.steps > 0.0 { (-1.0 / self.steps).exp() } else { 0.0 };
        rho * before + self.relative_sd * (1.0 - rho * rho).sqrt() * draw
    }
}

impl Drift {
    fn factor(&self, number: u64) -> f64 {
        let there =
            if self.time_constant_steps > 0.0 { -(-(number as f64) / self.time_constant_steps).exp_m1() } else { 1.0 };
        1.0 + self.relative_amplitude * there
    }
}

impl Boost {
    fn factor(&self, seed: u64, number: u64) -> f64 {
        let stretch = number / self.dwell_steps.max(1);
        let slow = Stream::new(seed, Purpose::Noise, [stretch, 2]).uniform_f64(0) < self.share;
        if slow { 1.0 + self.relative } else { 1.0 }
    }
}

impl Noise {
    pub(super) fn factor(&self, seed: u64, at: Moment) -> f64 {
        let draw = Stream::new(seed, Purpose::Noise, [at.step, 0]);
        let interrupted = draw.uniform_f64(1) < self.outlier_share;
        let own = self.deviation(draw.uniform_f64(0), Stream::new(seed, Purpose::Noise, [at.step, 1]));
        let mut factor = 1.0 + self.relative_sd * own + if interrupted { self.outlier_size } else { 0.0 };
        if self.visit_sd > 0.0 {
            let stream = Stream::new(seed, Purpose::Noise, [at.visit, 3]);
            factor *= 1.0 + self.visit_sd * self.deviation(stream.uniform_f64(100), stream);
        }
        factor
    }

    /// A normal deviation, or Student's t with 3 degrees of freedom where `draw` is below the heavy-tailed share.
    fn deviation(&self, draw: f64, stream: Stream) -> f64 {
        if draw >= self.heavy_tail_share {
            return stream.normal(0);
        }
        let chi_square: f64 = (1..=3).map(|index| stream.normal(index).powi(2)).sum();
        stream.normal(0) / (chi_square / 3.0).sqrt()
    }
}

impl Clock {
    /// A reading right after a visit.
    pub(super) fn reading(&self, disturbance: &Disturbance, seed: u64, at: Moment) -> f64 {
        let noise = Stream::new(seed, Purpose::Noise, [at.visit, 4]).normal(0);
        self.hz / disturbance.clock_factor(seed, at) * (1.0 + self.relative_sd * noise).max(0.1)
    }
}
