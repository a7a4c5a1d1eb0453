//! The search for the description of least length: from several starts, the best single change until none helps.

use std::collections::HashSet;

use super::dictionary::{Dictionary, MANY, Term};
use super::model::{LEAST_GAIN, Model, Rules};
use super::problem::Problem;
use super::{refine, segment, stairs};

/// More changes than any search needs: some ten to fifty are usual.
const MOST_CHANGES: usize = 400;

/// The best model found for `y`.
///
/// Starts: the straight line; the best continuous curve; exact segmentations at a range of penalties. Staircases are offered in a second round only, and
/// must win clearly (see [`stairs`]). Then the doubtful parts are put on trial ([`refine`]).
/// Cost: each change O(m (n + D)) with m terms and D candidates; some ten to fifty changes.
pub(super) fn search<'a, 'b>(problem: &'a Problem<'b>, y: &[f64]) -> Model<'a, 'b> {
    let mut trodden = HashSet::new();
    let mut best = descend(Model::new(problem, &[]));
    let mut rivals = Vec::new();
    // In a long series the bends that make up for many steps are many and dear, and the segmentations find the steps.
    if problem.dictionary.n <= MANY {
        let continuous = Rules { continuous: true, ..Rules::default() };
        rivals.extend(descend_untrodden(descend_within(Model::new(problem, &[]), continuous), &mut trodden));
    }
    let mut seen: Vec<Vec<usize>> = Vec::new();
    for cuts in segment::starts(problem, y) {
        if cuts.is_empty() || seen.contains(&cuts) {
            continue;
        }
        rivals.extend(descend_untrodden(Model::new(problem, &opening(problem.dictionary, &cuts)), &mut trodden));
        seen.push(cuts);
    }
    for rival in rivals {
        if rival.length() < best.length() {
            best = rival;
        }
    }
    if let Some(comb) = stairs::better(&best) {
        best = comb;
    }
    refine::refine(best)
}

/// As [`descend`], but `None` where the way runs into one that was trodden before: it ends where that one did.
fn descend_untrodden<'a, 'b>(mut model: Model<'a, 'b>, trodden: &mut HashSet<Vec<usize>>) -> Option<Model<'a, 'b>> {
    for _ in 0..MOST_CHANGES {
        let mut place = model.terms.clone();
        place.sort_unstable();
        if !trodden.insert(place) {
            return None;
        }
        match step(&model, Rules::default()) {
            Some(next) => model = next,
            None => break,
        }
    }
    Some(model)
}

/// Best single change until none helps.
pub(super) fn descend<'a, 'b>(model: Model<'a, 'b>) -> Model<'a, 'b> {
    descend_within(model, Rules::default())
}

/// Best single change that `rules` allow until none helps.
pub(super) fn descend_within<'a, 'b>(mut model: Model<'a, 'b>, rules: Rules) -> Model<'a, 'b> {
    for _ in 0..MOST_CHANGES {
        let Some(next) = step(&model, rules) else { break };
        model = next;
    }
    model
}

/// The model after the best single change that `rules` allow; `None` where none helps.
fn step<'a, 'b>(model: &Model<'a, 'b>, rules: Rules) -> Option<Model<'a, 'b>> {
    let change = model.best_move(rules);
    let enough = model.length() - LEAST_GAIN;
    if change.length > enough {
        return None;
    }
    Some(model.after(change)).filter(|next| next.length() <= enough)
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
