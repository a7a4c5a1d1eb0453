//! What was found: cell by cell, and of each series as a whole.

use super::cells::Key;
use super::{Decision, Overall, Series, When, are_rates};

/// One cell that both runs have.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparedCell {
    pub group: String,
    pub x: f64,
    /// Step times in the unit of the runs.
    pub first: f64,
    pub second: f64,
    /// `second / first`, and its 95 % interval for this cell, not corrected for the others.
    pub ratio: f64,
    pub low: f64,
    pub high: f64,
    /// How far runs of one side differ here, relative (standard deviation); `None` with one run a side.
    pub between: Option<f64>,
    /// Corrected for all cells of the comparison.
    pub p_value: f64,
    pub decision: Decision,
}

/// How far the runs of one side differ in a series, relative (standard deviations).
#[derive(Clone, Debug, PartialEq)]
pub struct Spread {
    pub group: String,
    /// As wholes.
    pub whole: f64,
    /// At a single cell, beyond that: the middle of the cells.
    pub cell: f64,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Comparison {
    pub cells: Vec<ComparedCell>,
    /// The series as wholes, where their blocks allow it.
    pub overall: Vec<Overall>,
    /// Cells that only one of the runs has.
    pub unmatched: usize,
    /// Those that only the first has, by series and size; the second cannot be said to be no slower there.
    pub missing: Vec<(String, f64)>,
    pub when: When,
    /// Runs of each side; in turns, the rounds.
    pub runs: [usize; 2],
    /// With several runs a side, for each series.
    pub spread: Vec<Spread>,
    /// For tables with one value for each size: the relative scatter of the ratios among sizes that do not differ, or the rounding of these where they
    /// agree to the last digit.
    pub yardstick: Option<f64>,
}

impl ComparedCell {
    /// From the logarithms of both times, and half the width of the 95 % interval of their difference.
    pub(super) fn new(key: Key, [first, second]: [f64; 2], half: f64, p_value: f64, decision: Decision) -> Self {
        let [ratio, low, high] = [0.0, -half, half].map(|by| (second - first + by).exp());
        let (group, x, first, second) = (key.group, f64::from_bits(key.x), first.exp(), second.exp());
        Self { group, x, first, second, ratio, low, high, between: None, p_value, decision }
    }

    /// The first time over the second, and its interval.
    pub fn speed_up(&self) -> [f64; 3] {
        [self.ratio, self.high, self.low].map(f64::recip)
    }

    /// Converts a cell of times per unit of work into a cell of rates, with the same decision.
    pub(super) fn as_rate(&mut self) {
        [self.ratio, self.low, self.high] = self.speed_up();
        (self.first, self.second) = (self.first.recip(), self.second.recip());
    }
}

#[cfg(test)]
impl ComparedCell {
    /// A cell with the time of the first, and the ratio with its interval.
    pub(crate) fn planted(x: f64, first: f64, [ratio, low, high]: [f64; 3]) -> Self {
        let (group, second, decision) = (String::new(), first * ratio, Decision::Ambiguous);
        Self { group, x, first, second, ratio, low, high, between: None, p_value: 0.5, decision }
    }
}

impl Comparison {
    /// As rates, if those of the first run are.
    pub(super) fn in_kind_of(&mut self, first: &[Series]) {
        if are_rates(first) {
            self.cells.iter_mut().for_each(ComparedCell::as_rate);
            self.overall.iter_mut().for_each(Overall::as_rate);
        }
    }

    pub fn count(&self, decision: Decision) -> usize {
        self.cells.iter().filter(|cell| cell.decision == decision).count()
    }

    /// Whether a difference may come from the run and not from the code, because each side has one.
    pub fn is_of_single_runs(&self) -> bool {
        self.runs == [1, 1] && !matches!(self.when, When::InTurns { .. })
    }

    /// Whether a cell is slower, or with several runs a side a series as a whole, which shows what all its cells have in common.
    pub fn is_slower(&self) -> bool {
        let as_a_whole = || self.overall.iter().any(|one| one.decision == Decision::Slower);
        self.count(Decision::Slower) > 0 || !self.spread.is_empty() && as_a_whole()
    }
}
