//! The reduced values on the scale of the fit.

use super::reduce::{Reduced, ticks};
use crate::stats::quantile::median;

/// The lower bound on the dispersion: with repetitions the errors are known. Without them the errors are a rough guess,
/// inflated by jumps and alternations, and the residuals decide.
const KNOWN: f64 = 1.0;
const GUESSED: f64 = 0.1;

/// Errors of rounded values are counted in parts of this.
const DIGITS: f64 = 1e9;

/// Values of one series on their own scale: the fit does not depend on units.
pub(crate) struct Scaled {
    pub y: Vec<f64>,
    pub error: Vec<f64>,
    /// What the unit to which the input is rounded is here; 0 if none is detected.
    pub tick: Vec<f64>,
    /// The factor that converts back to the unit of the input.
    pub unit: f64,
    pub floor: f64,
}

impl Scaled {
    pub fn new(reduced: &Reduced) -> Self {
        let middle = median(&mut reduced.center.clone());
        // Rounded values are multiples of their unit, and many changes to a model gain exactly the same. Whole numbers and errors of
        // nine digits keep the last digit, and with it the unit of the input, from choosing between them.
        let is_rounded = reduced.unit > 0.0 && !reduced.repeated;
        let measured = |center: f64| if reduced.of_reciprocals { (-center).exp() } else { center.exp() };
        let value = |center: f64| match is_rounded {
            true => {
                let [own, middle] = [center, middle].map(|center| ticks(measured(center), reduced.unit));
                if reduced.of_reciprocals { middle / own } else { own / middle }
            }
            false => (center - middle).exp(),
        };
        let y: Vec<f64> = reduced.center.iter().map(|c| value(*c)).collect();
        let tick = reduced.center.iter().zip(&y).map(|(c, y)| reduced.unit / measured(*c) * y).collect();
        let digits = |error: f64| if is_rounded { (error * DIGITS).round() / DIGITS } else { error };
        let error = reduced.error.iter().zip(smooth(&y)).map(|(e, level)| digits(*e) * level).collect();
        Self { y, error, tick, unit: middle.exp(), floor: if reduced.repeated { KNOWN } else { GUESSED } }
    }
}

/// A running median of five: the level to which relative errors refer.
fn smooth(y: &[f64]) -> Vec<f64> {
    let around = |i: usize| median(&mut y[i.saturating_sub(2)..(i + 3).min(y.len())].to_vec());
    (0..y.len()).map(around).collect()
}
