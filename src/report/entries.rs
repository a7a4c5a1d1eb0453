//! Entries of JSON documents that several commands write: how a table was read, and the warnings.

use std::path::Path;

use serde_json::{Value, json};

use super::Warning;
use super::position::position;
use crate::analysis::{Gap, Series};

/// The warnings of the run or file in `path`.
pub(super) fn warning_entries(path: &Path, warnings: &[Warning]) -> impl Iterator<Item = Value> {
    warnings.iter().map(move |warning| {
        let mut entry = serde_json::to_value(warning).unwrap_or_default();
        entry["source"] = path.display().to_string().into();
        entry["message"] = warning.to_string().into();
        entry["help"] = warning.remedy().into();
        entry
    })
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
    let sizes: Vec<Value> = sizes.iter().map(|&size| position(size)).collect();
    json!({
        "column": column, "rows": rows, "first_line": first_line, "sizes": sizes, "more_sizes": more_sizes, "said": said,
    })
}
