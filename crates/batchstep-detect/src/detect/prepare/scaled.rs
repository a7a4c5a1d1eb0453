//! The reduced values on the scale of the fit.

use super::reduce::Reduced;
use crate::stats::quantile::median;

/// The lower bound on the dispersion: with repetitions the errors are known. Without them the errors are a rough guess,
/// inflated by jumps and alternations, and the residuals decide.
const KNOWN: f64 = 1.0;
const GUESSED: f64 = 0.1;

/// On which scale a curve is fitted.
///
/// The one that gives the shortest description is taken. With the reciprocal among them, a rate and the time that it is the reciprocal
/// of are described alike: the reciprocal of the one is the other itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scale {
    Linear,
    /// ln y.
    Log,
    /// 1 / y.
    Reciprocal,
}

impl Scale {
    pub const ALL: [Self; 3] = [Self::Linear, Self::Log, Self::Reciprocal];
}

/// Values of one series on their own scale: the fit does not depend on units.
pub(crate) struct Scaled {
    scale: Scale,
    pub y: Vec<f64>,
    pub error: Vec<f64>,
    /// The middle of the values, in the unit of the input.
    unit: f64,
    pub floor: f64,
    /// What the change of scale adds to a description length, so that those of several scales can be compared.
    pub change: f64,
}

impl Scaled {
    pub fn new(reduced: &Reduced, scale: Scale) -> Self {
        let middle = median(&mut reduced.center.clone());
        let logs: Vec<f64> = reduced.center.iter().map(|center| center - middle).collect();
        let y: Vec<f64> = logs.iter().map(|log| scale.of(*log)).collect();
        let level = |log: f64| scale.level(scale.of(log));
        let smooth = smooth(&logs);
        let error = reduced.error.iter().zip(&smooth).map(|(error, log)| error * level(*log)).collect();
        // A density of z is one of ln y times dz / d ln y; the errors have its smoothed value.
        let change = smooth.iter().zip(&logs).map(|(smooth, log)| 2.0 * (level(*smooth) / level(*log)).ln()).sum();
        let floor = if reduced.repeated { KNOWN } else { GUESSED };
        Self { scale, y, error, unit: middle.exp(), floor, change }
    }

    /// The change of a value z on the scale for a relative change of y.
    pub fn level(&self, z: f64) -> f64 {
        self.scale.level(z)
    }

    /// A value z on the scale, in the unit of the input.
    pub fn value(&self, z: f64) -> f64 {
        self.unit * self.scale.back(z)
    }

    /// Whether z grows with y.
    pub fn grows(&self) -> bool {
        self.scale != Scale::Reciprocal
    }

    /// Whether staircases are offered. They only rise; on a logarithmic scale those of a rate would fall and those of a time rise.
    pub fn has_staircases(&self) -> bool {
        self.scale != Scale::Log
    }

    /// A change of z on the scale that ends at `z`, in the unit of the input.
    pub fn change_to(&self, z: f64, change: f64) -> f64 {
        match self.scale {
            Scale::Linear => self.unit * change,
            _ => self.value(z) - self.value(z - change),
        }
    }

    /// A share of the level on the scale, as a share of y.
    pub fn share(&self, share: f64) -> f64 {
        match self.scale {
            Scale::Linear | Scale::Reciprocal => share,
            Scale::Log => share.exp_m1(),
        }
    }
}

impl Scale {
    fn of(self, log: f64) -> f64 {
        match self {
            Self::Linear => log.exp(),
            Self::Log => log,
            Self::Reciprocal => (-log).exp(),
        }
    }

    fn level(self, z: f64) -> f64 {
        match self {
            Self::Log => 1.0,
            _ => z.abs().max(f64::MIN_POSITIVE),
        }
    }

    fn back(self, z: f64) -> f64 {
        match self {
            Self::Linear => z,
            Self::Log => z.exp(),
            // At zero there is no value: a fit that leads there counts as the thousandfold of the middle.
            Self::Reciprocal => z.max(1e-3).recip(),
        }
    }
}

/// A running median of five, of the logarithms: the level to which relative errors refer.
fn smooth(logs: &[f64]) -> Vec<f64> {
    let around = |i: usize| median(&mut logs[i.saturating_sub(2)..(i + 3).min(logs.len())].to_vec());
    (0..logs.len()).map(around).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_comes_back_from_every_scale_as_it_was() {
        // From 2 to 3 around the middle 2: + 1, ln 1.5, and 2/3 - 1.
        let center = [1.0f64, 1.5, 2.0, 3.0, 4.0].map(f64::ln).to_vec();
        let reduced = Reduced {
            error: vec![0.01; 5],
            freedom: vec![f64::INFINITY; 5],
            scale: vec![0.01; 5],
            center,
            repeated: true,
            unit: 0.0,
            shares: Vec::new(),
        };
        let changes = [0.5, 1.5f64.ln(), -1.0 / 3.0];
        for (scale, change) in Scale::ALL.into_iter().zip(changes) {
            let scaled = Scaled::new(&reduced, scale);
            assert!((scaled.y[3] - scaled.y[2] - change).abs() < 1e-12, "{scale:?}");
            assert!((scaled.change_to(scaled.y[3], change) - 1.0).abs() < 1e-12, "{scale:?}");
            assert!((scaled.value(scaled.y[4]) - 4.0).abs() < 1e-12 && scaled.level(scaled.y[2]) == 1.0);
        }
    }
}
