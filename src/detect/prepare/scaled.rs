//! The reduced values on the scale that they are fitted on.

use super::reduce::Reduced;
use crate::stats::quantile::median;

/// Least dispersion that is believed: with repetitions the errors are known; without, they are a rough guess that jumps and
/// alternations inflate, and the residuals decide.
const KNOWN: f64 = 1.0;
const GUESSED: f64 = 0.1;

/// Values of one series on a scale of their own: the fit does not see units.
pub(crate) struct Scaled {
    pub y: Vec<f64>,
    pub error: Vec<f64>,
    /// Multiply by this to be back in the unit of the input.
    pub unit: f64,
    pub floor: f64,
}

impl Scaled {
    pub fn new(reduced: &Reduced) -> Self {
        let middle = median(&mut reduced.center.clone());
        let y: Vec<f64> = reduced.center.iter().map(|c| (c - middle).exp()).collect();
        let error = reduced.error.iter().zip(smooth(&y)).map(|(e, level)| e * level).collect();
        Self { y, error, unit: middle.exp(), floor: if reduced.repeated { KNOWN } else { GUESSED } }
    }
}

/// A running median of five: the level that relative errors are a share of.
fn smooth(y: &[f64]) -> Vec<f64> {
    let around = |i: usize| median(&mut y[i.saturating_sub(2)..(i + 3).min(y.len())].to_vec());
    (0..y.len()).map(around).collect()
}
