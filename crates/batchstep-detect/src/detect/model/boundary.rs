//! One place where the model steps: its height and standard error.

use super::candidates::{CandidateTerms, Term};
use super::fit::Model;

/// A boundary at which the model steps, after position `k`.
#[derive(Clone, Debug)]
pub(crate) struct Boundary {
    pub k: usize,
    /// Whether it belongs to a staircase.
    pub in_staircase: bool,
    /// The departure at the next x from the trend up to here.
    pub size: f64,
    /// Standard error of `size`, lack of fit included.
    pub error: f64,
}

impl Boundary {
    /// The size in standard errors.
    pub fn z(&self) -> f64 {
        if self.error > 0.0 { self.size.abs() / self.error } else { 0.0 }
    }
}

/// All boundaries of the model, ascending.
pub(crate) fn boundaries(model: &Model) -> Vec<Boundary> {
    let coefficients = model.coefficients();
    let spread = model.spread();
    let last = model.problem.candidates.n - 1;
    let all = (0..last).filter_map(|k| {
        let (stepped, in_staircase, weights) = departure(model.problem.candidates, &model.terms, k);
        stepped.then(|| {
            let size = weights.iter().zip(&coefficients).map(|(w, b)| w * b).sum();
            let error = model.error_of(&weights) * spread;
            Boundary { k, in_staircase, size, error }
        })
    });
    all.collect()
}

/// The departure at k + 1: steps there, including those of a staircase, and a change of slope that starts at k.
///
/// Returns (whether there is a step, whether it belongs to a staircase, weights on the coefficients).
pub(crate) fn departure(candidates: &CandidateTerms, terms: &[usize], k: usize) -> (bool, bool, Vec<f64>) {
    let mut weights = vec![0.0; terms.len() + super::fit::FREE];
    let (mut stepped, mut in_staircase) = (false, false);
    for (place, &j) in terms.iter().enumerate() {
        let weight = &mut weights[place + super::fit::FREE];
        match candidates.term(j) {
            Term::Step(at) if at == k => {
                *weight = 1.0;
                stepped = true;
            }
            Term::Hinge(at) if at == k => *weight = candidates.t[k + 1] - candidates.t[k],
            Term::Staircase(s) => {
                *weight = candidates.staircases[s].steps.iter().filter(|r| **r == k).count() as f64;
                in_staircase |= *weight > 0.0;
            }
            _ => {}
        }
    }
    (stepped || in_staircase, in_staircase, weights)
}

/// Whether the model has no step and no change of slope within fewer than `least` points of the boundary after `k`.
pub(crate) fn is_free(model: &Model, k: usize, least: usize) -> bool {
    model.sized().all(|(term, _)| match term {
        Term::Step(at) => at.abs_diff(k) >= least,
        Term::Hinge(at) => at.abs_diff(k + 1) >= least,
        _ => true,
    })
}
