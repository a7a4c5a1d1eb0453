//! Entries of JSON documents that several commands write: places, and how a table was read.

use serde_json::{Value, json};

use crate::analysis::{Gap, Series};
use crate::detect::{Unexplained, UnexplainedPlace};

/// A place on an axis: a whole number where it is one.
pub fn position(x: f64) -> Value {
    if x.fract() == 0.0 && x.abs() < 9e15 { Value::from(x as i64) } else { Value::from(x) }
}

pub(super) fn positions(places: &[f64]) -> Vec<Value> {
    places.iter().copied().map(position).collect()
}

/// What tells a series from the others: its columns with their values.
pub(super) fn group(series: &Series) -> Value {
    series.group.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
}

/// How the table of a series was read, and what of it was left out, where there is anything to say.
pub(super) fn how_read(series: &Series, entry: &mut Value) {
    if !series.notes.is_empty() {
        entry["read_as"] = series.notes.clone().into();
    }
    if !series.gaps.is_empty() {
        entry["left_out"] = series.gaps.iter().map(gap).collect();
    }
}

fn gap(Gap { column, rows, first_line, sizes, more_sizes, said }: &Gap) -> Value {
    json!({
        "column": column, "rows": rows, "first_line": first_line, "sizes": positions(sizes), "more_sizes": more_sizes,
        "said": said,
    })
}

/// What nothing explains: `place` is `start`, `between` or `end`.
pub(super) fn unexplained(found: &[Unexplained]) -> Value {
    let one = |one: &Unexplained| {
        let place = match one.place {
            UnexplainedPlace::Start => "start",
            UnexplainedPlace::Between => "between",
            UnexplainedPlace::End => "end",
        };
        json!({"from": position(one.from), "to": position(one.to), "relative": one.relative, "place": place})
    };
    found.iter().map(one).collect()
}
