//! Cliffs: steps that anyone sees, whatever the curve does elsewhere. A search keeps them.
//!
//! A curve with many steps looks rough until most of them are described, so single changes do not pay, and a search that starts with none
//! may stop there. Cliffs are found from their neighbours only.

use crate::detect::model::candidates::{CandidateTerms, Term};
use crate::stats::quantile::median;
use crate::stats::robust::scale;

/// The changes on each side that must be smaller than a cliff by [`CALM`], so that both levels are there.
const BESIDE: usize = 2;
const CALM: f64 = 4.0;
/// The changes on each side from which slope and scatter are computed, and how many times the scatter a cliff is.
const AROUND: usize = 8;
const CLEAR: f64 = 4.0;

/// The steps at the cliffs of `y`, which is a share of `level`, each at least `least` high.
pub(crate) fn cliffs(
    candidates: &CandidateTerms,
    y: &[f64],
    level: &[f64],
    least: impl Fn(usize) -> f64,
) -> Vec<usize> {
    let t = &candidates.t;
    let gap = |k: usize| t[k + 1] - t[k];
    let others = |k: usize| (k.saturating_sub(AROUND)..(k + 1 + AROUND).min(y.len() - 1)).filter(move |j| *j != k);
    let slope = |k: usize| median(&mut others(k).map(|j| (y[j + 1] - y[j]) / gap(j)).collect::<Vec<_>>());
    let changes = |k: usize| {
        let usual = slope(k);
        move |j: usize| y[j + 1] - y[j] - usual * gap(j)
    };
    let scatter = |k: usize| scale(&others(k).map(changes(k)).collect::<Vec<_>>());
    let share: Vec<f64> = (0..y.len() - 1).map(|k| scatter(k) / level[k]).collect();
    let usual = median(&mut share.clone());
    let is_cliff = |k: usize| {
        let signed = changes(k);
        let change = |j: usize| signed(j).abs();
        let mut beside = (k - BESIDE..k).chain(k + 1..k + 1 + BESIDE).map(change);
        let scatter = level[k] * share[k].max(usual);
        change(k) >= least(k).max(CLEAR * scatter) && beside.all(|other| CALM * other <= change(k))
    };
    let places = (BESIDE..y.len().saturating_sub(BESIDE + 1)).filter(|&k| is_cliff(k));
    places.map(|k| candidates.index(Term::Step(k))).filter(|&j| candidates.allowed(j)).collect()
}
