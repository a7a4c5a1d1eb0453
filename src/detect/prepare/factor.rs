//! The factor common to all x of a run (heat, clocks, neighbours on the host), subtracted where it can be separated from the curve.
//!
//! [`crate::stats::common_factor`] estimates it together with the levels. What a visit loses is the factor that the *other*
//! visits predict for its moment, so that the scatter of the visits to one x still shows all that is not known, and everything
//! after this step treats them as ordinary repetitions.
//! Nothing is subtracted where the visits' residuals are not correlated with those of their neighbours in time.

use std::ops::Range;

use super::prepared::Prepared;
use super::reduce::{self, Reduced};
use crate::detect::findings::{FactorPoint, Note};
use crate::stats::common_factor::{self, CommonFactor, Visit};

/// Fewest visits whose neighbours are compared.
const FEWEST: usize = 28;
/// Share of the variance of order that x explains, above which the two are confounded.
const CONFOUNDED: f64 = 0.8;

/// A series without what is common to all x.
pub(crate) struct Undisturbed {
    /// ln y of each observation.
    pub log: Vec<f64>,
    pub reduced: Reduced,
    /// What was subtracted, or why nothing could be.
    pub note: Option<Note>,
    /// The factor over the run, where there is one.
    pub factor: Vec<FactorPoint>,
}

impl Undisturbed {
    /// Some of the distinct x of `series`, without note and factor.
    pub fn part(&self, series: &Prepared, x: &Range<usize>) -> Self {
        let log = self.log[series.rows(x)].to_vec();
        Self { log, reduced: self.reduced.part(x), note: None, factor: Vec::new() }
    }
}

/// `series` without the common factor, as far as it can be separated from the curve.
pub(crate) fn without(series: &Prepared) -> Undisturbed {
    let reduced = reduce::reduce(&series.groups, &series.log);
    let as_it_is = |note, reduced| Undisturbed { log: series.log.clone(), reduced, note, factor: Vec::new() };
    let Some(order) = &series.order else { return as_it_is(Some(Note::OrderUnknown), reduced) };
    if follows_x(series, order) {
        return as_it_is(Some(Note::OrderConfounded), reduced);
    }
    if !reduced.repeated {
        return as_it_is(None, reduced);
    }
    let run = Run::new(series, order);
    match run.factor(&reduced) {
        Some(factor) => run.subtract(series, order, &factor),
        None => as_it_is(None, reduced),
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

/// The visits of a series in the order of the run.
struct Run {
    visits: Vec<Visit>,
    /// For each visit its place in the series.
    places: Vec<usize>,
    cells: usize,
}

impl Run {
    fn new(series: &Prepared, order: &[f64]) -> Self {
        let cell = series.membership();
        let mut places: Vec<usize> = (0..order.len()).collect();
        places.sort_by(|a, b| order[*a].total_cmp(&order[*b]));
        let node = |i: usize| series.node.as_ref().map(|node| node[i]);
        let visit = |(rank, &i): (usize, &usize)| Visit {
            cell: cell[i],
            value: series.log[i],
            together: rank > 0 && order[places[rank - 1]] == order[i],
            anew: rank > 0 && node(places[rank - 1]) != node(i),
        };
        let visits = places.iter().enumerate().map(visit).collect();
        Self { visits, places, cells: series.x.len() }
    }

    /// The factor, where the visits show one.
    fn factor(&self, reduced: &Reduced) -> Option<CommonFactor> {
        if self.visits.len() < FEWEST {
            return None;
        }
        let medians = common_factor::medians(&self.visits, self.cells);
        let residual = |visit: &Visit| (visit.value - medians[visit.cell]) / reduced.scale[visit.cell];
        let residuals: Vec<f64> = self.visits.iter().map(residual).collect();
        if common_factor::is_there(&residuals) { common_factor::fit(&self.visits, self.cells) } else { None }
    }

    /// The series without the factor; centred, so that the mean of the factor's exponential over the run is one.
    fn subtract(&self, series: &Prepared, order: &[f64], factor: &CommonFactor) -> Undisturbed {
        let mean = factor.smoothed.iter().map(|f| f.value.exp()).sum::<f64>() / factor.smoothed.len() as f64;
        let mut log = series.log.clone();
        for (&i, others) in self.places.iter().zip(&factor.others) {
            log[i] -= others.value - mean.ln();
        }
        let point = |(&i, smoothed): (&usize, &common_factor::Estimate)| FactorPoint {
            order: order[i],
            relative: (smoothed.value - mean.ln()).exp_m1(),
            sd: smoothed.sd,
        };
        let points: Vec<FactorPoint> = self.places.iter().zip(&factor.smoothed).map(point).collect();
        let (low, high) = points.iter().fold((f64::MAX, f64::MIN), |(a, b), p| (a.min(p.relative), b.max(p.relative)));
        let note = Note::CommonFactor { low, high, reference: factor.reference_limit() };
        Undisturbed { reduced: reduce::reduce(&series.groups, &log), log, note: Some(note), factor: points }
    }
}
