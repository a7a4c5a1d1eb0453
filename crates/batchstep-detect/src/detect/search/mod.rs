//! The search for the shortest description: from several starts, the best single change is made until none helps.

use super::model::candidates::Term;
use super::model::fit::Model;
use super::model::moves::shortest;
use super::model::problem::Problem;
use descent::descend;

pub(super) mod cliffs;
pub(super) mod descent;
mod doubt;
pub(super) mod levels;
mod ramps;
pub(super) mod segment;
pub(super) mod staircase;

/// The best model found for `y`.
///
/// Starts, each with the cliffs and the spikes: the straight line, and exact segmentations at a range of penalties, with and without a change of slope at each step.
/// Staircases are offered in a second round only, and must win clearly (see [`staircase`]). Then each doubtful step is left out experimentally
/// ([`doubt`]), and each ramp is tried as a step ([`ramps`]). Cost: each change O(m (n + D)) with m terms and D candidates; some ten to fifty changes.
pub(crate) fn search<'a, 'b>(problem: &'a Problem<'b>, y: &[f64]) -> Model<'a, 'b> {
    let spikes = problem.spikes.iter().map(|&at| problem.candidates.index(Term::Off { at, length: 1 }));
    let mut starts = vec![problem.kept.clone()];
    for cuts in segment::starts(problem, y) {
        let lines = opening(problem, &cuts);
        let steps = lines.iter().copied().filter(|j| problem.candidates.term(*j).step().is_some()).collect();
        starts.extend([lines, steps]);
    }
    starts.iter_mut().for_each(|start| start.extend(spikes.clone()));
    let rivals = starts.iter().map(|start| descend(Model::new(problem, start), 0..0));
    let best = shortest(rivals).unwrap_or_else(|| Model::new(problem, &[]));
    let best = staircase::better(&best).unwrap_or(best);
    ramps::as_steps(doubt::without_doubtful_steps(best))
}

/// The best model found from `start`, which was the best in a slightly different problem.
pub(crate) fn anew<'a, 'b>(start: Model<'a, 'b>) -> Model<'a, 'b> {
    ramps::as_steps(doubt::without_doubtful_steps(descend(start, 0..0)))
}

/// The cliffs, and the terms that are equivalent to separate lines between `cuts`: a step and a change of slope at each.
fn opening(problem: &Problem, cuts: &[usize]) -> Vec<usize> {
    let candidates = problem.candidates;
    let lines = cuts.iter().flat_map(|&cut| [Term::Step(cut), Term::Hinge(cut + 1)]);
    let lines = lines.map(|term| candidates.index(term)).filter(|&j| candidates.allowed(j));
    let mut terms = problem.kept.clone();
    terms.extend(lines.filter(|j| !problem.kept.contains(j)));
    terms
}
