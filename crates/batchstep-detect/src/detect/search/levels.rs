//! Short levels: three or four points off the curve that agree with one another are a level with a step on each side, since what disturbs a few
//! measurements disturbs each of them differently.

use crate::detect::model::candidates::{CandidateTerms, EDGE, MOST_OFF, Term};
use crate::detect::model::fit::Model;
use crate::stats::robust;

/// How unequally a few points are disturbed, as a share of their mean distance from the curve.
const UNEQUAL: f64 = 0.2;
/// How much likelier, as a logarithm, the points must be as a level than as disturbed ones: on a curve with other jumps, or where what disturbs
/// a machine for a while does not disturb neighbours, and elsewhere.
const LIKELIER: [f64; 2] = [0.5, 5.0];
/// A curve with this many other jumps may have short levels too.
const STEPPED: usize = 3;
/// The share of the larger of two steps that may remain of both together, if the points between them are off the curve.
pub(crate) const LEFT_OVER: f64 = 1.0 / 3.0;
/// The least variance of a typical residual, as a share of that of all: rounded values may all be on the curve.
const LEAST: f64 = 0.01;

/// `model` with short levels as two steps each, and with other points off the curve as such, and how much likelier the former had to be. `in_turn`:
/// whether neighbours may have been measured one after another; `limit`: the least standard errors of a jump.
pub(crate) fn sorted<'a, 'b>(model: Model<'a, 'b>, in_turn: bool, limit: f64) -> (Model<'a, 'b>, f64) {
    let [usual, careful] = LIKELIER;
    let least = if in_turn && other_jumps(&model, limit) < STEPPED { careful } else { usual };
    (as_points(as_levels(model, least), least), least)
}

/// The steps of `model` that no neighbouring step takes back.
fn other_jumps(model: &Model, limit: f64) -> usize {
    let candidates = model.problem.candidates;
    let returning: Vec<usize> = returning(model).into_iter().flat_map(|(a, b)| [a, b]).collect();
    let steps = model.terms.iter().enumerate().map(|(place, &j)| match candidates.term(j) {
        Term::Step(k) => usize::from(!returning.contains(&k) && model.z(place) >= limit),
        Term::Staircase(s) => candidates.staircases[s].steps.len(),
        _ => 0,
    });
    steps.sum()
}

/// Neighbouring steps of which the second takes back the first within a few points.
fn returning(model: &Model) -> Vec<(usize, usize)> {
    let steps = model.at(Term::step);
    let pairs = steps.windows(2).map(|pair| (pair[0], pair[1]));
    let returns = pairs
        .filter(|((a, up), (b, down))| b - a <= MOST_OFF && (up + down).abs() < LEFT_OVER * up.abs().max(down.abs()));
    returns.map(|((a, _), (b, _))| (a, b)).collect()
}

/// Whether the points `from..to`, which are off the curve, agree as those of a level do. The curve is that without points off it and without a step
/// right before them.
pub(crate) fn is_level(model: &Model, from: usize, to: usize, least: f64) -> bool {
    if to - from < EDGE {
        return false;
    }
    let curve = model.fitted(|term| match term {
        Term::Off { .. } => false,
        Term::Step(k) => k + 1 != from,
        _ => true,
    });
    let problem = model.problem;
    let (points, noise) = ((to - from) as f64, typical(model));
    let heights: Vec<f64> = (from..to).map(|i| problem.target[i] - curve[i] * problem.factor[i]).collect();
    // A level may be higher by as much everywhere, or by the same share.
    let equal: Vec<f64> = problem.factor[from..to].to_vec();
    let shares: Vec<f64> = (from..to).map(|i| curve[i] * problem.factor[i]).collect();
    let likelier = [equal, shares].map(|shape| {
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let size = dot(&heights, &shape) / dot(&shape, &shape);
        let squares: f64 = heights.iter().zip(&shape).map(|(h, s)| (h - size * s).powi(2)).sum();
        let uneven = noise + UNEQUAL * UNEQUAL * dot(&heights, &heights) / points;
        // Twice the log likelihoods of normal values of either variance about their mean.
        (points - 1.0) * (uneven / noise).ln() - squares * (noise.recip() - uneven.recip())
    });
    likelier.into_iter().any(|likelier| likelier > 2.0 * least)
}

/// The variance of a typical residual: the few points that were disturbed do not count.
fn typical(model: &Model) -> f64 {
    let whole = model.dispersion();
    robust::scale(&model.residual).powi(2).clamp(LEAST * whole, whole)
}

/// The model with two steps in place of each short level.
fn as_levels<'a, 'b>(model: Model<'a, 'b>, least: f64) -> Model<'a, 'b> {
    let candidates = model.problem.candidates;
    let mut terms = model.terms.clone();
    for (from, to) in stretches(&model).into_iter().filter(|(from, to)| (EDGE..=MOST_OFF).contains(&(to - from))) {
        if from > 0 && is_level(&model, from, to, least) {
            let is_part = |j: &usize| matches!(candidates.term(*j), Term::Off { at, .. } if (from..to).contains(&at));
            let parts: Vec<usize> = terms.iter().copied().filter(is_part).collect();
            exchange(candidates, &mut terms, &parts, &[from - 1, to - 1].map(Term::Step));
        }
    }
    if terms == model.terms { model } else { Model::new(model.problem, &terms) }
}

/// Stretches of points that are off the curve in the same direction, each from its first point to the one after its last.
fn stretches(model: &Model) -> Vec<(usize, usize)> {
    let mut sizes = vec![0.0; model.problem.candidates.n];
    for (term, size) in model.sized() {
        if let Term::Off { at, length } = term {
            sizes[at..at + length].iter_mut().for_each(|sum| *sum += size);
        }
    }
    let mut found: Vec<(usize, usize)> = Vec::new();
    for i in (0..sizes.len()).filter(|&i| sizes[i] != 0.0) {
        match found.last_mut() {
            Some((_, to)) if *to == i && sizes[i - 1] * sizes[i] > 0.0 => *to = i + 1,
            _ => found.push((i, i + 1)),
        }
    }
    found
}

/// The model with points off the curve in place of two steps between which there is no level.
fn as_points<'a, 'b>(model: Model<'a, 'b>, least: f64) -> Model<'a, 'b> {
    let candidates = model.problem.candidates;
    let mut terms = model.terms.clone();
    for (a, b) in returning(&model) {
        let steps = [a, b].map(|k| candidates.index(Term::Step(k)));
        if !is_level(&model, a + 1, b + 1, least) && steps.iter().all(|j| terms.contains(j)) {
            exchange(candidates, &mut terms, &steps, &[Term::Off { at: a + 1, length: b - a }]);
        }
    }
    if terms == model.terms { model } else { Model::new(model.problem, &terms) }
}

/// Puts the terms `to` in place of those with the numbers `from`, if they are allowed.
fn exchange(candidates: &CandidateTerms, terms: &mut Vec<usize>, from: &[usize], to: &[Term]) {
    let to: Vec<usize> = to.iter().map(|term| candidates.index(*term)).collect();
    if to.iter().all(|j| candidates.allowed(*j)) {
        terms.retain(|j| !from.contains(j) && !to.contains(j));
        terms.extend(to);
    }
}
