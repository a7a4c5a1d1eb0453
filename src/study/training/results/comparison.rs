//! Cells against the fastest, and engines against one another.
//!
//! What is compared is the time of an example: with `drop_last`, or without damaged files, an epoch has fewer of them in some cells. The epochs of
//! one visit share its luck, so that a block gives one ratio, that of the means of the epochs which both cells have there.

use std::collections::BTreeMap;

use super::{CellEpochs, Results};
use crate::stats::repetitions::{Interval, Ratio, Repetitions, paired_ratio};
use crate::study::training::TrainingRow;

/// How often an interval may miss; of those that are told together, any of them.
const ERROR: f64 = 0.05;

/// Two cells beside each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Compared {
    /// The time of the second over that of the first: the geometric mean of the blocks that both have; without such a block, of their means.
    pub ratio: f64,
    /// `None` for fewer than two such blocks.
    pub interval: Option<Interval>,
}

/// Compares two cells. `among`: the number of pairs that such a statement may be about; the intervals of all of them hold together.
pub(super) fn compare(first: &CellEpochs, second: &CellEpochs, among: usize) -> Compared {
    let mut blocks: BTreeMap<i64, [f64; 2]> = BTreeMap::new();
    let example_s = |row: &TrainingRow| row.epoch_time_s.unwrap_or(f64::NAN) / row.examples as f64;
    for own in &first.rows {
        let same = |other: &&TrainingRow| (other.block, other.epoch) == (own.block, own.epoch);
        if let Some(other) = second.rows.iter().find(same) {
            let [sum, others] = blocks.entry(own.block).or_default();
            *sum += example_s(own);
            *others += example_s(other);
        }
    }
    let ratios: Vec<f64> = blocks.into_values().map(|[first, second]| second / first).collect();
    let logs: Vec<f64> = ratios.iter().map(|ratio| ratio.ln()).collect();
    let ratio = Repetitions::of(&logs).map_or(second.example_s() / first.example_s(), |logs| logs.mean.exp());
    Compared { ratio, interval: paired_ratio(&ratios, 1.0 - ERROR / among.max(1) as f64) }
}

/// A cell and how many times slower it is than the fastest.
#[derive(Clone, Debug, PartialEq)]
pub struct Rival<'a> {
    pub cell: &'a CellEpochs,
    pub ratio: Ratio,
    /// The interval of the ratio of the two times, from the blocks in which both were measured.
    pub interval: Option<Interval>,
}

impl Rival<'_> {
    /// Whether it is shown to be slower than the fastest.
    pub fn is_slower(&self) -> bool {
        self.interval.is_some_and(|ratio| ratio.low > 1.0)
    }
}

/// The fastest cell, and all others, the fast ones first; `None` without cells.
#[derive(Clone, Debug, PartialEq)]
pub struct Against<'a> {
    pub fastest: &'a CellEpochs,
    pub rivals: Vec<Rival<'a>>,
    /// How many pairs of cells the intervals hold for together.
    pub pairs: usize,
}

impl Against<'_> {
    /// How many cells the fastest is not shown to differ from.
    pub fn not_distinguished(&self) -> usize {
        self.rivals.iter().filter(|rival| !rival.is_slower()).count()
    }

    /// Whether some cells train on more examples in an epoch than others.
    pub fn is_uneven(&self) -> bool {
        self.rivals.iter().any(|rival| rival.cell.examples != self.fastest.examples)
    }
}

/// Compares every cell with the fastest: the one that wins against each of the others that it meets, in the blocks that both have.
pub fn relative_to_fastest(study: &Results) -> Option<Against<'_>> {
    let count = study.cells.len();
    // The fastest is chosen after the fact, so that each pair of cells could have become one of those that are told.
    let pairs = count * count.saturating_sub(1) / 2;
    let fastest =
        study.cells.iter().reduce(|best, cell| if compare(best, cell, pairs).ratio < 1.0 { cell } else { best })?;
    let others = study.cells.iter().filter(|cell| !std::ptr::eq(*cell, fastest));
    let mut rivals: Vec<Rival> = others
        .map(|cell| {
            let Compared { ratio, interval } = compare(fastest, cell, pairs);
            let epochs = fastest.times.times_faster_than(&cell.times);
            let sd = epochs.sd.map(|sd| sd / epochs.value * ratio);
            Rival { cell, ratio: Ratio { value: ratio, sd }, interval }
        })
        .collect();
    rivals.sort_by(|a, b| a.ratio.value.total_cmp(&b.ratio.value));
    Some(Against { fastest, rivals, pairs })
}

/// The same training by two engines.
#[derive(Clone, Debug, PartialEq)]
pub struct EnginePair<'a> {
    pub first: &'a CellEpochs,
    pub second: &'a CellEpochs,
    /// The time of the second over that of the first.
    pub ratio: f64,
    pub interval: Option<Interval>,
}

/// Every cell of the first engine beside the cells of other engines with the same network, batch size and loader.
pub fn engine_pairs(study: &Results) -> Vec<EnginePair<'_>> {
    let Some(first) = study.cells.first() else { return Vec::new() };
    let own = study.cells.iter().filter(|cell| cell.engine == first.engine);
    let settings = |cell: &CellEpochs| cell.series.strip_prefix(&cell.engine).unwrap_or_default().to_owned();
    own.flat_map(|first| {
        let alike = move |second: &&CellEpochs| {
            second.engine != first.engine
                && (second.batch_size, second.workers, second.prefetch)
                    == (first.batch_size, first.workers, first.prefetch)
                && settings(second) == settings(first)
        };
        study.cells.iter().filter(alike).map(move |second| {
            let Compared { ratio, interval } = compare(first, second, 1);
            EnginePair { first, second, ratio, interval }
        })
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::row;
    use super::*;

    #[test]
    fn the_fastest_comes_first_and_the_others_in_the_order_of_their_means() {
        // Both cells are twice as slow in the second block: the interval of the ratio does not see it.
        let rows =
            [row(64, 0, 0, 19.2), row(64, 0, 1, 38.4), row(512, 2, 0, 8.0), row(512, 2, 1, 16.0), row(128, 0, 0, 13.0)];
        let study = Results::of(&rows);
        let Against { fastest, rivals, .. } = relative_to_fastest(&study).expect("cells");
        assert_eq!((fastest.batch_size, fastest.workers), (512, 2));
        let order: Vec<usize> = rivals.iter().map(|rival| rival.cell.batch_size).collect();
        assert_eq!(order, [128, 64]);
        let slowest = &rivals[1];
        assert!((slowest.ratio.value - 2.4).abs() < 1e-12);
        let Interval { low, high } = slowest.interval.expect("two blocks");
        assert!((low - 2.4).abs() < 1e-9 && (high - 2.4).abs() < 1e-9, "{low} {high}");
        assert_eq!(relative_to_fastest(&Results::of(&[])), None);
    }

    #[test]
    fn engines_are_compared_where_all_else_is_equal() {
        let rows = [row(64, 0, 0, 10.0), row(64, 2, 0, 8.0), torch(row(64, 0, 0, 15.0)), torch(row(128, 0, 0, 15.0))];
        let study = Results::of(&rows);
        let pairs = engine_pairs(&study);
        assert_eq!(pairs.len(), 1);
        assert_eq!((pairs[0].second.engine.as_str(), pairs[0].interval), ("torch", None));
        assert!((pairs[0].ratio - 1.5).abs() < 1e-12, "{}", pairs[0].ratio);
    }

    fn torch(row: TrainingRow) -> TrainingRow {
        TrainingRow { engine: "torch".into(), cell: row.cell + 1000, ..row }
    }

    /// Equal epochs of a visit, as many as they are, are one value.
    #[test]
    fn the_epochs_of_a_visit_are_one_value() {
        let visits = [(64, 0, 10.0), (64, 1, 10.0), (128, 0, 11.0), (128, 1, 10.2)];
        let epochs = |&(batch, block, seconds): &(i64, i64, f64)| {
            (0..10).map(move |epoch| TrainingRow { epoch, ..row(batch, 0, block, seconds) })
        };
        let study = Results::of(&visits.iter().flat_map(epochs).collect::<Vec<_>>());
        let Against { rivals, .. } = relative_to_fastest(&study).expect("cells");
        // By hand: logs of 1.1 and 1.02 of mean 0.057556 and sd 0.053392, times 12.7062 / sqrt 2 = 0.479709.
        let Interval { low, high } = rivals[0].interval.expect("two blocks");
        assert!((low - (0.057556f64 - 0.479709).exp()).abs() < 1e-4, "{low}");
        assert!((high - (0.057556f64 + 0.479709).exp()).abs() < 1e-4, "{high}");
        assert!((rivals[0].ratio.value - 0.057556f64.exp()).abs() < 1e-5 && !rivals[0].is_slower());
        let one = Results::of(&visits.iter().filter(|visit| visit.1 == 0).flat_map(epochs).collect::<Vec<_>>());
        assert_eq!(relative_to_fastest(&one).expect("cells").rivals[0].interval, None, "one visit shows nothing");
    }

    #[test]
    fn the_fastest_of_many_must_be_farther_ahead() {
        let cell = |batch, times: [f64; 3]| (0..).zip(times).map(move |(block, seconds)| row(batch, 0, block, seconds));
        // By hand: logs of 1.03, 1.05, 1.07 have mean 0.048669 and sd 0.019050, so t = 4.42, beyond 4.303 (95 %, two degrees of freedom), and not
        // beyond 7.649, which one in three pairs takes.
        let two: Vec<TrainingRow> = cell(64, [10.0; 3]).chain(cell(128, [10.3, 10.5, 10.7])).collect();
        let slower = |rows: &[TrainingRow]| -> Vec<bool> {
            relative_to_fastest(&Results::of(rows)).expect("cells").rivals.iter().map(Rival::is_slower).collect()
        };
        assert_eq!(slower(&two), [true]);
        let three: Vec<TrainingRow> = two.into_iter().chain(cell(256, [20.0; 3])).collect();
        assert_eq!(slower(&three), [false, true]);
    }

    #[test]
    fn a_block_that_only_one_has_is_in_neither_the_ratio_nor_its_interval() {
        let both = |block, seconds| [row(64, 0, block, seconds), torch(row(64, 0, block, seconds))];
        // The run ended in its third block, in which the machine was slower, before the first engine's turn.
        let rows = [both(0, 10.0).to_vec(), both(1, 10.4).to_vec(), vec![torch(row(64, 0, 2, 16.0))]].concat();
        let study = Results::of(&rows);
        let pair = &engine_pairs(&study)[0];
        let Interval { low, high } = pair.interval.expect("two blocks");
        assert!((pair.ratio - 1.0).abs() < 1e-12 && low <= pair.ratio && pair.ratio <= high, "{pair:?}");
        let Against { fastest, rivals, .. } = relative_to_fastest(&study).expect("cells");
        assert_eq!(fastest.engine, "cpu");
        assert!((rivals[0].ratio.value - 1.0).abs() < 1e-12, "{rivals:?}");
    }

    #[test]
    fn an_epoch_of_fewer_examples_does_not_win_by_them() {
        // 9 ms and 10 ms for an example; the second leaves 80 of 200 out. The third trained on none.
        let of = |batch, examples, seconds| TrainingRow { examples, ..row(batch, 0, 0, seconds) };
        let study = Results::of(&[of(50, 200, 1.8), of(120, 120, 1.2), of(256, 0, 1e-6)]);
        let against = relative_to_fastest(&study).expect("cells");
        assert_eq!((against.fastest.batch_size, against.rivals.len()), (50, 1));
        assert!(against.is_uneven() && (against.rivals[0].ratio.value - 10.0 / 9.0).abs() < 1e-12, "{against:?}");
    }
}
