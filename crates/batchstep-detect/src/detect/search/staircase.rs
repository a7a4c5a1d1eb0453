//! Whole staircases: one term for many steps, so that it costs little and its steps support each other.
//!
//! A staircase is so flexible (a thousand pairs of period and phase) that it also serves as a bad smoother. It is therefore
//! offered only after the free terms, must win by a margin, must go up, and its steps must agree with one another.

use super::descent::Visited;
use crate::detect::model::boundary::Boundary;
use crate::detect::model::candidates::Term;
use crate::detect::model::fit::{FREE, Model};
use crate::detect::model::moves::{LEAST_GAIN, shortest};
use crate::stats::quantile::median;

/// Steps of more standard errors than this cannot be due to another term: they are not removed experimentally, unless a
/// bend touches them.
pub(super) const BEYOND_DOUBT: f64 = 12.0;
/// Units of description length by which a staircase must beat free steps.
const MARGIN: f64 = 10.0;
/// Standard errors that its height must reach.
const LEAST_Z: f64 = 5.0;
/// Standard errors by which a step may deviate from the common height.
const DISAGREE: f64 = 3.5;
/// Standard errors by which a step must stay below half of the height to count as missing.
const MISSING: f64 = 1.0;
/// The ratio of the segments' slope to the steps' height up to which segments of period 2 count as flat: for single
/// values, and for repeated ones. Single values often zigzag, and then a slope of half the zigzag may be chance.
const FLAT: [f64; 2] = [0.05, 0.3];
/// How far this ratio may be below zero.
const FALLING: f64 = -0.05;

/// A better model than `best` with a staircase, or with free steps in place of one.
///
/// Steps that agree are one term. Steps of unequal heights are separate steps, but too many at once for single changes
/// to find them: the places of the best staircase are one more start.
pub(crate) fn better<'a, 'b>(best: &Model<'a, 'b>, visited: &mut Visited) -> Option<Model<'a, 'b>> {
    let offered = best.problem.with_staircases();
    let mut visited_with_staircases = Visited::default();
    let starts = [Vec::new(), best.terms.clone(), certain_steps(best)];
    let found =
        shortest(starts.into_iter().filter_map(|start| visited_with_staircases.descend(Model::new(&offered, &start))))?;
    if found.length() + MARGIN < best.length() && steps_agree(&found) {
        return Some(Model::new(best.problem, &found.terms));
    }
    let free = visited.descend(Model::new(best.problem, &with_free_steps(&found)?))?;
    (free.length() < best.length() - LEAST_GAIN).then_some(free)
}

/// The steps of `model` that no other term mimics. Without a staircase among the terms, bends and disturbed points
/// replace its smaller steps, and single exchanges do not lead from them to the staircase.
fn certain_steps(model: &Model) -> Vec<usize> {
    let enough = BEYOND_DOUBT * model.dispersion().sqrt();
    let is_certain = |(place, j): &(usize, &usize)| {
        matches!(model.problem.candidates.term(**j), Term::Step(_)) && model.direction(*place).1.abs() > enough
    };
    model.terms.iter().enumerate().filter(is_certain).map(|(_, &j)| j).collect()
}

/// The terms of `model` with free steps in place of its staircase.
fn with_free_steps(model: &Model) -> Option<Vec<usize>> {
    let candidates = model.problem.candidates;
    let staircase = model.terms.iter().find_map(|&j| match candidates.term(j) {
        Term::Staircase(s) => Some(&candidates.staircases[s]),
        _ => None,
    })?;
    let steps = staircase.steps.iter().map(|&k| candidates.index(Term::Step(k))).filter(|&j| candidates.allowed(j));
    let others = model.terms.iter().copied().filter(|&j| !candidates.staircase_range().contains(&j));
    let mut terms: Vec<usize> = steps.chain(others).collect();
    let mut seen = std::collections::HashSet::new();
    terms.retain(|j| seen.insert(*j));
    Some(terms)
}

/// Whether the steps of the model's staircase agree: each in turn gets its own height. A step that deviates from the
/// common height by more than half of it, and significantly, disagrees, and so does one that already has a separate
/// step.
fn steps_agree(model: &Model) -> bool {
    let candidates = model.problem.candidates;
    let spread = model.dispersion().sqrt();
    model.terms.iter().enumerate().all(|(place, &j)| {
        let Term::Staircase(s) = candidates.term(j) else { return true };
        let (_, along, error) = model.direction(place);
        let departs = |k: &usize| {
            let step = candidates.index(Term::Step(*k));
            let there = model.terms.iter().position(|j| *j == step);
            let (extra, own) = match there {
                Some(place) => {
                    let (_, along, error) = model.direction(place);
                    (along * error, error)
                }
                None => model.addition(step).unwrap_or((0.0, f64::INFINITY)),
            };
            let was_chosen = there.is_some() && !model.problem.kept.contains(&step);
            was_chosen || extra.abs() > (0.5 * (along * error).abs()).max(DISAGREE * own * spread)
        };
        let steps = &candidates.staircases[s].steps;
        let departing = steps.iter().filter(|k| departs(k)).count();
        along.abs() > LEAST_Z * spread && departing * 8 <= steps.len()
    })
}

/// Whether the staircase's step at `found`, with its own height, is clearly less than half of the common height.
pub(crate) fn lacks(model: &Model, found: &Boundary) -> bool {
    let step = model.problem.candidates.index(Term::Step(found.k));
    let (extra, error) = model.addition(step).unwrap_or((0.0, f64::INFINITY));
    extra * found.size < 0.0 && extra.abs() > 0.5 * found.size.abs() + MISSING * error * model.spread()
}

/// The positions after which the staircases of `model` rise.
pub(crate) fn places(model: &Model) -> Vec<usize> {
    let candidates = model.problem.candidates;
    let steps = model.terms.iter().filter_map(|&j| match candidates.term(j) {
        Term::Staircase(s) => Some(candidates.staircases[s].steps.as_slice()),
        _ => None,
    });
    steps.flatten().copied().collect()
}

/// The rise of the staircases of `model` after position `k`.
pub(crate) fn height(model: &Model, k: usize) -> f64 {
    let coefficients = model.coefficients();
    let rise = |(place, j): (usize, &usize)| match model.problem.candidates.term(*j) {
        Term::Staircase(s) => {
            let steps = model.problem.candidates.staircases[s].steps.iter().filter(|step| **step == k).count();
            steps as f64 * coefficients[place + FREE]
        }
        _ => 0.0,
    };
    model.terms.iter().enumerate().map(rise).sum()
}

/// The same model with its even/odd term interpreted as a staircase of period 2, if it is one.
///
/// With slope s per unit of x and every second x higher by a, a curve is at once a line with an alternation of height a and a
/// staircase with steps of 2a and segments of slope s - a. It is interpreted as a staircase if the segments are flat
/// compared with the steps.
pub(crate) fn from_alternation<'a, 'b>(
    model: &Model<'a, 'b>,
    x: &[f64],
    y: &[f64],
    repeated: bool,
) -> Option<Model<'a, 'b>> {
    let candidates = model.problem.candidates;
    let is_even = |j: &usize| matches!(candidates.term(*j), Term::Shape(s) if Some(s) == candidates.even);
    let place = model.terms.iter().position(is_even)?;
    let height = model.coefficients()[place + FREE];
    if model.terms.iter().filter(|j| candidates.alternates(**j)).count() > 1 {
        return None;
    }
    let mut slopes: Vec<f64> = x.windows(3).zip(y.windows(3)).map(|(x, y)| (y[2] - y[0]) / (x[2] - x[0])).collect();
    let slope = (median(&mut slopes) - height.abs()) / (2.0 * height.abs());
    if !(FALLING..=FLAT[usize::from(repeated)]).contains(&slope) {
        return None;
    }
    let unit = x.windows(2).map(|x| x[1] - x[0]).fold(f64::INFINITY, f64::min);
    let phase = if height < 0.0 { 0.0 } else { unit };
    let staircase = candidates.staircases.iter().position(|s| s.period == 2.0 * unit && s.phase == phase)?;
    let mut terms = model.terms.clone();
    terms[place] = candidates.index(Term::Staircase(staircase));
    Some(Model::new(model.problem, &terms))
}
