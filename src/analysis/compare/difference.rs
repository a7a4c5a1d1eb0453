//! How far two runs lie apart, cell by cell.

use std::collections::BTreeSet;

use super::cells::{Blocks, Cells, Key};
use super::welch::{self, Welch};
use super::{ComparedCell, Comparison, Decision, Design, Rules};
use crate::measure::BlockMedian;
use crate::stats::quantile::median;

/// A cell on its way to a decision.
pub(super) struct Difference {
    /// Which of the runs that are held against the first.
    pub(super) run: usize,
    pub(super) key: Key,
    pub(super) test: WelchTest,
}

pub(super) struct WelchTest {
    pub(super) first: f64,
    pub(super) second: f64,
    pub(super) welch: Welch,
    pub(super) p: f64,
    /// How far rounding may have moved the difference.
    pub(super) rounding: f64,
}

/// The difference of each cell of `first` from the same cell of `other`, and a comparison that has so far only the cells without a
/// counterpart. `run` is the place of `other` among the runs.
pub(super) fn differences(first: &Cells, other: &Cells, run: usize, rules: &Rules) -> (Vec<Difference>, Comparison) {
    let difference = |(key, blocks): (&Key, &Blocks)| {
        let test = WelchTest::of(blocks, other.get(key)?, rules)?;
        Some(Difference { run, key: key.clone(), test })
    };
    let differences: Vec<Difference> = first.iter().filter_map(difference).collect();
    let unmatched = first.len() + other.len() - 2 * differences.len();
    let both: BTreeSet<&Key> = differences.iter().map(|one| &one.key).collect();
    let missing =
        first.keys().filter(|key| !both.contains(key)).map(|key| (key.group.clone(), f64::from_bits(key.x))).collect();
    (differences, Comparison { unmatched, missing, ..Comparison::default() })
}

/// Adds each difference to the comparison of its run, with p-values that are corrected together.
pub(super) fn decided(mut differences: Vec<Difference>, found: &mut [Comparison], rules: &Rules) {
    differences.sort_by(|a, b| a.test.p.total_cmp(&b.test.p));
    let count = differences.len();
    let mut floor = 0.0f64;
    for (rank, difference) in differences.into_iter().enumerate() {
        // Holm: the smallest p-value is multiplied by the number of cells, the next by one less, and none falls below it.
        floor = floor.max((difference.test.p * (count - rank) as f64).min(1.0));
        found[difference.run].cells.push(judge(difference, floor, count, rules));
    }
    for comparison in found {
        comparison.cells.sort_by(|a, b| a.group.cmp(&b.group).then(a.x.total_cmp(&b.x)));
    }
}

impl WelchTest {
    pub(super) fn of(a: &Blocks, b: &Blocks, rules: &Rules) -> Option<Self> {
        match rules.design {
            Design::Separate => Self::of_separate(a, b),
            Design::InTurns => Self::of_rounds(a, b),
        }
    }

    /// From the rounds in which both were measured; `None` without any.
    fn of_rounds(a: &Blocks, b: &Blocks) -> Option<Self> {
        let numbered = a.times.iter().filter(|(round, _)| **round >= 0);
        let both = numbered
            .filter_map(|(round, first)| Some([first, b.times.get(round)?].map(|times| median(&mut times.clone()))));
        let (first, second): (Vec<f64>, Vec<f64>) = both.map(|[first, second]| (first, second)).unzip();
        let rounding = a.rounding.hypot(b.rounding);
        let welch = Welch::paired(&first, &second)?.or_rounded(rounding);
        let (first, second) = (welch::mean(&first), welch::mean(&second));
        Some(Self { first, second, welch, p: welch.two_sided(second - first), rounding })
    }

    fn of_separate(a: &Blocks, b: &Blocks) -> Option<Self> {
        let of = |blocks: &Blocks| BlockMedian::of(&blocks.times.values().cloned().collect::<Vec<_>>());
        let rounding = a.rounding.hypot(b.rounding);
        let (a, b) = (of(a)?, of(b)?);
        let [of_a, of_b] = [&a, &b].map(|of| Welch { error: of.error, freedom: (of.blocks.max(2) - 1) as f64 });
        let welch = of_a.and(of_b).or_rounded(rounding);
        let p = welch.two_sided(b.median - a.median);
        Some(Self { first: a.median, second: b.median, welch, p, rounding })
    }
}

fn judge(d: Difference, p_value: f64, count: usize, rules: &Rules) -> ComparedCell {
    let WelchTest { first, second, welch, .. } = d.test;
    let wide = welch.half(0.5 * rules.alpha / count as f64);
    let decision = Decision::new(second - first, p_value, wide, rules);
    ComparedCell::new(d.key, [first, second], welch.half(0.025), p_value, decision)
}
