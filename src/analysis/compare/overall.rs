//! All cells of a series together: the ratio of two runs as a whole.

use std::collections::{BTreeMap, BTreeSet};

use super::{Cells, Decision, Rules, two_sided, welch};
use crate::stats::distribution::t_upper_quantile;
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

/// One for each series of which both runs have at least two blocks with all of its common cells.
///
/// A block goes once through all cells, so that what disturbs the machine for minutes moves many cells of a block alike. The cells
/// are therefore not independent; the blocks are: a run is its blocks' means over the cells, and the difference of two runs has
/// the error that those means show.
pub(super) fn overall(first: &Cells, second: &Cells, rules: &Rules) -> Vec<Overall> {
    let groups: BTreeSet<&str> = first.keys().map(|(group, _)| group.as_str()).collect();
    let pairs: Vec<_> = groups
        .iter()
        .filter_map(|group| {
            let common = first.keys().filter(|key| key.0 == *group && second.contains_key(*key));
            let common: Vec<_> = common.collect();
            Some((*group, common.len(), means(first, &common)?, means(second, &common)?))
        })
        .collect();
    let rivals = pairs.len() as f64;
    pairs.into_iter().map(|(group, cells, a, b)| judge((group, cells), &a, &b, (rules, rivals))).collect()
}

/// For each block that has all `keys`: the mean over them of its median time, on the logarithmic scale; `None` for fewer than two.
fn means(cells: &Cells, keys: &[&(String, u64)]) -> Option<Vec<f64>> {
    let mut blocks: BTreeMap<i64, Vec<f64>> = BTreeMap::new();
    for (block, times) in keys.iter().filter_map(|key| cells.get(*key)).flatten().filter(|(block, _)| **block >= 0) {
        blocks.entry(*block).or_default().push(median(&mut times.clone()));
    }
    let whole = blocks.into_values().filter(|medians| medians.len() == keys.len());
    let means: Vec<f64> = whole.map(|medians| medians.iter().sum::<f64>() / keys.len() as f64).collect();
    (means.len() >= 2).then_some(means)
}

fn judge((group, cells): (&str, usize), a: &[f64], b: &[f64], (rules, rivals): (&Rules, f64)) -> Overall {
    let ((mean_a, error_a), (mean_b, error_b)) = (mean_and_error(a), mean_and_error(b));
    let (error, freedom) = welch((error_a, a.len()), (error_b, b.len()));
    let apart = mean_b - mean_a;
    let half = |tail: f64| t_upper_quantile(tail, freedom) * error;
    let p_value = (rivals * two_sided(apart, error, freedom)).min(1.0);
    let decision = Decision::new(apart, p_value, half(0.5 * rules.alpha / rivals), rules);
    let (low, high) = ((apart - half(0.025)).exp(), (apart + half(0.025)).exp());
    Overall { group: group.to_owned(), cells, ratio: apart.exp(), low, high, p_value, decision }
}

fn mean_and_error(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, (variance / n).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_runs_are_told_apart_by_welchs_test_of_their_blocks() {
        // scipy.stats.ttest_ind([0.9, 1.0, 1.4], [0.1, 0.2, 0.4], equal_var=False): t 4.9135, df 3.2, p 0.01386;
        // its confidence_interval(): 0.32467 to 1.40866
        let rules = Rules { alpha: 0.05, margin: 0.1, seed: 1 };
        let found = judge(("vgg16", 3), &[0.1, 0.2, 0.4], &[0.9, 1.0, 1.4], (&rules, 1.0));
        assert!((found.p_value - P).abs() < 1e-4, "{found:?}");
        assert!((found.low.ln() - LOW).abs() < 1e-4 && (found.high.ln() - HIGH).abs() < 1e-4, "{found:?}");
        assert_eq!(found.decision, Decision::Slower);
        let twice = judge(("vgg16", 3), &[0.1, 0.2, 0.4], &[0.9, 1.0, 1.4], (&rules, 4.0));
        assert!((twice.p_value - 4.0 * P).abs() < 4e-4 && twice.decision == Decision::Ambiguous, "{twice:?}");
    }

    #[test]
    fn what_moves_a_whole_block_is_not_taken_for_precision() {
        // 100 cells; the blocks of one run differ by 10 % from one another. A hundred independent cells would prove 1 %.
        let run = |shifts: [f64; 3]| -> Cells {
            let blocks =
                |x: u64| shifts.iter().zip(0i64..).map(|(shift, block)| (block, vec![x as f64 + shift])).collect();
            (0..100u64).map(|x| (("vgg16".to_owned(), x), blocks(x))).collect()
        };
        let (a, b) = (run([0.0, 0.1, 0.2]), run([0.05, 0.12, 0.22]));
        let same = |margin: f64| overall(&a, &b, &Rules { margin, ..Rules::default() })[0].decision;
        assert_eq!((same(0.05), same(0.9)), (Decision::Ambiguous, Decision::Same));
        let lone: Cells =
            a.iter().map(|(key, blocks)| (key.clone(), blocks.clone().into_iter().take(1).collect())).collect();
        assert_eq!(overall(&a, &lone, &Rules::default()), []);
    }

    const P: f64 = 0.013_855_6;
    const LOW: f64 = 0.324_67;
    const HIGH: f64 = 1.408_66;
}
