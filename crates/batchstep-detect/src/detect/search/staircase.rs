//! Whole staircases: one term for many steps, so that it costs little and its steps support each other.
//!
//! A staircase is so flexible (a thousand pairs of period and phase) that it also serves as a bad smoother. It is therefore
//! offered only after the free terms, must win by a margin, must go up, and its steps must agree with one another.

use super::descent::descend;
use crate::detect::model::candidates::Term;
use crate::detect::model::fit::{FREE, Model};
use crate::detect::model::moves::shortest;

/// Steps of more standard errors than this cannot be due to another term.
pub(super) const BEYOND_DOUBT: f64 = 12.0;
/// Units of description length by which a staircase must beat free steps.
const MARGIN: f64 = 10.0;
/// Standard errors that its height must reach.
const LEAST_Z: f64 = 5.0;
/// Standard errors by which a step may deviate from the common height.
const DISAGREE: f64 = 3.5;

/// A better model than `best` with a staircase.
pub(crate) fn better<'a, 'b>(best: &Model<'a, 'b>) -> Option<Model<'a, 'b>> {
    let offered = best.problem.with_staircases();
    let starts = [Vec::new(), best.terms.clone(), certain_steps(best)];
    let found = shortest(starts.into_iter().map(|start| descend(Model::new(&offered, &start), 0..0)))?;
    (found.length() + MARGIN < best.length() && steps_agree(&found)).then(|| Model::new(best.problem, &found.terms))
}

/// The steps of `model` that no other term mimics. Without a staircase among the terms, bends and disturbed points
/// replace its smaller steps, and single exchanges do not lead from them to the staircase.
fn certain_steps(model: &Model) -> Vec<usize> {
    let is_certain = |(place, j): &(usize, &usize)| {
        model.problem.candidates.term(**j).step().is_some() && model.certainty(*place) > BEYOND_DOUBT
    };
    model.terms.iter().enumerate().filter(is_certain).map(|(_, &j)| j).collect()
}

/// Whether the steps of the model's staircase agree: each in turn gets its own height. A step that deviates from the
/// common height by more than half of it, and significantly, disagrees, and so does one that already has a separate
/// step.
fn steps_agree(model: &Model) -> bool {
    let candidates = model.problem.candidates;
    let spread = model.dispersion().sqrt();
    let coefficients = model.coefficients();
    model.terms.iter().enumerate().all(|(place, &j)| {
        let Term::Staircase(s) = candidates.term(j) else { return true };
        let (along, error) = model.along(place);
        let height = coefficients[place + FREE];
        // A point right beside the step that takes it back: the step is one further on.
        let is_moved = |k: usize| {
            let takes_back = |(term, off): (Term, f64)| match term {
                Term::Off { at, .. } if at == k + 1 => (off + height).abs() < 0.5 * height.abs(),
                Term::Off { at, length } if at + length == k + 1 => (off - height).abs() < 0.5 * height.abs(),
                _ => false,
            };
            model.sized().any(takes_back)
        };
        let departs = |k: &usize| {
            if is_moved(*k) {
                return true;
            }
            let step = candidates.index(Term::Step(*k));
            let there = model.terms.iter().position(|j| *j == step);
            let (extra, own) = match there {
                Some(place) => {
                    let (along, error) = model.along(place);
                    (along * error, error)
                }
                None => model.addition(step).unwrap_or((0.0, f64::INFINITY)),
            };
            let was_chosen = there.is_some() && !model.keeps(Term::Step(*k));
            was_chosen || extra.abs() > (0.5 * (along * error).abs()).max(DISAGREE * own * spread)
        };
        let steps = &candidates.staircases[s].steps;
        let departing = steps.iter().filter(|k| departs(k)).count();
        along.abs() > LEAST_Z * spread && departing * 8 <= steps.len()
    })
}

/// The rise of the staircases of `model` after position `k`.
pub(crate) fn height(model: &Model, k: usize) -> f64 {
    let rise = |(term, height): (Term, f64)| match term {
        Term::Staircase(s) => {
            let steps = model.problem.candidates.staircases[s].steps.iter().filter(|step| **step == k).count();
            steps as f64 * height
        }
        _ => 0.0,
    };
    model.sized().map(rise).sum()
}
