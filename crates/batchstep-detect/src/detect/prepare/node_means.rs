//! Levels of all x, from the mean of each machine at each x.
//!
//! The mean of the n visits of machine m to x number c is, on the logarithmic scale,
//!
//! ```text
//! y_cm = mu_c + a_m + b_cm + e_cm,    var b = tau^2,    var e = s_c^2 / n
//! ```
//!
//! With the precisions p_cm = 1 / (tau^2 + s_c^2 / n), mu and a are those of generalised least squares: each machine
//! counts by how well it knows the x; if tau is large, all count nearly the same, however often they visited. tau^2 is
//! chosen so that the squared residuals, each divided by its expected value, average one (Paule & Mandel 1982; with
//! normal values and equal numbers of visits that is the estimate of restricted maximum likelihood), with those of
//! outliers cut off (Huber 1981, 5.2). Then var mu_c = 1 / sum_m p_cm, known with the degrees of freedom of tau^2
//! (Satterthwaite 1946).

use std::ops::Range;

use super::reduce::Share;
use super::units::FLOOR;
use crate::stats::quantile::median;
use crate::stats::robust::{self, BIWEIGHT, BIWEIGHT_LOSS, CLEAN, REACH};

/// Rounds of tau, weights and levels; a further round would change far less than any error.
const ROUNDS: usize = 8;
/// Turns of levels and machines within a round: if all machines visited all x, the first turn is exact.
const TURNS: usize = 8;
/// The bound, in squared standard errors, at which deviations are cut off, and the mean of squared normal values that
/// are cut off at this bound: `scipy.stats.chi2.expect(lambda s: min(s, 6.25), (1,))`.
const CUT: f64 = 6.25;
const MEAN: f64 = 0.977_560;
/// The weight of two machines 2.7 standard errors apart, which is also the least
/// weight if all machines at an x are far from one another.
const FAR: f64 = 0.45;
const LEAST: f64 = 0.05;

/// The mean of one machine's visits to one x.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodeMean {
    x: usize,
    node: usize,
    /// The mean of ln y.
    value: f64,
    /// The part of the variance of `value` that comes from the scatter of its visits.
    within: f64,
    /// 1 / (tau^2 + `within`).
    precision: f64,
    /// `precision`, reduced for an outlier.
    weight: f64,
}

/// The level of one x.
#[derive(Clone, Debug, Default)]
pub(crate) struct Level {
    pub center: f64,
    /// Standard error of `center`, and its degrees of freedom.
    pub error: f64,
    pub freedom: f64,
    pub shares: Vec<Share>,
}

/// Fitted levels and machines.
pub(crate) struct Fitted {
    means: Vec<NodeMean>,
    pub level: Vec<f64>,
    /// What each machine adds to all x, relative to the middle of all machines.
    pub added: Vec<f64>,
    /// tau^2.
    pub between: f64,
    /// Degrees of freedom of tau^2: the number of differences that neither levels nor machines explain. `None` if tau
    /// cannot be separated from the scatter of visits.
    freedom: Option<f64>,
}

/// A machine's visits to one x.
struct Visits {
    node: usize,
    logs: Vec<f64>,
}

impl Fitted {
    /// Fits levels and machines to `log`, whose entries `groups[i]` belong to the i-th x, by the machine `node` of each entry, of `nodes`. If no
    /// machine visited an x again, or too few x have several machines, tau cannot be separated from the scatter of visits, and need not be: each
    /// visit then counts as one of a separate machine. The medians are kept in that case.
    pub fn new(groups: &[Range<usize>], log: &[f64], node: &[usize], nodes: usize) -> Self {
        let visits: Vec<Vec<Visits>> = groups.iter().map(|group| by_node(group.clone(), log, node)).collect();
        let scatter: Vec<Option<f64>> = visits.iter().map(|own| scatter(own)).collect();
        let mut known: Vec<f64> = scatter.iter().flatten().copied().collect();
        let shared: usize = visits.iter().map(|own| own.len() - 1).sum();
        let freedom = (!known.is_empty() && shared >= nodes).then(|| (shared + 1 - nodes) as f64);
        let usual = if known.is_empty() { 1.0 } else { median(&mut known) };
        let mut means = Vec::new();
        for (x, own) in visits.into_iter().enumerate() {
            let scale = near(&scatter, x).unwrap_or(usual).sqrt().max(FLOOR);
            means.extend(own.into_iter().map(|visits| visits.mean(x, scale)));
        }
        let mut fitted = Self { means, level: vec![0.0; groups.len()], added: vec![0.0; nodes], between: 0.0, freedom };
        fitted.polish();
        let rounds = if freedom.is_some() { ROUNDS } else { 0 };
        for _ in 0..rounds {
            fitted.estimate_between();
            fitted.weigh();
            (0..TURNS).for_each(|_| fitted.turn());
        }
        fitted
    }

    /// The start of the fit: medians of machines and of x in turn (median polish; Tukey 1977).
    fn polish(&mut self) {
        let (xs, nodes) = (self.level.len(), self.added.len());
        for _ in 0..ROUNDS {
            self.level = medians(&self.means, xs, |mean| (mean.x, mean.value - self.added[mean.node]));
            self.added = medians(&self.means, nodes, |mean| (mean.node, mean.value - self.level[mean.x]));
            center(&mut self.added);
        }
    }

    fn residual(&self, mean: &NodeMean) -> f64 {
        mean.value - self.level[mean.x] - self.added[mean.node]
    }

    /// For each mean its squared residual, scaled so that its expectation is the variance of the mean; `None` if it
    /// fits trivially.
    fn deviations(&self) -> Vec<Option<f64>> {
        let by_x = sums(&self.means, self.level.len(), |mean| (mean.x, mean.precision));
        let by_node = sums(&self.means, self.added.len(), |mean| (mean.node, mean.precision));
        let of = |mean: &NodeMean| {
            let free = (1.0 - mean.precision / by_x[mean.x]) * (1.0 - mean.precision / by_node[mean.node]);
            (free > 1e-9).then(|| self.residual(mean).powi(2) / free)
        };
        self.means.iter().map(of).collect()
    }

    fn estimate_between(&mut self) {
        let deviations: Vec<(f64, f64)> =
            self.deviations().into_iter().zip(&self.means).filter_map(|(d, mean)| Some((d?, mean.within))).collect();
        let ratio = |between: f64| {
            let cut = deviations.iter().map(|(square, within)| (square / (between + within)).min(CUT));
            cut.sum::<f64>() / deviations.len() as f64 / MEAN
        };
        let (mut low, mut high) = (0.0, deviations.iter().map(|(square, _)| *square).fold(0.0, f64::max) / MEAN);
        self.between = if ratio(0.0) > 1.0 {
            for _ in 0..50 {
                let middle = 0.5 * (low + high);
                if ratio(middle) > 1.0 { low = middle } else { high = middle }
            }
            0.5 * (low + high)
        } else {
            0.0
        };
    }

    /// Sets precisions and weights. The weights are those of the biweight, so that one machine that was disturbed at an
    /// x does not count there. With two machines neither can be singled out, and both count equally.
    fn weigh(&mut self) {
        let deviations = self.deviations();
        for (mean, square) in self.means.iter_mut().zip(deviations) {
            mean.precision = 1.0 / (self.between + mean.within);
            let u = square.unwrap_or(0.0) * mean.precision / (BIWEIGHT * BIWEIGHT);
            mean.weight = (1.0 - u).max(0.0).powi(2);
        }
        let most = self.means.chunk_by_mut(|a, b| a.x == b.x);
        for own in most {
            let best = own.iter().map(|mean| mean.weight).fold(0.0, f64::max);
            let least = if best < LEAST { LEAST } else { 0.0 };
            own.iter_mut().for_each(|mean| mean.weight = mean.precision * mean.weight.max(least));
        }
    }

    fn turn(&mut self) {
        let (xs, nodes) = (self.level.len(), self.added.len());
        let all = sums(&self.means, xs, |mean| (mean.x, mean.weight));
        let level = sums(&self.means, xs, |mean| (mean.x, mean.weight * (mean.value - self.added[mean.node])));
        self.level = level.iter().zip(&all).map(|(sum, all)| sum / all).collect();
        let all = sums(&self.means, nodes, |mean| (mean.node, mean.weight));
        let added = sums(&self.means, nodes, |mean| (mean.node, mean.weight * (mean.value - self.level[mean.x])));
        // A machine that is an outlier everywhere keeps the value from the medians.
        let kept = added.iter().zip(&all).zip(&self.added);
        self.added = kept.map(|((sum, all), kept)| if *all > 0.0 { sum / all } else { *kept }).collect();
        center(&mut self.added);
    }

    /// The standard error of what `node` adds, by the number of x; `None` as in [`Fitted::levels`].
    pub fn error_of(&self, node: usize) -> Option<f64> {
        let own = self.means.iter().filter(|mean| mean.node == node);
        self.freedom.map(|_| own.map(|mean| mean.precision).sum::<f64>().sqrt().recip())
    }

    /// The level of each x; `None` where tau cannot be separated from the scatter of visits.
    pub fn levels(&self) -> Option<Vec<Level>> {
        let freedom = self.freedom?;
        Some(self.means.chunk_by(|a, b| a.x == b.x).map(|own| self.level_of(own, freedom)).collect())
    }

    fn level_of(&self, own: &[NodeMean], freedom: f64) -> Level {
        let [total, carried] =
            [|mean: &NodeMean| mean.precision, |mean: &NodeMean| mean.weight].map(|of| own.iter().map(of).sum::<f64>());
        // Weights of clean normal values lose a few percent of the information. Two machines always have the same
        // weight and lose none, unless they are far apart.
        let (loss, usual) = if own.len() > 2 { (BIWEIGHT_LOSS, CLEAN) } else { (1.0, FAR) };
        let information = (carried / usual).min(total);
        // var mu = 1 / total depends on tau^2 by the sum of squared shares; tau^2 + within has `freedom` degrees of freedom.
        let (squares, within) = own.iter().fold((0.0, 0.0), |(squares, within), mean| {
            let share = mean.precision / total;
            (squares + share * share, within + share * mean.within)
        });
        let ratio = 1.0 / (total * squares * (self.between + within));
        Level {
            center: self.level[own[0].x],
            error: loss / information.sqrt(),
            freedom: freedom * ratio * ratio,
            shares: own
                .iter()
                .map(|mean| Share { node: mean.node, weight: mean.weight, away: self.residual(mean) })
                .collect(),
        }
    }
}

/// The entries of `group` for each machine that has any, by the machine's number.
fn by_node(group: Range<usize>, log: &[f64], node: &[usize]) -> Vec<Visits> {
    let mut entries: Vec<usize> = group.collect();
    entries.sort_by_key(|&i| node[i]);
    let one = |own: &[usize]| Visits { node: node[own[0]], logs: own.iter().map(|&i| log[i]).collect() };
    entries.chunk_by(|&a, &b| node[a] == node[b]).map(one).collect()
}

impl Visits {
    /// The visits' biweight mean, at the x-th x, where visits scatter by `scale`.
    fn mean(mut self, x: usize, scale: f64) -> NodeMean {
        let start = median(&mut self.logs);
        let location = robust::biweight(&self.logs, start, scale);
        let within = location.error.powi(2);
        NodeMean { x, node: self.node, value: location.value, within, precision: 1.0, weight: 1.0 }
    }
}

/// The variance of visits to one x about the means of their machines, scaled so that its median is right (Wilson &
/// Hilferty 1931); `None` if no machine visited it twice.
fn scatter(own: &[Visits]) -> Option<f64> {
    let (mut sum, mut freedom) = (0.0, 0.0);
    for Visits { logs, .. } in own.iter().filter(|visits| visits.logs.len() > 1) {
        let mean = logs.iter().sum::<f64>() / logs.len() as f64;
        sum += logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>();
        freedom += logs.len() as f64 - 1.0;
    }
    (freedom > 0.0).then(|| sum / freedom / (1.0 - 2.0 / (9.0 * freedom)).powi(3))
}

/// The median of the variances within reach of the i-th x.
fn near(scatter: &[Option<f64>], i: usize) -> Option<f64> {
    let mut near: Vec<f64> = scatter[robust::near(i, REACH, scatter.len())].iter().flatten().copied().collect();
    (!near.is_empty()).then(|| median(&mut near))
}

/// For each of `count` places, the median of the values that `of` gives for that place; zero if there are none.
fn medians(means: &[NodeMean], count: usize, of: impl Fn(&NodeMean) -> (usize, f64)) -> Vec<f64> {
    let mut values = vec![Vec::new(); count];
    for (place, value) in means.iter().map(of) {
        values[place].push(value);
    }
    values.iter_mut().map(|values| if values.is_empty() { 0.0 } else { median(values) }).collect()
}

/// Like [`medians`], but the sum.
fn sums(means: &[NodeMean], count: usize, of: impl Fn(&NodeMean) -> (usize, f64)) -> Vec<f64> {
    let mut sums = vec![0.0; count];
    for (place, value) in means.iter().map(of) {
        sums[place] += value;
    }
    sums
}

fn center(added: &mut [f64]) {
    let middle = median(&mut added.to_vec());
    added.iter_mut().for_each(|added| *added -= middle);
}

#[cfg(test)]
mod tests;
