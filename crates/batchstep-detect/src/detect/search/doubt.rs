//! Leaves out each doubtful step experimentally: a search by single changes can stop at a step that stands for a bend or a curve.

use super::descent::descend;
use super::staircase::BEYOND_DOUBT;
use crate::detect::model::candidates::{EDGE, Term};
use crate::detect::model::fit::Model;
use crate::detect::model::moves::{LEAST_GAIN, shortest};

/// The most steps that are left out one after another.
const MOST_ROUNDS: usize = 4;

/// `model`, or a shorter description without some of its steps.
pub(super) fn without_doubtful_steps<'a, 'b>(mut model: Model<'a, 'b>) -> Model<'a, 'b> {
    for _ in 0..MOST_ROUNDS {
        match shortest((0..model.terms.len()).filter_map(|place| without_step(&model, place))) {
            Some(found) if found.length() < model.length() - LEAST_GAIN => model = found,
            _ => break,
        }
    }
    model
}

/// The best description found without the step at `place`, and without another step near it. `None` for a step that is beyond doubt: it has more than
/// [`BEYOND_DOUBT`] standard errors, and no bend touches it.
fn without_step<'a, 'b>(model: &Model<'a, 'b>, place: usize) -> Option<Model<'a, 'b>> {
    let candidates = model.problem.candidates;
    let Term::Step(k) = candidates.term(model.terms[place]) else { return None };
    let touches_a_bend = model.has(Term::Hinge(k + 1));
    if model.keeps(Term::Step(k)) || model.certainty(place) > BEYOND_DOUBT && !touches_a_bend {
        return None;
    }
    Some(descend(model.without(&[place]), k.saturating_sub(EDGE)..k + EDGE + 1))
}
