//! Drift over the run: what changed on the machine in the meantime, subtracted where it can be separated from the curve.
//!
//! The effects of x and of the position in the run are estimated in turn (backfitting): residuals from the centers, as a
//! function of order, are cut where the level changes suddenly (a throttling device) and are piecewise linear between the robust
//! locations of bins elsewhere. Drift is removed only where an F test finds it and where order does not follow x.

use super::prepared::Prepared;
use super::reduce::{self, Reduced};
use crate::detect::findings::Note;
use crate::stats::{distribution, quantile::median, robust};

/// Observations per bin, and bounds on the number of bins.
const PER_BIN: usize = 35;
const BINS: (usize, usize) = (4, 30);
/// At most this many distinct positions are blocks, each with a level of its own.
const BLOCKS: usize = 60;
/// Share of the variance of order that x explains, above which the two are confounded.
const CONFOUNDED: f64 = 0.8;
/// p-value of the F test below which drift is subtracted.
const SIGNIFICANCE: f64 = 1e-4;
/// t of a sudden change of level over the run, large because every position is tried.
const SUDDEN: f64 = 6.0;

/// A series without drift.
pub(crate) struct Undrifted {
    /// ln y of each observation.
    pub log: Vec<f64>,
    pub reduced: Reduced,
    /// What was subtracted, or why nothing could be.
    pub note: Option<Note>,
}

/// `series` without drift, as far as it can be separated from the curve.
pub(crate) fn without(series: &Prepared) -> Undrifted {
    let as_it_is =
        |note| Undrifted { log: series.log.clone(), reduced: reduce::reduce(&series.groups, &series.log), note };
    let Some(order) = &series.order else { return as_it_is(Some(Note::OrderUnknown)) };
    if follows_x(series, order) {
        return as_it_is(Some(Note::OrderConfounded));
    }
    let repeated = series.groups.iter().filter(|g| g.len() > 1).count() * 2 > series.groups.len();
    if !repeated || series.log.len() < 4 * PER_BIN {
        return as_it_is(None);
    }
    match estimate(series, order) {
        Ok(drift) => {
            let (low, high) = drift.iter().fold((f64::MAX, f64::MIN), |(a, b), d| (a.min(*d), b.max(*d)));
            let log: Vec<f64> = series.log.iter().zip(&drift).map(|(l, d)| l - d).collect();
            let reduced = reduce::reduce(&series.groups, &log);
            Undrifted { log, reduced, note: Some(Note::DriftRemoved { span: (high - low).exp_m1() }) }
        }
        Err(reduced) => Undrifted { log: series.log.clone(), reduced, note: None },
    }
}

/// Whether x explains nearly all of the variance of order (one-way analysis of variance).
fn follows_x(series: &Prepared, order: &[f64]) -> bool {
    let mean = order.iter().sum::<f64>() / order.len() as f64;
    let total: f64 = order.iter().map(|o| (o - mean).powi(2)).sum();
    let between: f64 = series
        .groups
        .iter()
        .map(|g| {
            let own = order[g.clone()].iter().sum::<f64>() / g.len() as f64;
            g.len() as f64 * (own - mean).powi(2)
        })
        .sum();
    total <= 0.0 || between > CONFOUNDED * total
}

/// The drift at each observation, in ln y, centred so that the mean factor over the run is one; the reduction of the series as
/// it is where there is none.
fn estimate(series: &Prepared, order: &[f64]) -> Result<Vec<f64>, Reduced> {
    let mut ranked: Vec<usize> = (0..order.len()).collect();
    ranked.sort_by(|a, b| order[*a].total_cmp(&order[*b]));
    let place: Vec<f64> = ranked.iter().map(|&i| order[i]).collect();
    let mut distinct = place.clone();
    distinct.dedup();
    let blocks = distinct.len() <= BLOCKS;
    let member = series.membership();
    let mut drift = vec![0.0; order.len()];
    let mut log = series.log.clone();
    for round in 0..4 {
        let reduced = reduce::reduce(&series.groups, &log);
        let residual: Vec<f64> = ranked.iter().map(|&i| series.log[i] - reduced.center[member[i]]).collect();
        let scale: Vec<f64> = ranked.iter().map(|&i| reduced.scale[member[i]]).collect();
        let run = Run { place: &place, residual: &residual, scale: &scale };
        if round == 0 && !run.is_significant() {
            return Err(reduced);
        }
        let pieces = if blocks { run.by_block() } else { run.by_bin() };
        for (rank, &i) in ranked.iter().enumerate() {
            drift[i] = pieces[rank];
        }
        let factor = (drift.iter().map(|d| d.exp()).sum::<f64>() / drift.len() as f64).ln();
        for ((d, l), raw) in drift.iter_mut().zip(&mut log).zip(&series.log) {
            *d -= factor;
            *l = raw - *d;
        }
    }
    Ok(drift)
}

/// Residuals in the order of the run.
struct Run<'a> {
    place: &'a [f64],
    residual: &'a [f64],
    scale: &'a [f64],
}

impl Run<'_> {
    /// The robust location of a stretch of the run.
    fn location(&self, from: usize, to: usize) -> f64 {
        let values = &self.residual[from..to];
        let start = median(&mut values.to_vec());
        robust::biweight(values, start, median(&mut self.scale[from..to].to_vec())).value
    }

    /// One level for each distinct position.
    fn by_block(&self) -> Vec<f64> {
        let mut level = vec![0.0; self.place.len()];
        let mut from = 0;
        while from < level.len() {
            let to = from + self.place[from..].partition_point(|p| *p <= self.place[from]);
            let own = self.location(from, to);
            level[from..to].fill(own);
            from = to;
        }
        level
    }

    /// Straight lines between the levels of bins, broken where the level changes suddenly.
    fn by_bin(&self) -> Vec<f64> {
        let n = self.place.len();
        let mut level = vec![0.0; n];
        let cuts: Vec<usize> = self.sudden().into_iter().chain([n]).collect();
        let mut from = 0;
        for to in cuts {
            let bins = ((to - from) / PER_BIN).clamp(1, BINS.1);
            let edge = |b: usize| from + (to - from) * b / bins;
            let knots: Vec<(f64, f64)> = (0..bins)
                .map(|b| (0.5 * (edge(b) + edge(b + 1) - 1) as f64, self.location(edge(b), edge(b + 1))))
                .collect();
            for (i, level) in level[from..to].iter_mut().enumerate() {
                *level = along(&knots, (from + i) as f64);
            }
            from = to;
        }
        level
    }

    /// The place where the run's level changes most sharply, if it does: the contrast of neighbouring stretches.
    fn sudden(&self) -> Option<usize> {
        let n = self.residual.len();
        let reach = (n / 12).clamp(20, 150);
        if n < 4 * reach {
            return None;
        }
        let clipped: Vec<f64> = self.residual.iter().zip(self.scale).map(|(r, s)| (r / s).clamp(-6.0, 6.0)).collect();
        let mut sums = vec![0.0];
        for value in &clipped {
            sums.push(sums[sums.len() - 1] + value);
        }
        let mean = |from: usize, to: usize| (sums[to] - sums[from]) / (to - from) as f64;
        // A ramp has a contrast everywhere; what counts is the contrast beyond that of the stretches next to it.
        let contrast = |i: usize| {
            let middle = mean(i, i + reach) - mean(i - reach, i);
            let (half, edge) = (reach / 2, n - reach);
            let trend = 0.5 * (mean(i - half, i) - mean(i - reach, i - half))
                + 0.5 * (mean((i + half).min(edge), i + reach) - mean(i, i + half));
            middle - 2.0 * trend
        };
        let best = (reach..=n - reach).max_by(|a, b| contrast(*a).abs().total_cmp(&contrast(*b).abs()))?;
        let error = (2.0 / reach as f64 + 8.0 / reach as f64).sqrt();
        (contrast(best).abs() > SUDDEN * error).then_some(best)
    }

    /// F test of the levels of bins against the scatter about them.
    fn is_significant(&self) -> bool {
        let n = self.residual.len();
        let bins = (n / PER_BIN).clamp(BINS.0, BINS.1);
        let (mut sum, all) = (0.0, median(&mut self.residual.to_vec()));
        for b in 0..bins {
            let (from, to) = (n * b / bins, n * (b + 1) / bins);
            let scale = median(&mut self.scale[from..to].to_vec());
            let own = self.location(from, to) - all;
            sum += (to - from) as f64 * (own / scale).powi(2);
        }
        let df = (bins - 1) as f64;
        distribution::f_upper(sum / df, df, n as f64 - df - 1.0) < SIGNIFICANCE
    }
}

/// The polyline through `knots` (ascending) at `at`, its end pieces prolonged.
fn along(knots: &[(f64, f64)], at: f64) -> f64 {
    match knots {
        [] => 0.0,
        [only] => only.1,
        _ => {
            let right = knots.partition_point(|k| k.0 < at).clamp(1, knots.len() - 1);
            let ((x0, y0), (x1, y1)) = (knots[right - 1], knots[right]);
            y0 + (y1 - y0) * (at - x0) / (x1 - x0)
        }
    }
}
