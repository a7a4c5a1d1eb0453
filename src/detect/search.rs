//! The search for the description of least length: from several starts, the best single change until none helps.

use super::dictionary::{Dictionary, Term};
use super::model::{Model, Problem};
use super::segment;

/// Least gain that a change must bring, so that rounding cannot make it circle.
const LEAST_GAIN: f64 = 1e-6;

/// Units of description length by which a staircase must beat free steps: it has a thousand rivals of its own kind.
const STAIRS_MARGIN: f64 = 10.0;

/// The best model found.
///
/// Starts: the straight line; exact segmentations at a range of penalties. Staircases are offered in a second round only, to
/// the line and to the best model without one, and must win clearly and riser by riser: a staircase is so flexible that it
/// otherwise serves as a bad smoother. Cost: each change O(m (n + D)) with m terms and D candidates.
pub(super) fn search<'a, 'b>(free: &'a Problem<'b>, stairs: &'a Problem<'b>, y: &[f64]) -> Model<'a, 'b> {
    let mut best = descend(Model::new(free, &[]));
    let mut seen = Vec::new();
    for cuts in segment::starts(free, y) {
        if cuts.is_empty() || seen.contains(&cuts) {
            continue;
        }
        let found = descend(Model::new(free, &opening(free.dictionary, &cuts)));
        if found.length() < best.length() {
            best = found;
        }
        seen.push(cuts);
    }
    let mut comb: Option<Model> = None;
    for start in [Vec::new(), best.terms.clone()] {
        let found = descend(Model::new(stairs, &start));
        if comb.as_ref().is_none_or(|c| found.length() < c.length()) {
            comb = Some(found);
        }
    }
    let chosen = match comb {
        Some(comb) if comb.length() + STAIRS_MARGIN < best.length() && risers_hold(&comb) => comb,
        _ => best,
    };
    retry(chosen)
}

/// Steps with a z beyond this are not put on trial: nothing mimics them.
const BEYOND_DOUBT: f64 = 12.0;

/// Puts each doubtful step on trial: the model without it, and with no step near it, may describe the data its own way; where
/// that is shorter, the step was an artefact of the path that the search took.
fn retry<'a, 'b>(mut model: Model<'a, 'b>) -> Model<'a, 'b> {
    for _ in 0..4 {
        let mut better: Option<Model> = None;
        for place in 0..model.terms.len() {
            let Some(rival) = rival(&model, place) else { continue };
            if rival.length() < better.as_ref().unwrap_or(&model).length() - LEAST_GAIN {
                better = Some(rival);
            }
        }
        match better {
            Some(found) => model = found,
            None => break,
        }
    }
    model
}

/// The best description found without the step at `place` of the model, if that is a step and open to doubt.
pub(super) fn rival<'a, 'b>(model: &Model<'a, 'b>, place: usize) -> Option<Model<'a, 'b>> {
    let Term::Step(k) = model.problem.dictionary.term(model.terms[place]) else { return None };
    let (_, along, _) = model.direction(place);
    if along.abs() > BEYOND_DOUBT * model.dispersion().sqrt() {
        return None;
    }
    let mut terms = model.terms.clone();
    terms.remove(place);
    let barred = Problem { barred: Some(k), stairs: false, ..model.problem.clone() };
    let found = descend(Model::new(&barred, &terms));
    Some(Model::new(model.problem, &found.terms))
}

/// Whether the risers of the model's staircase agree with each other: each is given a height of its own, and the departures
/// from the common height must not exceed chance.
fn risers_hold(model: &Model) -> bool {
    let dictionary = model.problem.dictionary;
    for (place, &j) in model.terms.iter().enumerate() {
        let Term::Stairs(s) = dictionary.term(j) else { continue };
        let (_, along, error) = model.direction(place);
        if along * along < 25.0 * model.dispersion() {
            return false;
        }
        let height = along * error;
        let risers = &dictionary.stairs[s].risers;
        let (mut misfit, mut count, mut own) = (0.0, 0.0, 0);
        for &k in risers {
            if model.terms.contains(&dictionary.index(Term::Step(k))) {
                own += 1;
                continue;
            }
            let Some((extra, error)) = model.addition(dictionary.index(Term::Step(k))) else { continue };
            misfit += (extra / error).powi(2) / model.dispersion();
            count += 1.0;
            let _ = height;
        }
        if own * 4 > risers.len() || crate::stats::distribution::chi2_upper(misfit, f64::max(count, 1.0)) < 1e-4 {
            return false;
        }
    }
    true
}

/// Best single change until none helps.
pub(super) fn descend<'a, 'b>(mut model: Model<'a, 'b>) -> Model<'a, 'b> {
    for _ in 0..200 {
        let change = model.best_move();
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
