//! Ramps: two bends a few points apart are a step with points on the way.

use crate::detect::model::candidates::Term;
use crate::detect::model::fit::Model;
use crate::detect::model::moves::shortest;

/// The longest distance of two bends that count as a change of level: farther apart they are two bends.
const RAMP: usize = 3;
/// The share of the larger bend that may remain of both together.
const TAKEN_BACK: f64 = 0.5;

/// The model with a step, and bad points in between, in place of two bends close together where the second cancels most
/// of the first.
pub(super) fn as_steps<'a, 'b>(model: Model<'a, 'b>) -> Model<'a, 'b> {
    let candidates = model.problem.candidates;
    let hinges = model.at(Term::hinge);
    let mut best = model;
    for pair in hinges.windows(2) {
        let [(a, first), (b, second)] = [pair[0], pair[1]];
        if b - a > RAMP || (first + second).abs() > TAKEN_BACK * first.abs().max(second.abs()) {
            continue;
        }
        let gone = [a, b].map(|k| candidates.index(Term::Hinge(k)));
        let kept: Vec<usize> = best.terms.iter().copied().filter(|j| !gone.contains(j)).collect();
        let between = (a + 1..b).map(|at| candidates.index(Term::Off { at, length: 1 }));
        let step = candidates.index(Term::Step((a + b) / 2));
        let with: Vec<usize> = kept.iter().copied().chain([step]).chain(between).collect();
        let bent: Vec<usize> = with.iter().copied().chain([gone[1]]).collect();
        let rivals = [Model::new(best.problem, &with), Model::new(best.problem, &bent)];
        best = shortest(rivals).filter(|_| candidates.allowed(step)).unwrap_or(best);
    }
    best
}
