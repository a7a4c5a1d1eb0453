//! Replaces parts of a description that other terms may describe more briefly.
//!
//! A search by single changes can stop where two changes at once would help. Three such traps are common, and an escape
//! from each is tried: a step in place of a bend or a curve; two bends close together, or a bend and a bump, in place
//! of a step; and two neighbouring steps in place of one step and a bad point.

use super::descent::{Visited, descend_within};
use super::staircase::{self, BEYOND_DOUBT};
use crate::detect::model::candidates::Term;
use crate::detect::model::fit::{FREE, Model};
use crate::detect::model::moves::{LEAST_GAIN, Move, Rules, shortest};

/// The number of positions within which two terms may replace one step.
const CLOSE: usize = 5;

/// The model after alternatives to its doubtful parts were tried.
pub(crate) fn refine<'a, 'b>(mut model: Model<'a, 'b>, visited: &mut Visited) -> Model<'a, 'b> {
    for _ in 0..4 {
        let steps = (0..model.terms.len()).filter_map(|place| without_step(&model, place));
        let mut rivals: Vec<Model> = steps.collect();
        rivals.extend((0..model.terms.len()).filter_map(|place| without_term(&model, place, visited)));
        rivals.extend(merged(&model, visited));
        match shortest(rivals) {
            Some(found) if found.length() < model.length() - LEAST_GAIN => model = found,
            _ => break,
        }
    }
    tidy(model)
}

/// The best description found without the step at `place`, and without another step near it.
fn without_step<'a, 'b>(model: &Model<'a, 'b>, place: usize) -> Option<Model<'a, 'b>> {
    let candidates = model.problem.candidates;
    let Term::Step(k) = candidates.term(model.terms[place]) else { return None };
    if model.problem.kept.contains(&model.terms[place]) {
        return None;
    }
    let bend = |k: usize| model.terms.contains(&candidates.index(Term::Hinge(k)));
    let (_, along, _) = model.direction(place);
    if along.abs() > BEYOND_DOUBT * model.dispersion().sqrt() && !bend(k + 1) {
        return None;
    }
    let rules = Rules { no_step_near: Some(k), ..Rules::default() };
    Some(descend_within(model.without(&[place]), rules))
}

/// The best description found from the model without the term at `place`, after the best change that does not put it back.
fn without_term<'a, 'b>(model: &Model<'a, 'b>, place: usize, visited: &mut Visited) -> Option<Model<'a, 'b>> {
    if model.problem.kept.contains(&model.terms[place]) {
        return None;
    }
    let mut bare = model.without(&[place]);
    let change = bare.best_move(Rules { without: Some(model.terms[place]), ..Rules::default() });
    if change.length > bare.length() - LEAST_GAIN {
        return None;
    }
    bare.make(change);
    visited.descend(bare)
}

/// Descriptions in which one step or one bend replaces two local terms that are close together.
fn merged<'a, 'b>(model: &Model<'a, 'b>, visited: &mut Visited) -> Vec<Model<'a, 'b>> {
    let candidates = model.problem.candidates;
    let mut local: Vec<Local> = model
        .terms
        .iter()
        .filter_map(|&j| match candidates.term(j) {
            _ if model.problem.kept.contains(&j) => None,
            Term::Step(k) | Term::Hinge(k) | Term::Off { at: k, .. } => Some(Local { k, j }),
            _ => None,
        })
        .collect();
    local.sort_unstable();
    let close = local.windows(2).filter(|pair| pair[1].k - pair[0].k <= CLOSE);
    close.filter_map(|pair| visited.descend(in_place_of(model, pair[0], pair[1])?)).collect()
}

/// A term at one position.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Local {
    k: usize,
    /// Its number among the candidates.
    j: usize,
}

/// The start with one term in place of `a` and `b`: a step if one of them is a bend or a bad point, or a bend if a step
/// is next to one.
fn in_place_of<'a, 'b>(model: &Model<'a, 'b>, a: Local, b: Local) -> Option<Model<'a, 'b>> {
    let candidates = model.problem.candidates;
    let one: fn(usize) -> Term = match (candidates.term(a.j), candidates.term(b.j)) {
        (Term::Step(_), Term::Step(_)) => return None,
        (Term::Step(_), Term::Hinge(_)) | (Term::Hinge(_), Term::Step(_)) => Term::Hinge,
        _ => Term::Step,
    };
    let places: Vec<usize> = (0..model.terms.len()).filter(|&p| [a.j, b.j].contains(&model.terms[p])).collect();
    let mut bare = model.without(&places);
    let (best, _) = (a.k.saturating_sub(2)..=b.k + 2)
        .map(|k| candidates.index(one(k)))
        .filter(|&j| candidates.allowed(j))
        .filter_map(|j| bare.addition(j).map(|(size, error)| (j, (size / error).abs())))
        .max_by(|x, y| x.1.total_cmp(&y.1))?;
    bare.make(Move { remove: None, add: Some(best), length: f64::NAN });
    Some(bare)
}

/// Makes the description of nearby changes unique, if several descriptions span the same fits.
///
/// Two steps with one point between them are the larger one and a bad point, since that point may belong to either side.
fn tidy<'a, 'b>(model: Model<'a, 'b>) -> Model<'a, 'b> {
    let candidates = model.problem.candidates;
    let coefficients = model.coefficients();
    let own = |k: usize| model.terms.iter().position(|j| *j == k).map_or(0.0, |place| coefficients[place + FREE]);
    let size = |k: usize| (own(k) + staircase::height(&model, k)).abs();
    let mut steps = staircase::places(&model);
    steps.extend(model.terms.iter().copied().filter(|&j| j < candidates.n));
    steps.sort_unstable();
    let mut terms = model.terms.clone();
    for pair in steps.windows(2).filter(|pair| pair[1] - pair[0] == 1) {
        let smaller = if size(pair[0]) < size(pair[1]) { pair[0] } else { pair[1] };
        let larger = pair[0] + pair[1] - smaller;
        let is_there = |k: usize| terms.contains(&k) || staircase::height(&model, k) != 0.0;
        let between = candidates.index(Term::Off { at: pair[1], length: 1 });
        if terms.contains(&smaller) && is_there(larger) {
            // A staircase's step that absorbs the smaller one gets its own height.
            terms.retain(|j| *j != smaller);
            let missing = [between, larger].into_iter().filter(|j| !terms.contains(j) && candidates.allowed(*j));
            terms.extend(missing.collect::<Vec<_>>());
        }
    }
    let model = if terms == model.terms { model } else { Model::new(model.problem, &terms) };
    steps_for_ramps(model)
}

/// The longest distance of two bends that count as a change of level: farther apart they are two bends.
const RAMP: usize = 3;
/// The share of the larger bend that may remain of both together.
const TAKEN_BACK: f64 = 0.5;

/// The model with a step, and bad points in between, in place of two bends close together where the second cancels most
/// of the first.
fn steps_for_ramps<'a, 'b>(model: Model<'a, 'b>) -> Model<'a, 'b> {
    let candidates = model.problem.candidates;
    let coefficients = model.coefficients();
    let mut hinges: Vec<(usize, f64)> = model
        .terms
        .iter()
        .zip(&coefficients[FREE..])
        .filter_map(|(&j, &slope)| match candidates.term(j) {
            Term::Hinge(k) => Some((k, slope)),
            _ => None,
        })
        .collect();
    hinges.sort_by_key(|(k, _)| *k);
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
