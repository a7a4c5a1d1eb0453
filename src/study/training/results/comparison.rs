//! Cells against the fastest, and engines against one another.

use super::{CellEpochs, Results};
use crate::stats::repetitions::{Interval, Ratio, paired_ratio};

/// The confidence of the intervals.
pub(super) const CONFIDENCE: f64 = 0.95;

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
}

impl Against<'_> {
    /// How many cells the fastest is not shown to differ from.
    pub fn not_distinguished(&self) -> usize {
        self.rivals.iter().filter(|rival| !rival.is_slower()).count()
    }
}

/// Compares every cell with the one of the shortest mean.
pub fn relative_to_fastest(study: &Results) -> Option<Against<'_>> {
    let fastest = study.cells.iter().min_by(|a, b| a.times.mean.total_cmp(&b.times.mean))?;
    let others = study.cells.iter().filter(|cell| !std::ptr::eq(*cell, fastest));
    let mut rivals: Vec<Rival> = others
        .map(|cell| Rival {
            cell,
            ratio: fastest.times.times_faster_than(&cell.times),
            interval: paired_ratio(&pairs(fastest, cell), CONFIDENCE),
        })
        .collect();
    rivals.sort_by(|a, b| a.ratio.value.total_cmp(&b.ratio.value));
    Some(Against { fastest, rivals })
}

/// The time of `second` over that of `first`, for every block and epoch that both have.
pub(super) fn pairs(first: &CellEpochs, second: &CellEpochs) -> Vec<f64> {
    let of = |cell: &CellEpochs, block: i64, epoch: i64| {
        cell.epochs.iter().find(|own| (own.block, own.epoch) == (block, epoch)).map(|own| own.seconds)
    };
    let ratio = |own: &super::Epoch| Some(of(second, own.block, own.epoch)? / own.seconds);
    first.epochs.iter().filter_map(ratio).collect()
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
        study.cells.iter().filter(alike).map(move |second| EnginePair {
            first,
            second,
            ratio: second.times.mean / first.times.mean,
            interval: paired_ratio(&pairs(first, second), CONFIDENCE),
        })
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::row;
    use super::*;
    use crate::store::EpochRow;

    #[test]
    fn the_fastest_comes_first_and_the_others_in_the_order_of_their_means() {
        // Both cells are twice as slow in the second block: the interval of the ratio does not see it.
        let rows =
            [row(64, 0, 0, 19.2), row(64, 0, 1, 38.4), row(512, 2, 0, 8.0), row(512, 2, 1, 16.0), row(128, 0, 0, 13.0)];
        let study = Results::of(&rows);
        let Against { fastest, rivals } = relative_to_fastest(&study).expect("cells");
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
        let torch = |row: EpochRow| EpochRow { engine: "torch".into(), cell: row.cell + 1000, ..row };
        let rows = [row(64, 0, 0, 10.0), row(64, 2, 0, 8.0), torch(row(64, 0, 0, 15.0)), torch(row(128, 0, 0, 15.0))];
        let study = Results::of(&rows);
        let pairs = engine_pairs(&study);
        assert_eq!(pairs.len(), 1);
        assert_eq!((pairs[0].second.engine.as_str(), pairs[0].ratio, pairs[0].interval), ("torch", 1.5, None));
    }
}
