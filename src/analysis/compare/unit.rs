//! The unit in which the values of several runs are compared, and the one to which they are rounded.

use crate::analysis::{Series, TimeOrRate};
use crate::error::{Error, Result};

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
