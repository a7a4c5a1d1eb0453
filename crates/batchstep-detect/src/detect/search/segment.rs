//! Exact segmentation into separate straight lines, from which a search for named terms may start.
//!
//! Dynamic programming over all segmentations, any number of segments, each at least three points long (Bai & Perron 2003),
//! with a penalty for each cut. O(n^2) stretches, each O(1) by prefix sums.

use crate::detect::model::candidates::Term;
use crate::detect::model::fit::Model;
use crate::detect::model::problem::Problem;
use crate::stats::{regression, regression::LineSums, robust};

/// Fewest points of a segment with a line of its own.
const SHORTEST: usize = 3;

/// Segmentations to start from: each a list of positions after which a new segment begins.
pub(crate) fn starts(problem: &Problem<'_>, y: &[f64]) -> Vec<Vec<usize>> {
    let n = y.len();
    let t = &problem.candidates.t;
    let mut weight: Vec<f64> = problem.factor.iter().map(|f| f * f).collect();
    let dispersion = local_dispersion(t, y, &weight, problem.floor);
    problem.spikes.iter().for_each(|at| weight[*at] = 0.0);
    let ln_n = (n as f64).ln();
    let mut found = Vec::new();
    let lines = |sums: LineSums, penalty: f64| {
        segment(|from, to| sums.cost(from, to), n, SHORTEST, penalty * ln_n * dispersion)
    };
    let first = lines(LineSums::new(t, y, &weight), 4.0);
    for place in isolated(t, y, &weight, &first, dispersion) {
        weight[place] = 0.0;
    }
    found.push(first);
    found.extend([3.0, 5.0, 10.0].map(|penalty| lines(LineSums::new(t, y, &weight), penalty)));
    found
}

/// The cuts of the segmentation of `n` points, each segment `shortest` or longer, that minimises the sum of the costs of segments from one point up to
/// another and `penalty` for each cut.
///
/// A start that is worse than a segmentation up to `to` stays worse for all ends beyond it, since a cut never raises the costs; such starts are
/// dropped (Killick, Fearnhead & Eckley 2012), and the minimum stays exact.
pub(crate) fn segment(cost: impl Fn(usize, usize) -> f64, n: usize, shortest: usize, penalty: f64) -> Vec<usize> {
    let mut best = vec![f64::INFINITY; n + 1];
    let mut from = vec![0; n + 1];
    best[0] = -penalty;
    // Each start has its best segmentation's cost up to `to`, and the end from which it no longer counts: a segment
    // needs its shortest length beyond the place that beat it.
    let mut starts: Vec<(usize, f64, usize)> = Vec::new();
    for to in shortest..=n {
        starts.push((to - shortest, 0.0, usize::MAX));
        starts.retain(|(_, _, until)| to < *until);
        for (start, reached, _) in &mut starts {
            // The best so far may already beat any segment from here.
            *reached = best[*start];
            if *reached + penalty < best[to] {
                *reached += cost(*start, to);
                if *reached + penalty < best[to] {
                    (best[to], from[to]) = (*reached + penalty, *start);
                }
            }
        }
        for (_, reached, until) in &mut starts {
            if *reached >= best[to] {
                *until = (to + shortest).min(*until);
            }
        }
    }
    let mut cuts = Vec::new();
    let mut at = from[n];
    while at > 0 {
        cuts.push(at - 1);
        at = from[at];
    }
    cuts.reverse();
    cuts
}

/// Positions that deviate from their segment's line by more than four standard deviations.
fn isolated(t: &[f64], y: &[f64], weight: &[f64], cuts: &[usize], dispersion: f64) -> Vec<usize> {
    let mut at = Vec::new();
    let mut start = 0;
    for end in cuts.iter().map(|c| c + 1).chain([y.len()]) {
        let (t, y, w) = (&t[start..end], &y[start..end], &weight[start..end]);
        let line = regression::line(t, y, w);
        for i in 0..t.len() {
            let off = (y[i] - line.intercept - line.slope * t[i]) * w[i].sqrt();
            if off * off > 16.0 * dispersion {
                at.push(start + i);
            }
        }
        start = end;
    }
    at
}

/// The dispersion of neighbours about one another, from the distance of each point to the line through its two
/// neighbours, in units of its error. It does not depend on level, slope and a few jumps.
pub(crate) fn local_dispersion(t: &[f64], y: &[f64], weight: &[f64], floor: f64) -> f64 {
    let bend = |i: usize| {
        let after = (t[i] - t[i - 1]) / (t[i + 1] - t[i - 1]);
        let before = 1.0 - after;
        let variance = before * before / weight[i - 1] + 1.0 / weight[i] + after * after / weight[i + 1];
        (y[i] - before * y[i - 1] - after * y[i + 1]) / variance.sqrt()
    };
    robust::scale(&(1..y.len() - 1).map(bend).collect::<Vec<f64>>()).powi(2).max(floor)
}

/// The lower bound on the dispersion of single values, without spikes and after removing those patterns of `model` that make neighbours
/// differ.
///
/// Without it a search would describe every wiggle of a short series and take the rest for its noise.
pub(crate) fn least_dispersion(model: &Model, y: &[f64]) -> f64 {
    let candidates = model.problem.candidates;
    let is_pattern = |term: Term| matches!(term, Term::Staircase(_)) || candidates.alternates(candidates.index(term));
    let bare = model.less(y, is_pattern);
    let weight: Vec<f64> = model.problem.factor.iter().map(|f| f * f).collect();
    let spikes = &model.problem.spikes;
    let others =
        |values: &[f64]| -> Vec<f64> { (0..values.len()).filter(|i| !spikes.contains(i)).map(|i| values[i]).collect() };
    let dispersion = local_dispersion(&others(&candidates.t), &others(&bare), &others(&weight), 0.0);
    (SURE * dispersion).max(model.problem.floor)
}

/// The share of the variance between neighbours that is certainly noise.
const SURE: f64 = 0.35;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Rng;

    /// Every way to cut `from..n` into stretches of `shortest` and more, cheapest first found: the obvious, exponential search.
    fn exhaustive(
        cost: &dyn Fn(usize, usize) -> f64,
        from: usize,
        n: usize,
        shortest: usize,
        penalty: f64,
    ) -> (f64, Vec<usize>) {
        let mut best = (cost(from, n), Vec::new());
        for cut in from + shortest..=n.saturating_sub(shortest) {
            let (rest, mut cuts) = exhaustive(cost, cut, n, shortest, penalty);
            let whole = cost(from, cut) + penalty + rest;
            if whole < best.0 {
                cuts.insert(0, cut - 1);
                best = (whole, cuts);
            }
        }
        best
    }

    #[test]
    fn dynamic_programming_finds_what_exhaustion_finds() {
        for seed in 0..40 {
            let mut rng = Rng::new(seed);
            let n = 8 + rng.below(6);
            let x: Vec<f64> = (0..n).map(|i| i as f64).collect();
            let y: Vec<f64> =
                x.iter().map(|x| 0.3 * x + if *x > 6.0 { 3.0 } else { 0.0 } + 0.5 * rng.normal()).collect();
            let w: Vec<f64> = x.iter().map(|_| 0.5 + rng.uniform()).collect();
            let sums = LineSums::new(&x, &y, &w);
            let lines = |from: usize, to: usize| sums.cost(from, to);
            let levels = |from: usize, to: usize| {
                let mean = y[from..to].iter().sum::<f64>() / (to - from) as f64;
                y[from..to].iter().map(|y| (y - mean).powi(2)).sum::<f64>()
            };
            for penalty in [0.3, 1.0, 4.0] {
                let expected = exhaustive(&lines, 0, n, SHORTEST, penalty).1;
                assert_eq!(segment(lines, n, SHORTEST, penalty), expected, "lines, seed {seed}");
                let expected = exhaustive(&levels, 0, n, 1, penalty).1;
                assert_eq!(segment(levels, n, 1, penalty), expected, "levels, seed {seed}");
            }
        }
    }
}
