//! The reduced values on the scale of the fit.

use super::reduce::Reduced;
use crate::stats::quantile::median;

/// The lower bound on the dispersion: with repetitions the errors are known. Without them the errors are a rough guess,
/// inflated by jumps and alternations, and the residuals decide.
const KNOWN: f64 = 1.0;
const GUESSED: f64 = 0.1;

/// Values and their errors are counted in parts of these.
const VALUES: f64 = 1e12;
const ERRORS: f64 = 1e9;

/// Values of one series on their own scale: the fit does not depend on units.
pub(crate) struct Scaled {
    pub y: Vec<f64>,
    pub error: Vec<f64>,
    /// At each x, what the whole value is a share of: y, and one for logarithms, whose differences are shares.
    pub level: Vec<f64>,
    /// What the unit to which the input is rounded is here; 0 if none is detected.
    pub tick: Vec<f64>,
    /// The factor that converts differences back to the unit of the input; one for logarithms.
    pub unit: f64,
    pub floor: f64,
    /// For logarithms, that of the unit of `y`.
    logarithm: Option<f64>,
}

impl Scaled {
    pub fn new(reduced: &Reduced) -> Self {
        let middle = median(&mut reduced.center.clone());
        // Without noise, many changes to a model gain exactly the same. Fewer digits keep the last one, and with it the unit of the input, from
        // choosing between them.
        let to = |parts: f64, value: f64| if reduced.repeated { value } else { (value * parts).round() / parts };
        let y: Vec<f64> = reduced.center.iter().map(|center| to(VALUES, (center - middle).exp())).collect();
        let tick = reduced.tick.iter().zip(&y).map(|(tick, y)| tick * y).collect();
        let error = reduced.error.iter().zip(smooth(&y)).map(|(e, level)| to(ERRORS, *e) * level).collect();
        let floor = if reduced.repeated { KNOWN } else { GUESSED };
        Self { level: y.clone(), y, error, tick, unit: middle.exp(), floor, logarithm: None }
    }

    /// Logarithms of the values.
    pub fn logarithms(reduced: &Reduced) -> Self {
        let Self { y, floor, unit, .. } = Self::new(reduced);
        let (y, level) = (y.iter().map(|y| y.ln()).collect(), vec![1.0; y.len()]);
        let (error, tick) = (reduced.error.clone(), reduced.tick.clone());
        Self { y, error, level, tick, unit: 1.0, floor, logarithm: Some(unit.ln()) }
    }

    pub fn is_logarithms(&self) -> bool {
        self.logarithm.is_some()
    }

    /// A value of the fit in the unit of the input.
    pub fn value(&self, fit: f64) -> f64 {
        self.logarithm.map_or(fit * self.unit, |unit| (fit + unit).exp())
    }

    /// What a value of the fit is a share of.
    pub fn level_of(&self, fit: f64) -> f64 {
        if self.is_logarithms() { 1.0 } else { fit.abs().max(f64::MIN_POSITIVE) }
    }
}

/// A running median of five: the level to which relative errors refer.
fn smooth(y: &[f64]) -> Vec<f64> {
    let around = |i: usize| median(&mut y[i.saturating_sub(2)..(i + 3).min(y.len())].to_vec());
    (0..y.len()).map(around).collect()
}
