//! The search for the shortest description: from several starts, the best single change is made until none helps.

use super::model::candidates::Term;
use super::model::fit::Model;
use super::model::moves::{Rules, shortest};
use super::model::problem::Problem;
pub(super) mod cliffs;
pub(super) mod descent;
pub(super) mod levels;
mod refine;
pub(super) mod segment;
pub(super) mod staircase;

/// The best model found for `y`, and whether [`refine`] left it as it was.
///
/// Starts, each with the cliffs: the straight line; the best continuous curve; exact segmentations at a range of penalties, with and without a change of
/// slope at each step. Staircases are offered
/// in a second round only, and must win clearly (see [`staircase`]). Then doubtful parts are replaced experimentally
/// ([`refine`]). Cost: each change O(m (n + D)) with m terms and D candidates; some ten to fifty changes.
pub(crate) fn search<'a, 'b>(problem: &'a Problem<'b>, y: &[f64]) -> (Model<'a, 'b>, bool) {
    let mut visited = descent::Visited::default();
    let mut seen: Vec<Vec<usize>> = Vec::new();
    let mut rivals = Vec::new();
    rivals.extend(visited.descend(Model::new(problem, &problem.kept)));
    let continuous = Rules { continuous: true, ..Rules::default() };
    rivals.extend(visited.descend(descent::descend_within(Model::new(problem, &problem.kept), continuous)));
    for cuts in segment::starts(problem, y) {
        if !seen.contains(&cuts) {
            let opening = opening(problem, &cuts);
            let is_step = |j: &usize| matches!(problem.candidates.term(*j), Term::Step(_));
            let steps: Vec<usize> = opening.iter().copied().filter(is_step).collect();
            rivals.extend(visited.descend(Model::new(problem, &opening)));
            rivals.extend(visited.descend(Model::new(problem, &steps)));
            seen.push(cuts);
        }
    }
    let mut best = shortest(rivals).unwrap_or_else(|| Model::new(problem, &[]));
    if let Some(better) = staircase::better(&best, &mut visited) {
        best = better;
    }
    let terms = best.terms.clone();
    let refined = refine::refine(best, &mut visited);
    let settled = refined.terms == terms;
    (refined, settled)
}

/// The best model found from `start`, which was the best in a slightly different problem.
pub(crate) fn anew<'a, 'b>(start: Model<'a, 'b>) -> Model<'a, 'b> {
    let mut visited = descent::Visited::default();
    let model = visited.descend(start.clone()).unwrap_or(start);
    refine::refine(model, &mut visited)
}

/// The terms that are equivalent to separate lines between `cuts`: a step and a change of slope at each.
fn opening(problem: &Problem, cuts: &[usize]) -> Vec<usize> {
    let candidates = problem.candidates;
    let lines = cuts.iter().flat_map(|&cut| [Term::Step(cut), Term::Hinge(cut + 1)]);
    let lines = lines.map(|term| candidates.index(term)).filter(|&j| candidates.allowed(j));
    let mut terms = problem.kept.clone();
    terms.extend(lines.filter(|j| !problem.kept.contains(j)));
    terms
}
