//! Tests of the whole detector, on simulated series with a known truth.

mod alarms;
mod drift;
mod input;
mod invariance;
mod p_value;
mod periods;
mod places;
mod power;
mod shapes;
mod sizes;
mod vectors;

use super::*;
use crate::random::Rng;

/// A simulated measurement: a curve over x, repeated with multiplicative noise.
struct Simulation {
    xs: Vec<f64>,
    reps: usize,
    noise: f64,
    seed: u64,
}

impl Simulation {
    fn new(seed: u64) -> Self {
        Self { xs: (1..=70).map(f64::from).collect(), reps: 12, noise: 0.01, seed }
    }

    fn reps(self, reps: usize) -> Self {
        Self { reps, ..self }
    }

    fn noise(self, noise: f64) -> Self {
        Self { noise, ..self }
    }

    /// Observations without order.
    fn of(&self, curve: impl Fn(f64) -> f64) -> Vec<Observation> {
        let mut rng = Rng::new(self.seed);
        let one = |x: f64, rng: &mut Rng| Observation::new(x, curve(x) * (self.noise * rng.normal()).exp());
        self.xs.iter().flat_map(|&x| vec![x; self.reps]).map(|x| one(x, &mut rng)).collect()
    }
}

/// Step time of a plain network: a launch cost and a cost per sample.
fn line(x: f64) -> f64 {
    0.010 + 0.0008 * x
}

/// The line with a jump of `share` of the level after each of `at`.
fn jumping(share: f64, at: &[f64]) -> impl Fn(f64) -> f64 {
    move |x| line(x) + at.iter().filter(|k| x > **k).map(|k| share * line(*k)).sum::<f64>()
}

fn found(observations: &[Observation]) -> Findings {
    detect(observations, &Settings::default())
}

fn afters(findings: &Findings) -> Vec<f64> {
    findings.jumps.iter().map(|j| j.after).collect()
}
