//! The search for the description of least length: from several starts, the best single change until none helps.

use super::dictionary::{Dictionary, MANY, Term};
use super::model::{LEAST_GAIN, Model, Rules};
use super::problem::Problem;
use super::{refine, segment, stairs};

/// The best model found for `y`.
///
/// Starts: the straight line; the best continuous curve; exact segmentations at a range of penalties. Staircases are offered in a second round only, and
/// must win clearly (see [`stairs`]). Then the doubtful parts are put on trial ([`refine`]).
/// Cost: each change O(m (n + D)) with m terms and D candidates; some ten to fifty changes.
pub(super) fn search<'a, 'b>(problem: &'a Problem<'b>, y: &[f64]) -> Model<'a, 'b> {
    let mut best = descend(Model::new(problem, &[]));
    // In a long series the bends that make up for many steps are many and dear, and the segmentations find the steps.
    if problem.dictionary.n <= MANY {
        let continuous = Rules { continuous: true, ..Rules::default() };
        let bent = descend(descend_within(Model::new(problem, &[]), continuous));
        if bent.length() < best.length() {
            best = bent;
        }
    }
    let mut seen: Vec<Vec<usize>> = Vec::new();
    for cuts in segment::starts(problem, y) {
        if cuts.is_empty() || seen.contains(&cuts) {
            continue;
        }
        let found = descend(Model::new(problem, &opening(problem.dictionary, &cuts)));
        if found.length() < best.length() {
            best = found;
        }
        seen.push(cuts);
    }
    if let Some(comb) = stairs::better(&best) {
        best = comb;
    }
    refine::refine(best)
}

/// Best single change until none helps.
pub(super) fn descend<'a, 'b>(model: Model<'a, 'b>) -> Model<'a, 'b> {
    descend_within(model, Rules::default())
}

/// Best single change that `rules` allow until none helps.
pub(super) fn descend_within<'a, 'b>(mut model: Model<'a, 'b>, rules: Rules) -> Model<'a, 'b> {
    for _ in 0..200 {
        let change = model.best_move(rules);
        if change.length > model.length() - LEAST_GAIN {
            break;
        }
        let next = model.after(change);
        if next.length() > model.length() - LEAST_GAIN {
            break;
        }
        model = next;
    }
    model
}

/// The terms that say the same as separate lines between `cuts`: a step and a change of slope at each.
fn opening(dictionary: &Dictionary, cuts: &[usize]) -> Vec<usize> {
    let mut terms = Vec::new();
    for &cut in cuts {
        for term in [Term::Step(cut), Term::Hinge(cut + 1)] {
            let j = dictionary.index(term);
            if dictionary.allowed(j) {
                terms.push(j);
            }
        }
    }
    terms
}
