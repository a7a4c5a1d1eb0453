//! Series of one run that differ in one axis (the threads, the processes, the way of the data, the engine), each against the one at the baseline of
//! that axis.
//!
//! The cells of all of them are visited in the same randomised blocks, so heat, clocks and neighbours affect all alike. The ratio of a cell and its
//! interval are those of [`crate::analysis::compare`].

pub mod parallel;
pub mod scaling;
pub mod side_by_side;
pub mod transfer;

use super::Series;
use super::compare::{self, ComparedCell, Comparison, Overall, Rules};

/// A series against the one at the baseline.
#[derive(Clone, Debug, PartialEq)]
pub struct Contrast<V = String> {
    /// What both are called without the axis: `vgg16`, `vgg16, torch`.
    pub name: String,
    pub unit: String,
    /// What the first and the second have on the axis.
    pub baseline: V,
    pub value: V,
    /// By size; each ratio is the second time over that at the baseline.
    pub cells: Vec<ComparedCell>,
    /// All sizes together; `None` with fewer than two whole blocks.
    pub overall: Option<Overall>,
}

impl<V> Contrast<V> {
    /// The columns that count are not of the axis.
    fn of([first, second]: [(&Series, V); 2], counts: impl Fn(&str) -> bool, rules: &Rules) -> Self {
        let ((first, baseline), (second, value)) = (first, second);
        let Comparison { cells, mut overall, .. } = compare::compare(first, second, rules);
        let (name, unit) = (first.label_of(counts), first.unit.clone());
        Self { name, unit, baseline, value, cells, overall: overall.pop() }
    }

    /// The geometric mean of the ratios; `None` without cells.
    pub fn mean(&self) -> Option<f64> {
        geometric_mean(&self.cells)
    }
}

/// The geometric mean of the ratios of these cells; `None` for none.
pub fn geometric_mean<'a>(cells: impl IntoIterator<Item = &'a ComparedCell>) -> Option<f64> {
    let logs: Vec<f64> = cells.into_iter().map(|cell| cell.ratio.ln()).collect();
    (!logs.is_empty()).then(|| (logs.iter().sum::<f64>() / logs.len() as f64).exp())
}

/// Pairs of series that differ only on the axis of `column`: first the one with the smallest value there, then each other one. Each has its place and its value.
fn pairs<V: Ord + Copy>(
    series: &[&Series],
    column: &str,
    on_axis: impl Fn(&Series) -> Option<V>,
) -> Vec<[(usize, V); 2]> {
    let pair = |second: usize| {
        let value = on_axis(series[second])?;
        let alike = (0..series.len()).filter(|&at| series[at].is_like(series[second], |name| name != column));
        let (least, first) = alike.filter_map(|at| Some((on_axis(series[at])?, at))).min()?;
        (least < value).then_some([(first, least), (second, value)])
    };
    (0..series.len()).filter_map(pair).collect()
}

/// The number that a series has in `column`.
fn number(series: &Series, column: &str) -> Option<u32> {
    series.value(column)?.parse().ok()
}
