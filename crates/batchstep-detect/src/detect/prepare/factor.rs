//! The factor common to all x of a run (heat, clocks, neighbours on the host). It is subtracted if it can be separated
//! from the curve.
//!
//! [`crate::stats::common_factor`] estimates it together with the levels. The factor that is subtracted from a visit is
//! the one that the *other* visits predict for its moment. So the scatter of the visits to one x still shows the full
//! uncertainty, and all later steps treat the visits as ordinary repetitions. If several machines measured a series,
//! each has separate levels here: otherwise, what a machine adds to an x that it visited many times in a row would look
//! like a factor of that time. Nothing is subtracted if the visits' residuals are not correlated with those of their
//! neighbours in time, nor if only undisturbed visits count.

use std::ops::Range;

use super::prepared::Prepared;
use super::reduce::{self, Reduced};
use crate::detect::findings::{FactorPoint, Note};
use crate::stats::common_factor::{self, CommonFactor, Visit};
use crate::stats::quantile::median;

/// The fewest visits for comparing neighbours.
const FEWEST: usize = 28;
/// Share of the variance of order that x explains, above which the two are confounded.
const CONFOUNDED: f64 = 0.8;

/// A series without the factor common to all x.
pub(crate) struct Undisturbed {
    /// ln y of each observation.
    pub log: Vec<f64>,
    pub reduced: Reduced,
    /// What was subtracted, or why nothing could be subtracted.
    pub note: Option<Note>,
    /// The factor over the run, where there is one.
    pub factor: Vec<FactorPoint>,
}

/// The least share that the note of a factor prints as other than zero.
const LEAST_SAID: f64 = 0.0005;

impl Undisturbed {
    /// The same of the reciprocals of y, without note and factor.
    pub fn reciprocal(&self) -> Self {
        let log = self.log.iter().map(|log| -log).collect();
        Self { log, reduced: self.reduced.reciprocal(), note: None, factor: Vec::new() }
    }

    /// The same of x / y: of the times, if y counts the x that are done in a second. `None` where x is not above zero.
    pub fn of_steps(&self, series: &Prepared) -> Option<Self> {
        if series.x[0] <= 0.0 {
            return None;
        }
        let x: Vec<f64> = series.x.iter().map(|x| x.ln()).collect();
        let mut turned = self.reciprocal();
        turned.reduced.center.iter_mut().zip(&x).for_each(|(center, x)| *center += x);
        turned.log.iter_mut().zip(series.membership()).for_each(|(log, i)| *log += x[i]);
        Some(turned)
    }

    /// Some of the distinct x of `series`, without note and factor.
    pub fn part(&self, series: &Prepared, x: &Range<usize>) -> Self {
        let log = self.log[series.rows(x)].to_vec();
        Self { log, reduced: self.reduced.part(x), note: None, factor: Vec::new() }
    }
}

/// `series` without the common factor, as far as it can be separated from the curve.
pub(crate) fn without(series: &Prepared) -> Undisturbed {
    let reduced = reduce::reduce(&series.groups, &series.log, series.share());
    let as_it_is = |note, reduced| Undisturbed { log: series.log.clone(), reduced, note, factor: Vec::new() };
    let Some(order) = &series.order else { return as_it_is(Some(Note::OrderUnknown), reduced) };
    if follows_x(series, order) {
        return as_it_is(Some(Note::OrderConfounded), reduced);
    }
    if !reduced.repeated || series.by_fastest.is_some_and(|fastest| fastest.is_undisturbed()) {
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

/// The average number of visits of a machine to an x from which the machine has its own level there. Fewer visits come
/// in complete blocks, in which no x is visited more often than others, and would hardly determine a level.
const OWN_LEVEL: usize = 4;

/// The visits of a series in the order of the run.
struct Run {
    visits: Vec<Visit>,
    /// For each visit its place in the series.
    places: Vec<usize>,
    /// The distinct x of each level.
    levels: Vec<usize>,
}

/// For each observation the number of its level, and the distinct x of each level.
struct Levels {
    of: Vec<usize>,
    x: Vec<usize>,
}

impl Levels {
    fn new(series: &Prepared) -> Self {
        let x = series.membership();
        let by_x = |x: Vec<usize>| Self { of: x, x: (0..series.x.len()).collect() };
        let Some(node) = &series.node else { return by_x(x) };
        let mut pairs: Vec<(usize, u32)> = x.iter().copied().zip(node.iter().copied()).collect();
        pairs.sort_unstable();
        pairs.dedup();
        if pairs.len() * OWN_LEVEL > x.len() {
            return by_x(x);
        }
        let of = x.iter().zip(node).map(|(x, node)| pairs.partition_point(|pair| *pair < (*x, *node))).collect();
        Self { of, x: pairs.into_iter().map(|(x, _)| x).collect() }
    }
}

impl Run {
    fn new(series: &Prepared, order: &[f64]) -> Self {
        let levels = Levels::new(series);
        let mut places: Vec<usize> = (0..order.len()).collect();
        places.sort_by(|a, b| order[*a].total_cmp(&order[*b]));
        let node = |i: usize| series.node.as_ref().map(|node| node[i]);
        let visit = |(rank, &i): (usize, &usize)| Visit {
            cell: levels.of[i],
            value: series.log[i],
            together: rank > 0 && order[places[rank - 1]] == order[i],
            anew: rank > 0 && node(places[rank - 1]) != node(i),
        };
        let visits = places.iter().enumerate().map(visit).collect();
        Self { visits, places, levels: levels.x }
    }

    /// The factor, if the visits show one.
    fn factor(&self, reduced: &Reduced) -> Option<CommonFactor> {
        if self.visits.len() < FEWEST {
            return None;
        }
        let count = self.levels.len();
        let medians = common_factor::medians(&self.visits, count);
        let residual = |visit: &Visit| (visit.value - medians[visit.cell]) / reduced.scale[self.levels[visit.cell]];
        let residuals: Vec<f64> = self.visits.iter().map(residual).collect();
        if common_factor::is_there(&residuals) { common_factor::fit(&self.visits, count) } else { None }
    }

    /// The series without the factor; centred, so that its median over the run is one: a pass in which the machine was slow does not make all times longer.
    fn subtract(&self, series: &Prepared, order: &[f64], factor: &CommonFactor) -> Undisturbed {
        let usual = median(&mut factor.smoothed.iter().map(|f| f.value).collect::<Vec<f64>>());
        let mut log = series.log.clone();
        for (&i, others) in self.places.iter().zip(&factor.others) {
            log[i] -= others.value - usual;
        }
        let point = |(&i, smoothed): (&usize, &common_factor::Estimate)| FactorPoint {
            order: order[i],
            relative: (smoothed.value - usual).exp_m1(),
            sd: smoothed.sd,
        };
        let points: Vec<FactorPoint> = self.places.iter().zip(&factor.smoothed).map(point).collect();
        let (low, high) = points.iter().fold((f64::MAX, f64::MIN), |(a, b), p| (a.min(p.relative), b.max(p.relative)));
        // A smaller one would be printed as zero.
        let is_seen = low.abs().max(high.abs()) >= LEAST_SAID;
        let note = is_seen.then(|| Note::CommonFactor { low, high, reference: factor.reference_limit() });
        Undisturbed { reduced: reduce::reduce(&series.groups, &log, series.share()), log, note, factor: points }
    }
}
