//! Sizes of jumps.

use crate::detect::model::boundary::{self, Boundary};
use crate::detect::model::fit::Model;
use crate::detect::prepare::reduce::ROUNDING;

/// The size of one jump.
#[derive(Clone, Debug, Default)]
pub(crate) struct Size {
    pub value: f64,
    /// Standard error.
    pub error: f64,
    /// What each whitened value contributes to `value`.
    pub influence: Vec<f64>,
}

impl Size {
    /// Adds to the error how much more than by chance the neighbours disagree: their size, with its error, does not depend on what the curve does
    /// elsewhere. By chance the difference has the variance of theirs less that of this size (Hausman 1978).
    pub fn doubt(&mut self, (value, error): (f64, f64)) {
        let by_chance = (error.powi(2) - self.error.powi(2)).max(0.0);
        let beyond = (value - self.value).powi(2) - by_chance;
        self.error = self.error.hypot(beyond.max(0.0).sqrt());
    }

    /// Adds the error of both sides where times are multiples of `tick`: it does not become smaller with the number of points.
    pub fn rounded(&mut self, tick: f64) {
        self.error = self.error.hypot(std::f64::consts::SQRT_2 * ROUNDING * tick);
    }
}

/// Sizes of the jumps at `found`, in that order.
pub(crate) fn sizes(model: &Model, found: &[Boundary]) -> Vec<Size> {
    let of = |boundary: &Boundary| {
        let (_, _, weights) = boundary::departure(model.problem.candidates, &model.terms, boundary.k);
        Size { value: boundary.size, error: boundary.error, influence: model.influence(&weights) }
    };
    found.iter().map(of).collect()
}
