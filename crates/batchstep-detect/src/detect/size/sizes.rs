//! Sizes of jumps.

use crate::detect::model::boundary::{self, Boundary};
use crate::detect::model::candidates::Term;
use crate::detect::model::fit::Model;
use crate::detect::prepare::units::ROUNDING;

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

/// How a step of a staircase departs from the common height.
struct Departure {
    place: usize,
    size: f64,
    /// Its standard error.
    error: f64,
    /// What each whitened value contributes to it.
    influence: Vec<f64>,
}

/// Sizes of the jumps at `found`, in that order. A step of a staircase has the common height, and as much of its own departure from it as the departures of
/// all show to be there (DerSimonian & Laird 1986; Morris 1983).
pub(crate) fn sizes(model: &Model, found: &[Boundary]) -> Vec<Size> {
    let of = |boundary: &Boundary| {
        let (_, _, weights) = boundary::departure(model.problem.candidates, &model.terms, boundary.k);
        Size { value: boundary.size, error: boundary.error, influence: model.influence(&weights) }
    };
    let mut sizes: Vec<Size> = found.iter().map(of).collect();
    let departures = departures(model, found);
    let squares = departures.iter().map(|one| one.size.powi(2) - one.error.powi(2));
    let between = (squares.sum::<f64>() / departures.len().max(1) as f64).max(0.0);
    for Departure { place, size, error, influence } in departures {
        let share = between / (between + error.powi(2));
        let own = &mut sizes[place];
        own.value += share * size;
        own.error = own.error.hypot(share.sqrt() * error);
        own.influence.iter_mut().zip(influence).for_each(|(whole, part)| *whole += share * part);
    }
    sizes
}

/// The departures of the steps of staircases that have no step of their own.
fn departures(model: &Model, found: &[Boundary]) -> Vec<Departure> {
    let (problem, spread) = (model.problem, model.spread());
    let of = |(place, boundary): (usize, &Boundary)| {
        let step = problem.candidates.index(Term::Step(boundary.k));
        let (size, unit) = model.addition(step).filter(|_| boundary.in_staircase && !model.terms.contains(&step))?;
        let mut influence = model.outside(&problem.whitened(&problem.candidates.column(step)));
        influence.iter_mut().for_each(|part| *part *= unit * unit);
        Some(Departure { place, size, error: unit * spread, influence })
    };
    found.iter().enumerate().filter_map(of).collect()
}
