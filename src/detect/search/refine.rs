//! Parts of a description that other terms may describe more briefly.
//!
//! A search by single changes can stop where two changes at once would help. Three such traps are common, and each is tried:
//! a step that stands for a bend or a curve; two bends close together, or a bend and a bump, that stand for a step; and two
//! neighbouring steps that stand for one step and a bad point.

use super::descent::{Visited, descend_within};
use crate::detect::model::candidates::{EDGE, Term};
use crate::detect::model::fit::Model;
use crate::detect::model::moves::{LEAST_GAIN, Move, Rules};

/// Steps of more standard errors than this are not removed on trial, unless a bend touches them: no other term mimics them.
const BEYOND_DOUBT: f64 = 12.0;
/// Positions within which two terms may stand for one step.
const CLOSE: usize = 5;

/// The model after its doubtful parts were tried otherwise.
pub(crate) fn refine<'a, 'b>(mut model: Model<'a, 'b>, visited: &mut Visited) -> Model<'a, 'b> {
    for _ in 0..4 {
        let rivals =
            (0..model.terms.len()).filter_map(|place| without_step(&model, place)).chain(merged(&model, visited));
        let best = rivals.min_by(|a, b| a.length().total_cmp(&b.length()));
        match best {
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
    let bend = |k: usize| model.terms.contains(&candidates.index(Term::Hinge(k)));
    let (_, along, _) = model.direction(place);
    if along.abs() > BEYOND_DOUBT * model.dispersion().sqrt() && !bend(k + 1) {
        return None;
    }
    let rules = Rules { no_step_near: Some(k), ..Rules::default() };
    Some(descend_within(model.without(&[place]), rules))
}

/// Descriptions in which one step or one bend takes the place of two local terms that stand close together.
fn merged<'a, 'b>(model: &Model<'a, 'b>, visited: &mut Visited) -> Vec<Model<'a, 'b>> {
    let candidates = model.problem.candidates;
    let mut local: Vec<Local> = model
        .terms
        .iter()
        .filter_map(|&j| match candidates.term(j) {
            Term::Step(k) | Term::Hinge(k) | Term::Bump(k) | Term::Spike(k) => Some(Local { k, j }),
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

/// The start with one term in place of `a` and `b`: a step where a bend or a bad
/// point takes part, a bend where a step stands next to one.
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

/// Makes the description of neighbouring steps unique: the larger stays, and the other becomes the bad point or the bump
/// between them, which spans the same fits. Steps of one sign with similar heights stay: they may be a short segment.
fn tidy<'a, 'b>(model: Model<'a, 'b>) -> Model<'a, 'b> {
    let candidates = model.problem.candidates;
    let mut steps: Vec<(usize, usize)> = model
        .terms
        .iter()
        .enumerate()
        .filter_map(|(place, &j)| match candidates.term(j) {
            Term::Step(k) => Some((k, place)),
            _ => None,
        })
        .collect();
    steps.sort_unstable();
    let size = |place: usize| {
        let (_, along, error) = model.direction(place);
        along * error
    };
    let mut terms = model.terms.clone();
    for pair in steps.windows(2) {
        let ((k, a), (l, b)) = (pair[0], pair[1]);
        let smaller = if size(a).abs() < size(b).abs() { a } else { b };
        let between = match l - k {
            1 => Term::Spike(l),
            2 if size(a) * size(b) < 0.0 => Term::Bump(k + 1),
            _ => continue,
        };
        if l - k < EDGE && terms[smaller] == model.terms[smaller] {
            terms[smaller] = candidates.index(between);
        }
    }
    if terms == model.terms { model } else { Model::new(model.problem, &terms) }
}
