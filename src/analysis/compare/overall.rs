//! All cells of a series together: the ratio of two runs as a whole.

use std::collections::{BTreeMap, BTreeSet};

use super::cells::{Cells, Key};
use super::welch::{Welch, mean};
use super::{Decision, Design, Rules};
use crate::stats::quantile::median;

/// A series as a whole: the second run against the first, over the cells that both have.
#[derive(Clone, Debug, PartialEq)]
pub struct Overall {
    pub group: String,
    pub cells: usize,
    /// Geometric mean of the cells' ratios, and its 95 % interval.
    pub ratio: f64,
    pub low: f64,
    pub high: f64,
    /// Corrected for the number of series (Bonferroni).
    pub p_value: f64,
    pub decision: Decision,
}

impl Overall {
    /// Converts times per unit of work into rates, with the same decision.
    pub(super) fn as_rate(&mut self) {
        self.ratio = self.ratio.recip();
        (self.low, self.high) = (self.high.recip(), self.low.recip());
    }
}

/// A series in both runs: its blocks' means (with several runs a side, its runs'), on the logarithmic scale.
pub(super) struct Pair<'a> {
    pub(super) group: &'a str,
    pub(super) cells: usize,
    pub(super) first: Vec<f64>,
    pub(super) second: Vec<f64>,
    /// How far rounding may have moved the difference, as if all cells were rounded the same way.
    pub(super) rounding: f64,
}

/// One pair for each series for which both runs have at least two blocks with all of its common cells.
///
/// A block visits each cell once, so a disturbance of minutes moves many cells of a block alike. The cells are therefore not
/// independent, but the blocks are. A run is represented by its blocks' means over the cells, and the scatter of these means gives the
/// error of the difference of two runs.
///
/// With runs in turns, only the rounds that both runs have count, and the two means of a round have the same place.
pub(super) fn pairs<'a>(first: &'a Cells, second: &Cells, design: Design) -> Vec<Pair<'a>> {
    let groups: BTreeSet<&str> = first.keys().map(|key| key.group.as_str()).collect();
    let pair = |group: &'a str| {
        let common: Vec<&Key> = first.keys().filter(|key| key.group == group && second.contains_key(*key)).collect();
        let rounding = of_rounding(common.iter().map(|key| first[*key].rounding.hypot(second[*key].rounding)));
        let (mut first, mut second) = (means(first, &common), means(second, &common));
        if design == Design::InTurns {
            first.retain(|round, _| second.contains_key(round));
            second.retain(|round, _| first.contains_key(round));
        }
        let (first, second) = (Vec::from_iter(first.into_values()), Vec::from_iter(second.into_values()));
        let is_known = first.len().min(second.len()) >= 2;
        is_known.then_some(Pair { group, cells: common.len(), first, second, rounding })
    };
    groups.into_iter().filter_map(pair).collect()
}

/// How far rounding may have moved a mean over cells, as if all were rounded the same way.
pub(super) fn of_rounding(cells: impl Iterator<Item = f64>) -> f64 {
    mean(&cells.collect::<Vec<_>>())
}

/// The result for each of the pairs, corrected for their number.
pub(super) fn judge_all(pairs: &[Pair], rules: &Rules) -> Vec<Overall> {
    pairs.iter().map(|pair| judge(pair, pairs.len(), rules)).collect()
}

/// For each block that has all `keys`: the mean over them of its median time, on the logarithmic scale.
fn means(cells: &Cells, keys: &[&Key]) -> BTreeMap<i64, f64> {
    let mut blocks: BTreeMap<i64, Vec<f64>> = BTreeMap::new();
    let all = keys.iter().filter_map(|key| cells.get(*key)).flat_map(|blocks| &blocks.times);
    for (block, times) in all.filter(|(block, _)| **block >= 0) {
        blocks.entry(*block).or_default().push(median(&mut times.clone()));
    }
    let whole = blocks.into_iter().filter(|(_, medians)| medians.len() == keys.len());
    whole.map(|(block, medians)| (block, mean(&medians))).collect()
}

/// The decision on `pair`, corrected for the number of `pairs`.
fn judge(pair: &Pair, pairs: usize, rules: &Rules) -> Overall {
    let Pair { group, cells, first, second, rounding } = pair;
    let separate = || Welch::of_mean(first).and(Welch::of_mean(second));
    let paired = || Welch::paired(first, second).filter(|_| rules.design == Design::InTurns);
    let welch = paired().unwrap_or_else(separate).or_rounded(*rounding);
    let apart = mean(second) - mean(first);
    let p_value = (pairs as f64 * welch.two_sided(apart)).min(1.0);
    let decision = Decision::new(apart, p_value, welch.half(0.5 * rules.alpha / pairs as f64), rules);
    let (low, high) = ((apart - welch.half(0.025)).exp(), (apart + welch.half(0.025)).exp());
    Overall { group: (*group).to_owned(), cells: *cells, ratio: apart.exp(), low, high, p_value, decision }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::compare::cells::Blocks;

    #[test]
    fn two_runs_are_compared_by_welchs_test_of_their_blocks() {
        // scipy.stats.ttest_ind([0.9, 1.0, 1.4], [0.1, 0.2, 0.4], equal_var=False): t 4.9135, df 3.2, p 0.01386;
        // its confidence_interval(): 0.32467 to 1.40866
        let rules = Rules { margin: 0.1, ..Rules::default() };
        let (first, second) = (vec![0.1, 0.2, 0.4], vec![0.9, 1.0, 1.4]);
        let pair = Pair { group: "vgg16", cells: 3, first, second, rounding: 0.0 };
        let found = judge(&pair, 1, &rules);
        assert!((found.p_value - P).abs() < 1e-4, "{found:?}");
        assert!((found.low.ln() - LOW).abs() < 1e-4 && (found.high.ln() - HIGH).abs() < 1e-4, "{found:?}");
        assert_eq!(found.decision, Decision::Slower);
        let twice = judge(&pair, 4, &rules);
        assert!((twice.p_value - 4.0 * P).abs() < 4e-4 && twice.decision == Decision::Ambiguous, "{twice:?}");
    }

    #[test]
    fn what_moves_a_whole_block_is_not_taken_for_precision() {
        // 100 cells; the blocks of one run differ by 10 % from one another. A hundred independent cells would prove 1 %.
        let run = |shifts: [f64; 3]| -> Cells {
            let times =
                |x: u64| shifts.iter().zip(0i64..).map(|(shift, block)| (block, vec![x as f64 + shift])).collect();
            let blocks = |x: u64| Blocks { times: times(x), rounding: 0.0 };
            (0..100u64).map(|x| (Key { group: "vgg16".to_owned(), x }, blocks(x))).collect()
        };
        let (a, b) = (run([0.0, 0.1, 0.2]), run([0.05, 0.12, 0.22]));
        let overall = |a: &Cells, b: &Cells, margin: f64| {
            judge_all(&pairs(a, b, Design::Separate), &Rules { margin, ..Rules::default() })
        };
        let same = |margin: f64| overall(&a, &b, margin)[0].decision;
        assert_eq!((same(0.05), same(0.9)), (Decision::Ambiguous, Decision::Same));
        let first = |blocks: &Blocks| blocks.times.clone().into_iter().take(1).collect();
        let lone: Cells =
            a.iter().map(|(key, blocks)| (key.clone(), Blocks { times: first(blocks), rounding: 0.0 })).collect();
        assert_eq!(overall(&a, &lone, 0.01), []);
        // In turns only the differences scatter: 0.05, 0.02, 0.02.
        let turns = Rules { design: Design::InTurns, margin: 0.1, ..Rules::default() };
        assert_eq!(judge_all(&pairs(&a, &b, Design::InTurns), &turns)[0].decision, Decision::Same);
    }

    const P: f64 = 0.013_855_6;
    const LOW: f64 = 0.324_67;
    const HIGH: f64 = 1.408_66;
}
