//! One place where the model steps: its height and standard error, in the model and in its neighbourhood.

use super::candidates::{CandidateTerms, EDGE, Term};
use super::fit::Model;
use crate::stats::regression;

/// Points on each side that the local test looks at.
const WINDOW: usize = 16;

/// A boundary at which the model steps, after position `k`.
#[derive(Clone, Debug)]
pub(crate) struct Boundary {
    pub k: usize,
    /// Part of a staircase.
    pub in_staircase: bool,
    /// The departure at the next x from the trend up to here.
    pub size: f64,
    /// Standard error of `size`, lack of fit included.
    pub error: f64,
}

impl Boundary {
    /// The size in standard errors.
    pub fn z(&self) -> f64 {
        if self.error > 0.0 { self.size.abs() / self.error } else { 0.0 }
    }
}

/// All boundaries of the model, ascending.
pub(crate) fn boundaries(model: &Model) -> Vec<Boundary> {
    let coefficients = model.coefficients();
    let spread = model.spread();
    let last = model.problem.candidates.n - 1;
    let all = (0..last).filter_map(|k| {
        let (stepped, in_staircase, weights) = departure(model.problem.candidates, &model.terms, k);
        stepped.then(|| {
            let size = weights.iter().zip(&coefficients).map(|(w, b)| w * b).sum();
            let error = model.error_of(&weights) * spread;
            Boundary { k, in_staircase, size, error }
        })
    });
    all.collect()
}

/// What departs at k + 1: steps there, also of a staircase, and a change of slope that starts at k.
///
/// Returns (is there a step, is it of a staircase, weights on the coefficients).
pub(crate) fn departure(candidates: &CandidateTerms, terms: &[usize], k: usize) -> (bool, bool, Vec<f64>) {
    let mut weights = vec![0.0; terms.len() + super::fit::FREE];
    let (mut stepped, mut in_staircase) = (false, false);
    for (place, &j) in terms.iter().enumerate() {
        let weight = &mut weights[place + super::fit::FREE];
        match candidates.term(j) {
            Term::Step(at) if at == k => {
                *weight = 1.0;
                stepped = true;
            }
            Term::Hinge(at) if at == k => *weight = candidates.t[k + 1] - candidates.t[k],
            Term::Staircase(s) => {
                *weight = candidates.staircases[s].steps.iter().filter(|r| **r == k).count() as f64;
                in_staircase |= *weight > 0.0;
            }
            _ => {}
        }
    }
    (stepped || in_staircase, in_staircase, weights)
}

/// The jump after `k` in standard errors of [`local_size`]; 0 where that has no answer.
///
/// A model can be wrong far away and make a step look certain; this test depends on nearby points only.
pub(crate) fn local_z(model: &Model, y: &[f64], k: usize) -> f64 {
    local_size(model, y, k).map_or(0.0, |(size, error)| size.abs() / error)
}

/// Size and standard error of the jump after `k` from two separate straight lines over at most sixteen points on each side, not
/// beyond the next event, both prolonged to k + 1.
pub(crate) fn local_size(model: &Model, y: &[f64], k: usize) -> Option<(f64, f64)> {
    let candidates = model.problem.candidates;
    let (from, to) = neighbourhood(model, k);
    let weight = |i: usize| {
        let off = model.terms.contains(&candidates.index(Term::Spike(i)));
        if off { 0.0 } else { model.problem.factor[i].powi(2) }
    };
    let at = candidates.t[k + 1];
    let side = |from: usize, to: usize| {
        let w: Vec<f64> = (from..to).map(weight).collect();
        prediction(&candidates.t[from..to], &y[from..to], &w, at)
    };
    let ((before, var_before), (after, var_after)) = (side(from, k + 1)?, side(k + 1, to)?);
    Some((after - before, (var_before + var_after).sqrt() * model.spread()))
}

/// Whether no step or change of slope of the model is closer to the boundary after `k` than two that can be distinguished.
pub(crate) fn is_free(model: &Model, k: usize) -> bool {
    model.terms.iter().all(|&j| match model.problem.candidates.term(j) {
        Term::Step(at) => at.abs_diff(k) >= EDGE,
        Term::Hinge(at) => at.abs_diff(k + 1) >= EDGE,
        _ => true,
    })
}

/// The stretch around the boundary after `k` without another event.
fn neighbourhood(model: &Model, k: usize) -> (usize, usize) {
    let candidates = model.problem.candidates;
    let (mut from, mut to) = ((k + 1).saturating_sub(WINDOW), (k + 1 + WINDOW).min(candidates.n));
    for &j in &model.terms {
        match candidates.term(j) {
            Term::Step(at) if at < k => from = from.max(at + 1),
            Term::Step(at) if at > k => to = to.min(at + 1),
            // A bend is continuous: its own point belongs to both sides. Closer than an edge it cannot be distinguished from
            // the jump.
            Term::Hinge(at) if at + EDGE <= k => from = from.max(at),
            Term::Hinge(at) if at > k + EDGE => to = to.min(at + 1),
            _ => {}
        }
    }
    (from, to)
}

/// Value at `at` of the weighted line through the points, and its variance; `None` with fewer than two points of weight.
fn prediction(t: &[f64], y: &[f64], w: &[f64], at: f64) -> Option<(f64, f64)> {
    let total: f64 = w.iter().sum();
    let mean = t.iter().zip(w).map(|(t, w)| t * w).sum::<f64>() / total;
    let moment: f64 = t.iter().zip(w).map(|(t, w)| w * (t - mean).powi(2)).sum();
    if moment.is_nan() || moment <= 0.0 {
        return None;
    }
    let line = regression::line(t, y, w);
    Some((line.intercept + line.slope * at, 1.0 / total + (at - mean).powi(2) / moment))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_predicts_with_the_textbook_variance() {
        // t 1 2 3, unit weights, at 4: variance 1/3 + (4 - 2)^2 / 2 = 7/3
        let (value, variance) = prediction(&[1.0, 2.0, 3.0], &[2.0, 4.0, 6.0], &[1.0; 3], 4.0).expect("three points");
        assert!((value - 8.0).abs() < 1e-12 && (variance - 7.0 / 3.0).abs() < 1e-12);
    }
}
