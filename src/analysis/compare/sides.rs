//! Several runs a side: runs are the unit, not blocks.
//!
//! The blocks of a run share its process, its memory layout and its hour. What differs from run to run can only be seen in several runs of
//! the same code (Kalibera & Jones 2013, Rigorous benchmarking in reasonable time; 2020, Quantifying performance changes with effect size
//! confidence intervals: the variance of the highest level of repetition decides). A run r of a side counts once for each cell c, with the
//! median y of its blocks' medians, on the logarithmic scale:
//!
//! ```text
//! y_rc = m_c + g_r + e_rc     g: what moves all cells of a run alike, such as the clock; e: what is a cell's own, such as its layout in memory
//! g:  the difference of the runs' means over the cells, by Welch's test (1947) of these means
//! e:  the deviations from the run's mean; their variance at each cell from both sides, moderated over the cells
//! ```
//!
//! With three runs a side, g has few degrees of freedom and e has many, as cells share what is known about it. So both have intervals of
//! their own, each with half of `alpha`: `h_g` for the series and `h_e` for a cell, the latter corrected for the number of cells by Holm's
//! procedure (1979). A cell is named faster or slower if its ratio is not 1
//!
//! - by `h_g + h_e`, which is the simultaneous interval of its ratio; or
//! - it differs from the other cells by more than `h_e`, and from 1 by more than the root of `h_g^2 + h_e^2` (Zou & Donner 2008, Construction of confidence
//!   limits about effect measures), here with all of `alpha` for `h_g`. A clock that differs between runs does not hide such a cell.
//!
//! Both need a deviation that code without a change has in at most `alpha` of comparisons. `tests/simulated.rs` counts them.

use std::collections::{BTreeMap, BTreeSet};

use super::cells::{Blocks, Cells, Key, in_one_unit};
use super::common::nothing_in_common;
use super::welch::{self, Welch};
use super::{
    ComparedCell, Comparison, Decision, Design, Rules, Series, Spread, When, left_out, moderated, overall, runs,
};
use crate::error::{Error, Result};
use crate::stats::distribution::t_upper;
use crate::stats::quantile::median;

/// No p-value is believed below this.
const LEAST: f64 = 1e-6;

/// How a series moved that is in all runs of both sides: as a whole, and each cell beside it.
struct Moved<'a> {
    group: &'a str,
    keys: Vec<&'a Key>,
    /// For each side and run, the cells in the order of `keys`.
    sides: [Vec<Vec<f64>>; 2],
    /// How far rounding may have moved the difference.
    rounding: f64,
    /// The means of each side's runs over the cells.
    means: [Vec<f64>; 2],
    /// The difference of the sides as wholes.
    whole: Welch,
    /// The variance of a run's deviation at each cell, and its degrees of freedom.
    variances: Vec<f64>,
    freedom: f64,
}

/// A cell's difference and its two errors: of its series, and of the cell beside it.
struct Shift<'a> {
    of: &'a Moved<'a>,
    cell: usize,
    apart: f64,
    /// Beyond that of the series.
    beside: f64,
    own: Welch,
    /// The series of the comparison.
    series: f64,
}

/// Compares two sides of several runs each.
///
/// # Errors
/// [`crate::error::Kind::Data`] where a side of several has a single counterpart, times are in a unit that is not known, or no cell is in all runs.
pub fn sides(first: &[Vec<Series>], second: &[Vec<Series>], rules: &Rules) -> Result<Comparison> {
    match (first, second) {
        ([first], [second]) => return self::runs(first, second, rules),
        ([_, _, ..], [_, _, ..]) => {}
        _ => {
            return Err(Error::data("one run on a side shows nothing of what differs from run to run")
                .hint("give at least two runs a side, better three or more, measured by turns"));
        }
    }
    let all: Vec<&[Series]> = first.iter().chain(second).map(Vec::as_slice).collect();
    let left_out = left_out([first, second].map(|side| side.iter().flatten()));
    let values: Vec<BTreeMap<Key, OfRun>> = in_one_unit(&all, left_out)?.iter().map(once).collect();
    let mut found = judged(&values, first.len(), rules);
    if found.cells.is_empty() {
        let [one, .., last] = &values[..] else { return Ok(found) };
        let is_apart = |run: &&BTreeMap<Key, OfRun>| run.keys().all(|key| !one.contains_key(key));
        let other = values.iter().find(is_apart).unwrap_or(last);
        let keys = [one.keys(), other.keys()];
        return Err(nothing_in_common("no cell is in all of the runs", keys, Design::Separate));
    }
    found.when = When::of_sides(first, second);
    found.in_kind_of(all[0]);
    Ok(found)
}

/// What a run says about a cell.
struct OfRun {
    /// The median of its blocks' medians.
    middle: f64,
    rounding: f64,
}

fn once(cells: &Cells) -> BTreeMap<Key, OfRun> {
    let of = |blocks: &Blocks| OfRun {
        middle: median(&mut blocks.times.values().map(|times| median(&mut times.clone())).collect::<Vec<_>>()),
        rounding: blocks.rounding,
    };
    cells.iter().map(|(key, blocks)| (key.clone(), of(blocks))).collect()
}

/// The first `split` runs are the first side.
fn judged(runs: &[BTreeMap<Key, OfRun>], split: usize, rules: &Rules) -> Comparison {
    let known: BTreeSet<&Key> = runs.iter().flat_map(BTreeMap::keys).collect();
    let of_first: BTreeSet<&Key> = runs[..split].iter().flat_map(BTreeMap::keys).collect();
    let common: BTreeSet<&Key> =
        known.iter().copied().filter(|key| runs.iter().all(|run| run.contains_key(key))).collect();
    let lacking = |key: &&&Key| !common.contains(*key) && runs[split..].iter().any(|run| !run.contains_key(**key));
    let missing = of_first.iter().filter(lacking).map(|key| (key.group.clone(), f64::from_bits(key.x))).collect();
    let groups: BTreeSet<&str> = common.iter().map(|key| key.group.as_str()).collect();
    let moved: Vec<Moved> = groups.into_iter().map(|group| Moved::of(group, &common, runs, split)).collect();
    let pairs: Vec<overall::Pair> = moved.iter().map(Moved::pair).collect();
    Comparison {
        cells: decided(&moved, rules),
        overall: overall::judge_all(&pairs, &Rules { design: Design::Separate, ..*rules }),
        spread: moved.iter().map(Moved::spread).collect(),
        unmatched: known.len() - common.len(),
        missing,
        runs: [split, runs.len() - split],
        ..Comparison::default()
    }
}

impl<'a> Moved<'a> {
    /// Both sides of the series `group`, in its cells that are in `common`.
    fn of(group: &'a str, common: &BTreeSet<&'a Key>, runs: &[BTreeMap<Key, OfRun>], split: usize) -> Self {
        let keys: Vec<&Key> = common.iter().copied().filter(|key| key.group == group).collect();
        let side = |runs: &[BTreeMap<Key, OfRun>]| -> Vec<Vec<f64>> {
            runs.iter().map(|run| keys.iter().map(|key| run[*key].middle).collect()).collect()
        };
        let (sides, cells) = ([side(&runs[..split]), side(&runs[split..])], keys.len());
        let of_one = overall::of_rounding(runs.iter().flat_map(|run| keys.iter().map(|key| run[*key].rounding)));
        let rounding = std::f64::consts::SQRT_2 * of_one;
        let means = sides.each_ref().map(|runs| runs.iter().map(|run| welch::mean(run)).collect::<Vec<f64>>());
        let whole = Welch::of_mean(&means[0]).and(Welch::of_mean(&means[1])).or_rounded(rounding);
        let own = (runs.len() - 2) as f64;
        let squares = |cell: usize| -> f64 {
            let beside = |(runs, means): (&Vec<Vec<f64>>, &Vec<f64>)| {
                welch::squares(&runs.iter().zip(means).map(|(run, mean)| run[cell] - mean).collect::<Vec<_>>())
            };
            sides.iter().zip(&means).map(beside).sum()
        };
        let (mut variances, mut freedom) = (vec![0.0], own);
        if cells > 1 {
            variances = (0..cells).map(|cell| squares(cell) / (own * share(cells))).collect();
            freedom = moderated::moderate(&mut variances, own, own * (cells - 1) as f64);
        }
        Self { group, keys, sides, rounding, means, whole, variances, freedom }
    }

    fn pair(&self) -> overall::Pair<'_> {
        let [first, second] = self.means.clone();
        overall::Pair { group: self.group, cells: self.keys.len(), first, second, rounding: self.rounding }
    }

    /// The variance of the runs of a side as wholes.
    fn between(&self) -> f64 {
        let freedom = self.means.iter().map(|means| means.len() - 1).sum::<usize>() as f64;
        self.means.iter().map(|means| welch::squares(means)).sum::<f64>() / freedom
    }

    fn spread(&self) -> Spread {
        Spread {
            group: self.group.to_owned(),
            whole: self.between().sqrt(),
            cell: median(&mut self.variances.clone()).sqrt(),
        }
    }

    fn shift(&self, cell: usize, series: usize) -> Shift<'_> {
        let [first, second] = self.sides_at(cell);
        let apart = second - first;
        let beside = apart - (welch::mean(&self.means[1]) - welch::mean(&self.means[0]));
        let runs: f64 = self.means.iter().map(|means| (means.len() as f64).recip()).sum();
        let own = Welch { error: (self.variances[cell] * runs * self.share()).sqrt(), freedom: self.freedom };
        Shift { of: self, cell, apart, beside, own, series: series as f64 }
    }

    fn share(&self) -> f64 {
        share(self.keys.len())
    }

    /// The mean of each side's runs at a cell.
    fn sides_at(&self, cell: usize) -> [f64; 2] {
        self.sides.each_ref().map(|runs| welch::mean(&runs.iter().map(|run| run[cell]).collect::<Vec<_>>()))
    }
}

/// A deviation from the mean of n cells has 1 - 1 / n of its variance.
fn share(cells: usize) -> f64 {
    1.0 - 1.0 / cells as f64
}

impl Shift<'_> {
    /// Whether it is its series' only cell, so that nothing is beside it.
    fn is_lone(&self) -> bool {
        self.of.keys.len() == 1
    }

    /// The error of the difference: of the series and of the cell beside it.
    fn total(&self) -> Welch {
        self.of.whole.and(self.own)
    }

    /// How far the simultaneous interval reaches on either side, of `cells` cells at the level `alpha`.
    fn reach(&self, alpha: f64, cells: usize) -> f64 {
        self.whole_half(alpha) + self.own_half(alpha, cells)
    }

    fn whole_half(&self, alpha: f64) -> f64 {
        self.of.whole.half(if self.is_lone() { 0.5 } else { 0.25 } * alpha / self.series)
    }

    fn own_half(&self, alpha: f64, cells: usize) -> f64 {
        if self.is_lone() { 0.0 } else { self.own.half(0.25 * alpha / cells as f64) }
    }

    fn is_named(&self, alpha: f64, cells: usize) -> bool {
        let own = self.own_half(alpha, cells);
        let away = self.apart.abs();
        if away <= own {
            return false;
        }
        let alone = self.beside.abs() > own && self.beside.signum() == self.apart.signum();
        alone && away > self.of.whole.half(0.5 * alpha / self.series).hypot(own) || away > own + self.whole_half(alpha)
    }

    /// The smallest level at which the cell would be named, of `cells` cells.
    fn p(&self, cells: usize) -> f64 {
        let is_certain = self.of.whole.error == 0.0 && self.own.error == 0.0;
        if is_certain || !self.is_named(1.0, cells) {
            // Without any scatter between runs nothing is proven.
            return 1.0;
        }
        let (mut low, mut high) = (LEAST.ln(), 0.0f64);
        for _ in 0..14 {
            let middle = 0.5 * (low + high);
            if self.is_named(middle.exp(), cells) { high = middle } else { low = middle }
        }
        high.exp()
    }
}

fn decided<'a>(moved: &'a [Moved<'a>], rules: &Rules) -> Vec<ComparedCell> {
    let of = |one: &'a Moved| (0..one.keys.len()).map(move |cell| one.shift(cell, moved.len()));
    let mut shifts: Vec<Shift> = moved.iter().flat_map(of).collect();
    // The most certain first; with any order, each is corrected for the cells that are left.
    let certainty = |shift: &Shift| t_upper(shift.apart.abs() / shift.total().error, shift.total().freedom);
    shifts.sort_by(|a, b| certainty(a).total_cmp(&certainty(b)));
    let count = shifts.len();
    let mut floor = 0.0f64;
    let mut cells: Vec<ComparedCell> = Vec::with_capacity(count);
    for (rank, shift) in shifts.into_iter().enumerate() {
        if floor < 1.0 {
            floor = floor.max(shift.p(count - rank));
        }
        let decision = Decision::new(shift.apart, floor, shift.reach(rules.alpha, count), rules);
        let Shift { of, cell, .. } = shift;
        let between = Some((of.between() + of.variances[cell] * of.share()).sqrt());
        let alone = shift.total().half(0.025);
        let cell = ComparedCell::new(of.keys[cell].clone(), of.sides_at(cell), alone, floor, decision);
        cells.push(ComparedCell { between, ..cell });
    }
    cells.sort_by(|a, b| a.group.cmp(&b.group).then(a.x.total_cmp(&b.x)));
    cells
}

#[cfg(test)]
mod tests;
