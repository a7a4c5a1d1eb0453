//! The search for the description of least length: from several starts, the best single change until none helps.

use std::collections::HashSet;

use super::dictionary::Term;
use super::model::{LEAST_GAIN, Model, Rules};
use super::problem::Problem;
use super::{refine, segment, stairs};

/// More changes than any search needs: some ten to fifty are usual.
const MOST_CHANGES: usize = 400;

/// The best model found for `y`, and whether second thoughts left it as it was.
///
/// Starts: the straight line; the best continuous curve; exact segmentations at a range of penalties. Staircases are offered in a second round only, and
/// must win clearly (see [`stairs`]). Then the doubtful parts are put on trial ([`refine`]).
/// Cost: each change O(m (n + D)) with m terms and D candidates; some ten to fifty changes.
pub(super) fn search<'a, 'b>(problem: &'a Problem<'b>, y: &[f64]) -> (Model<'a, 'b>, bool) {
    let mut trodden = Trodden::default();
    let mut seen: Vec<Vec<usize>> = Vec::new();
    let mut rivals = Vec::new();
    // In a long series the bends that make up for many steps are many and dear, and the segmentations find the steps.
    if !problem.is_long() {
        rivals.extend(trodden.descend(Model::new(problem, &[])));
        let continuous = Rules { continuous: true, ..Rules::default() };
        rivals.extend(trodden.descend(descend_within(Model::new(problem, &[]), continuous)));
    }
    for cuts in segment::starts(problem, y) {
        if !seen.contains(&cuts) {
            rivals.extend(trodden.descend(Model::new(problem, &opening(problem, y, &cuts))));
            seen.push(cuts);
        }
    }
    let shortest = rivals.into_iter().reduce(|best, rival| if rival.length() < best.length() { rival } else { best });
    let mut best = shortest.unwrap_or_else(|| Model::new(problem, &[]));
    if let Some(comb) = stairs::better(&best, &mut trodden) {
        best = comb;
    }
    let terms = best.terms.clone();
    let refined = refine::refine(best, &mut trodden);
    let settled = refined.terms == terms;
    (refined, settled)
}

/// The best model found from `start`, which was the best in a problem little different.
pub(super) fn anew<'a, 'b>(start: Model<'a, 'b>) -> Model<'a, 'b> {
    let mut trodden = Trodden::default();
    let model = trodden.descend(start.clone()).unwrap_or(start);
    refine::refine(model, &mut trodden)
}

/// The sets of terms that descents in one problem came through.
///
/// A descent that comes to such a set ends where the one before it did, and that end was compared already: it stops there.
#[derive(Debug, Default)]
pub(super) struct Trodden(HashSet<Vec<usize>>);

impl Trodden {
    /// Best single change until none helps; `None` where the way runs into one that was trodden before.
    pub fn descend<'a, 'b>(&mut self, mut model: Model<'a, 'b>) -> Option<Model<'a, 'b>> {
        for _ in 0..MOST_CHANGES {
            let mut place = model.terms.clone();
            place.sort_unstable();
            if !self.0.insert(place) {
                return None;
            }
            if !step(&mut model, Rules::default()) {
                break;
            }
        }
        Some(model)
    }
}

/// Best single change that `rules` allow until none helps.
pub(super) fn descend_within<'a, 'b>(mut model: Model<'a, 'b>, rules: Rules) -> Model<'a, 'b> {
    for _ in 0..MOST_CHANGES {
        if !step(&mut model, rules) {
            break;
        }
    }
    model
}

/// Makes the best single change that `rules` allow; false where none helps.
fn step(model: &mut Model, rules: Rules) -> bool {
    let change = model.best_move(rules);
    let enough = model.length() - LEAST_GAIN;
    if change.length > enough {
        return false;
    }
    let before = model.terms.clone();
    model.make(change);
    if model.length() > enough {
        // What was promised came of rounding.
        *model = Model::new(model.problem, &before);
        return false;
    }
    true
}

/// The terms that say the same as separate lines between `cuts`: a step and a change of slope at each.
///
/// In a long series the changes of slope that two lines do not show are left out from the start, as they would be one by one.
fn opening(problem: &Problem, y: &[f64], cuts: &[usize]) -> Vec<usize> {
    let dictionary = problem.dictionary;
    let bends = if problem.is_long() { segment::bends(problem, y, cuts) } else { vec![true; cuts.len()] };
    let mut terms = Vec::new();
    for (&cut, bend) in cuts.iter().zip(bends) {
        for term in [Some(Term::Step(cut)), bend.then_some(Term::Hinge(cut + 1))].into_iter().flatten() {
            let j = dictionary.index(term);
            if dictionary.allowed(j) {
                terms.push(j);
            }
        }
    }
    terms
}
