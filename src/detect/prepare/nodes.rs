//! What the machines differ by that measured one series together.
//!
//! On the logarithmic scale visit v to x number c(v) on machine m(v) is
//!
//! ```text
//! y_v = mu_c + a_m + b_cm + e_v,    var b = tau^2
//! ```
//!
//! a is what a machine adds to all x: it is fitted with the levels by medians of rows and columns in turn (median polish; Tukey 1977), so that
//! it does not matter that some machines visited some x more often, and subtracted. b is what it adds to one x alone. It cannot be subtracted, and
//! the visits of one machine share it: what is known of mu_c then depends on the number of machines and not only on that of
//! visits. tau^2 is estimated over all x, and the error of each x grows by what its machines share ([`Nodes::shared`]).

use super::prepared::Prepared;
use super::reduce::Reduced;
use crate::detect::findings::{NodeEffect, Note};
use crate::stats::quantile::median;
use crate::stats::robust::{self, MAD_TO_SIGMA};

/// Rounds of the polish; the changes of a fourth are far below any error.
const ROUNDS: usize = 4;
/// Squared standard errors beyond which a deviation counts no more than there, and the mean of squared normal values that are cut off
/// there (Huber 1981, 5.2, proposal 2): scipy.stats.chi2.expect(lambda s: min(s, 6.25), (1,)).
const CUT: f64 = 6.25;
const MEAN: f64 = 0.977_560;
/// Neighbours on each side that share their scatter, as in [`super::reduce`].
const REACH: usize = 7;
/// Standard deviations at which a visit is clipped.
const CLIP: f64 = 3.0;
/// The standard deviation of a median over that of the mean, for normal data: sqrt(pi / 2).
const MEDIAN_LOSS: f64 = 1.253;

/// The machines of a series.
pub(crate) struct Nodes {
    pub effects: Vec<NodeEffect>,
    /// For each x, its visits on each machine that visited it: their places in the columns.
    visits: Vec<Vec<Vec<usize>>>,
}

/// Subtracts from `series` what each machine adds to all x; `None` where one machine measured it, or it is not known which.
pub(crate) fn subtract(series: &mut Prepared, names: &[String]) -> Option<Nodes> {
    let node = series.node.clone()?;
    let mut present = node.clone();
    present.sort_unstable();
    present.dedup();
    if present.len() < 2 {
        return None;
    }
    let place: Vec<usize> = node.iter().map(|node| present.partition_point(|other| other < node)).collect();
    let added = polish(series, &place, present.len());
    for (log, place) in series.log.iter_mut().zip(&place) {
        *log -= added[*place];
    }
    let visits = visits(series, &place, present.len());
    let effect = |(at, &number): (usize, &u32)| {
        let name = names.get(number as usize).cloned().unwrap_or_else(|| format!("machine {}", at + 1));
        effect(series, &place, at, added[at], name)
    };
    Some(Nodes { effects: present.iter().enumerate().map(effect).collect(), visits })
}

/// What each machine adds to ln y, relative to the middle of all.
fn polish(series: &Prepared, place: &[usize], count: usize) -> Vec<f64> {
    let cell = series.membership();
    let mut added = vec![0.0; count];
    for _ in 0..ROUNDS {
        let rest = |i: usize| series.log[i] - added[place[i]];
        let levels: Vec<f64> =
            series.groups.iter().map(|g| median(&mut g.clone().map(rest).collect::<Vec<_>>())).collect();
        let mut of_node = vec![Vec::new(); count];
        for i in 0..place.len() {
            of_node[place[i]].push(series.log[i] - levels[cell[i]]);
        }
        added = of_node.iter_mut().map(|values| median(values)).collect();
        let middle = median(&mut added.clone());
        added.iter_mut().for_each(|added| *added -= middle);
    }
    added
}

fn visits(series: &Prepared, place: &[usize], count: usize) -> Vec<Vec<Vec<usize>>> {
    let of_x = |group: &std::ops::Range<usize>| {
        let mut own = vec![Vec::new(); count];
        group.clone().for_each(|i| own[place[i]].push(i));
        own.retain(|visits| !visits.is_empty());
        own
    };
    series.groups.iter().map(of_x).collect()
}

/// One machine, with an interval of two standard errors. The visits of one block share what the machine did meanwhile, so blocks count, where
/// there are at least three of them.
fn effect(series: &Prepared, place: &[usize], at: usize, added: f64, name: String) -> NodeEffect {
    let cell = series.membership();
    let levels: Vec<f64> = series.groups.iter().map(|g| median(&mut series.log[g.clone()].to_vec())).collect();
    let own: Vec<usize> = (0..place.len()).filter(|&i| place[i] == at).collect();
    let rest = |i: usize| series.log[i] - levels[cell[i]];
    let mut blocks: Vec<(u32, f64)> =
        series.block.iter().flat_map(|block| own.iter().map(|&i| (block[i], rest(i)))).collect();
    blocks.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let middles: Vec<f64> = blocks.chunk_by(|a, b| a.0 == b.0).map(|block| block[block.len() / 2].1).collect();
    let values = if middles.len() >= 3 { middles } else { own.iter().map(|&i| rest(i)).collect() };
    let spread = MAD_TO_SIGMA * robust::mad(&values, median(&mut values.clone()));
    let error = MEDIAN_LOSS * spread / (values.len() as f64).sqrt();
    NodeEffect {
        name,
        visits: own.len(),
        relative: added.exp_m1(),
        low: (added - 2.0 * error).exp_m1(),
        high: (added + 2.0 * error).exp_m1(),
    }
}

impl Nodes {
    pub fn note(&self) -> Note {
        let relative = || self.effects.iter().map(|effect| effect.relative);
        let (low, high) = (relative().fold(f64::INFINITY, f64::min), relative().fold(f64::NEG_INFINITY, f64::max));
        let apart = self.effects.iter().filter(|effect| effect.stands_out()).cloned().collect();
        Note::Nodes { count: self.effects.len(), low, high, apart }
    }

    /// `reduced` with the error that visits on one machine share.
    ///
    /// The scatter of single visits, from which the errors were computed, holds tau^2 already, as if each visit had been on a machine
    /// of its own. A share w_m of the visits on machine m makes the variance of their mean larger by tau^2 (sum w_m^2 - 1 / n).
    pub fn widen(&self, log: &[f64], reduced: &mut Reduced) {
        let variance = self.of_interaction(log, reduced);
        for (own, error) in self.visits.iter().zip(&mut reduced.error) {
            let count: f64 = own.iter().map(|visits| visits.len() as f64).sum();
            let squares: f64 = own.iter().map(|visits| (visits.len() as f64 / count).powi(2)).sum();
            *error = error.hypot((variance * (squares - 1.0 / count).max(0.0)).sqrt());
        }
    }

    /// tau^2: the variance of the means of machines at one x beyond that of their visits, from all squared deviations.
    fn of_interaction(&self, log: &[f64], reduced: &Reduced) -> f64 {
        let mut deviations = Vec::new();
        let within = self.within(log);
        for (i, own) in self.visits.iter().enumerate().filter(|(_, own)| own.len() > 1) {
            let (center, scale) = (reduced.center[i], reduced.scale[i]);
            let clipped = |v: &usize| (log[*v] - center).clamp(-CLIP * scale, CLIP * scale);
            let means: Vec<f64> =
                own.iter().map(|visits| visits.iter().map(clipped).sum::<f64>() / visits.len() as f64).collect();
            let middle = means.iter().sum::<f64>() / means.len() as f64;
            let left = 1.0 - 1.0 / means.len() as f64;
            let variance = near(&within, i).unwrap_or(scale * scale);
            deviations.extend(own.iter().zip(&means).map(|(visits, mean)| Deviation {
                square: (mean - middle).powi(2) / left,
                within: variance / visits.len() as f64,
            }));
        }
        // Where no machine came back to an x, the scatter of visits cannot be separated from tau, and need not be: each visit is one of tau.
        if deviations.is_empty() || self.visits.iter().flatten().all(|visits| visits.len() == 1) {
            return 0.0;
        }
        let ratio = |tau: f64| {
            let cut = deviations.iter().map(|d| (d.square / (tau + d.within)).min(CUT));
            cut.sum::<f64>() / deviations.len() as f64 / MEAN
        };
        if ratio(0.0) <= 1.0 {
            return 0.0;
        }
        let (mut low, mut high) = (0.0, deviations.iter().map(|d| d.square).fold(0.0, f64::max) / MEAN);
        for _ in 0..50 {
            let tau = 0.5 * (low + high);
            if ratio(tau) > 1.0 { low = tau } else { high = tau }
        }
        0.5 * (low + high)
    }
}

impl Nodes {
    fn within(&self, log: &[f64]) -> Vec<Option<f64>> {
        self.visits.iter().map(|own| within(own, log)).collect()
    }
}

/// The deviation of one machine's mean at one x from that of all machines.
struct Deviation {
    /// Squared, on the scale of its own variance.
    square: f64,
    /// What the scatter of its visits explains of it.
    within: f64,
}

/// The middle of the variances within reach of the i-th x.
fn near(within: &[Option<f64>], i: usize) -> Option<f64> {
    let near = i.saturating_sub(REACH)..(i + REACH + 1).min(within.len());
    let mut near: Vec<f64> = within[near].iter().flatten().copied().collect();
    (!near.is_empty()).then(|| median(&mut near))
}

/// The variance of visits to one x about the means of their machines, such that its median is right (Wilson & Hilferty 1931); `None` where
/// none visited it twice.
fn within(own: &[Vec<usize>], log: &[f64]) -> Option<f64> {
    let (mut sum, mut freedom) = (0.0, 0.0);
    for visits in own.iter().filter(|visits| visits.len() > 1) {
        let mean = visits.iter().map(|&v| log[v]).sum::<f64>() / visits.len() as f64;
        sum += visits.iter().map(|&v| (log[v] - mean).powi(2)).sum::<f64>();
        freedom += visits.len() as f64 - 1.0;
    }
    (freedom > 0.0).then(|| sum / freedom / (1.0 - 2.0 / (9.0 * freedom)).powi(3))
}
