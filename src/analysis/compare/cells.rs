//! The cells of runs: what is compared with what, and the times of each.

use std::collections::BTreeMap;

use super::unit::{conversion, unit_of};
use crate::analysis::{Series, TimeOrRate};
use crate::error::{Error, Result};

/// The blocks of a cell, on the logarithmic scale.
#[derive(Clone, Default)]
pub(super) struct Blocks {
    /// By number; steps without a block have negative numbers of their own.
    pub(super) times: BTreeMap<i64, Vec<f64>>,
    /// How far rounding may have moved a value.
    pub(super) rounding: f64,
}

pub(super) type Cells = BTreeMap<Key, Blocks>;

/// What identifies a cell in both runs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) group: String,
    /// The batch size's bits, which order and compare as positive numbers do.
    pub(super) x: u64,
}

/// With values multiplied by `factor`, which are then multiples of `unit`; of rates their inverse, so that more is slower. The column `left_out` of
/// the groups does not distinguish cells.
pub(super) fn cells(series: &[Series], factor: f64, unit: f64, left_out: Option<&str>) -> Cells {
    let mut cells = Cells::new();
    for series in series {
        let sign = if series.kind == TimeOrRate::Rate { -1.0 } else { 1.0 };
        let group = series.values_without(left_out);
        for (i, seen) in series.observations().into_iter().enumerate().filter(|(_, seen)| seen.y > 0.0) {
            let block = seen.block.map_or(-1 - i as i64, i64::from);
            let key = Key { group: group.clone(), x: seen.x.to_bits() };
            let cell = cells.entry(key).or_default();
            cell.times.entry(block).or_default().push(sign * (seen.y * factor).ln());
            cell.rounding = cell.rounding.max(0.5 * unit / (seen.y * factor));
        }
    }
    cells
}

/// The cells of each run, with values in the unit of the first; `left_out` as of [`cells`].
pub(super) fn in_one_unit(runs: &[&[Series]], left_out: Option<&str>) -> Result<Vec<Cells>> {
    let factor = |run: &&[Series]| conversion(runs[0], run).map_err(|error| in_its_source(run, error));
    let factors: Vec<f64> = runs.iter().map(factor).collect::<Result<_>>()?;
    let unit = unit_of(runs.iter().copied().zip(factors.iter().copied()));
    Ok(runs.iter().zip(factors).map(|(run, factor)| cells(run, factor, unit, left_out)).collect())
}

/// An error with the run that it is about.
pub(super) fn in_its_source(run: &[Series], error: Error) -> Error {
    match run.first() {
        Some(series) => error.at(series.source.clone()),
        None => error,
    }
}
