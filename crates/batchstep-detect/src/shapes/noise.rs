//! Noise of one series.

use super::draw::Draw;

/// How single values scatter about their mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tails {
    Normal,
    /// Student's t with three degrees of freedom.
    Heavy,
}

/// Relative noise of single values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Noise {
    /// Standard deviation at the first x, as a share of the level.
    pub sd: f64,
    /// By which factor it is larger at the last x.
    pub growth: f64,
    pub tails: Tails,
    /// Correlation of neighbours, shared by all repetitions; negative in a zigzag.
    pub correlation: f64,
    /// Values are multiples of this; 0 where they are not rounded.
    pub quantum: f64,
    /// Values are printed as multiples of this, after `quantum`; 0 where they are not rounded again.
    pub printed: f64,
    /// Values at each x.
    pub repetitions: usize,
}

impl Noise {
    /// Single normal values.
    pub fn of(sd: f64) -> Self {
        Self { sd, growth: 1.0, tails: Tails::Normal, correlation: 0.0, quantum: 0.0, printed: 0.0, repetitions: 1 }
    }

    /// Standard deviation of a single value, at point `i` of `count`.
    pub fn at(&self, i: usize, count: usize) -> f64 {
        self.sd * self.growth.powf(i as f64 / (count.max(2) - 1) as f64)
    }

    /// Relative standard error of the level from the values of one x: a factor of 1.25 as for a median, and for heavy tails
    /// half as much again.
    pub fn error(&self, i: usize, count: usize, level: f64) -> f64 {
        let tails = if self.tails == Tails::Heavy { 1.5 } else { 1.0 };
        let repeated = if self.repetitions > 1 { 1.25 / (self.repetitions as f64).sqrt() } else { 1.0 };
        let shared = if self.correlation == 0.0 { repeated } else { 1.0 };
        (self.at(i, count) * tails * shared).hypot(0.3 * self.quantum / level)
    }

    /// The values of every x, in the order of x, given their means.
    pub(super) fn values(&self, means: &[f64], draw: &mut Draw) -> Vec<Vec<f64>> {
        let rho = self.correlation;
        let mut process = draw.normal();
        let mut values = Vec::new();
        for (i, mean) in means.iter().enumerate() {
            process = rho * process + (1.0 - rho * rho).sqrt() * draw.normal();
            let sd = self.at(i, means.len());
            let mut one = || {
                let z = match self.tails {
                    Tails::Heavy => draw.student(),
                    Tails::Normal if rho == 0.0 => draw.normal(),
                    Tails::Normal => process + if self.repetitions > 1 { draw.normal() } else { 0.0 },
                };
                self.rounded(mean * (sd * z).clamp(-1.0, 3.0).exp())
            };
            values.push((0..self.repetitions).map(|_| one()).collect());
        }
        values
    }

    fn rounded(&self, value: f64) -> f64 {
        let to = |unit: f64, value: f64| if unit > 0.0 { (value / unit).round().max(1.0) * unit } else { value };
        to(self.printed, to(self.quantum, value))
    }
}
