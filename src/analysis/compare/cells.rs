//! The cells of runs: what is compared with what, the times of each, and the unit in which they are compared.

use std::collections::BTreeMap;

use crate::analysis::{Series, TimeOrRate};
use crate::error::{Error, Result};
use crate::settings::EngineName;

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

/// With values multiplied by `factor`, which are then multiples of `unit`; of rates their inverse, so that more is slower. Only the columns of
/// the groups that count distinguish cells.
pub(super) fn cells(series: &[Series], factor: f64, unit: f64, counts: impl Fn(&str) -> bool) -> Cells {
    let mut cells = Cells::new();
    for series in series {
        let sign = if series.kind == TimeOrRate::Rate { -1.0 } else { 1.0 };
        let group = series.values_of(&counts);
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

/// The cells of each run, with values in the unit of the first. The column `left_out` does not distinguish them.
pub(super) fn in_one_unit(runs: &[&[Series]], left_out: Option<&str>) -> Result<Vec<Cells>> {
    let factor = |run: &&[Series]| conversion(runs[0], run).map_err(|error| in_its_source(run, error));
    let factors: Vec<f64> = runs.iter().map(factor).collect::<Result<_>>()?;
    let unit = unit_of(runs.iter().copied().zip(factors.iter().copied()));
    Ok(runs
        .iter()
        .zip(factors)
        .map(|(run, factor)| cells(run, factor, unit, |column| left_out != Some(column)))
        .collect())
}

/// An error with the run that it is about.
pub(super) fn in_its_source(run: &[Series], error: Error) -> Error {
    match run.first() {
        Some(series) => error.at(series.source.clone()),
        None => error,
    }
}

/// The unit of the times of `second`, in units of the times of `first`.
///
/// # Errors
/// [`crate::error::Kind::Data`] if it is not known, or one of them holds times and the other rates.
pub(super) fn conversion(first: &[Series], second: &[Series]) -> Result<f64> {
    let (Some(first), Some(second)) = (first.first(), second.first()) else { return Ok(1.0) };
    if first.kind != second.kind {
        let column = |series: &Series| format!("`{}` is a {}", series.y, series.kind.name());
        let message = format!("{} and {}, which are not compared", column(first), column(second));
        return Err(
            Error::data(message).hint("name columns of one kind with `--y`, or say `--y-kind time` or `--y-kind rate`")
        );
    }
    let (of_first, of_second) = (first.base_unit(), second.base_unit());
    match first.kind {
        _ if first.unit == second.unit => Ok(1.0),
        TimeOrRate::Rate if of_first.name == of_second.name => Ok(of_second.factor / of_first.factor),
        TimeOrRate::Time if first.seconds_per_unit().is_some() && second.seconds_per_unit().is_some() => {
            Ok(of_second.factor / of_first.factor)
        }
        _ => {
            let column = |series: &Series| match series.unit.as_str() {
                "" => format!("`{}`, which names no unit", series.y),
                unit => format!("`{}` in {unit}", series.y),
            };
            Err(Error::data(format!("the values are in columns {} and {}", column(first), column(second)))
                .hint("end the name of the column without a unit in _s, _ms, _us or _ns"))
        }
    }
}

/// The unit to which the values of runs, each multiplied by its factor, are rounded, or more: the smallest difference of any two of them.
pub(super) fn unit_of<'a>(runs: impl IntoIterator<Item = (&'a [Series], f64)>) -> f64 {
    let of = |(run, factor): (&'a [Series], f64)| {
        run.iter().flat_map(Series::observations).map(move |seen| seen.y * factor).collect::<Vec<_>>()
    };
    let mut values: Vec<f64> = runs.into_iter().flat_map(of).collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    let smallest = values.windows(2).map(|pair| pair[1] - pair[0]).fold(f64::INFINITY, f64::min);
    if smallest.is_finite() { smallest } else { 0.0 }
}

/// The column of the names of steps: two versions of a step of the user's own may lie in files of different names.
const NAME: &str = "model";

/// What the sides' steps are called, if each side is of one step of the user's own and these names differ. They then name the versions, and do not
/// distinguish cells.
pub fn step_names<'a, S: IntoIterator<Item = &'a Series>>(sides: impl IntoIterator<Item = S>) -> Option<Vec<&'a str>> {
    let names: Vec<&str> = sides.into_iter().map(step_name).collect::<Option<_>>()?;
    names.iter().any(|name| *name != names[0]).then_some(names)
}

/// The column that does not distinguish cells of these sides, if there is one.
pub(super) fn left_out<'a, S: IntoIterator<Item = &'a Series>>(
    sides: impl IntoIterator<Item = S>,
) -> Option<&'static str> {
    step_names(sides).map(|_| NAME)
}

fn step_name<'a, S: IntoIterator<Item = &'a Series>>(side: S) -> Option<&'a str> {
    let mut names = side.into_iter().map(own_name);
    let first = names.next()??;
    names.all(|name| name == Some(first)).then_some(first)
}

/// What the step of a series is called; `None` if it is not the user's own.
fn own_name(series: &Series) -> Option<&str> {
    series.value(NAME).filter(|_| series.engine().is_some_and(EngineName::is_own))
}
