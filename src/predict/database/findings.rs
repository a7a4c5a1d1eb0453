//! Assigns the jumps, kinks and periods that a run has stored to its cells.

use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::settings::AXES;
use crate::store::{CollectedCell, files};

#[derive(Deserialize)]
struct FindingsFile {
    series: Vec<SeriesFindings>,
}

/// The findings in one series of the run: the part of `jumps.json` that the cells keep.
#[derive(Deserialize)]
pub(super) struct SeriesFindings {
    group: Map<String, Value>,
    unit: String,
    jumps: Vec<Jump>,
    kinks: Vec<Kink>,
    period: Option<Period>,
}

#[derive(Deserialize)]
struct Jump {
    after: f64,
    after_low: Option<f64>,
    after_high: Option<f64>,
    size: f64,
    low: f64,
    high: f64,
}

#[derive(Deserialize)]
struct Kink {
    at: f64,
    slope_before: f64,
    slope_after: f64,
}

#[derive(Deserialize)]
struct Period {
    value: f64,
}

impl SeriesFindings {
    /// The findings stored in the run directory; none if it has no `jumps.json`.
    ///
    /// # Errors
    /// [`crate::error::Kind::Data`] where that file cannot be understood.
    pub fn read(run: &Path) -> Result<Vec<Self>> {
        let path = run.join(files::JUMPS);
        let Ok(text) = std::fs::read_to_string(&path) else { return Ok(Vec::new()) };
        let document: FindingsFile = serde_json::from_str(&text).map_err(|error| {
            Error::data(format!("cannot be read as findings: {error}"))
                .at(path.display().to_string())
                .hint("write it again: `batchstep jumps RUN --format json`, or remove it")
        })?;
        Ok(document.series.into_iter().filter(|found| found.unit == "s").collect())
    }

    /// Stores what was found at a cell, if `found` holds its series.
    pub fn mark(found: &[Self], cell: &mut CollectedCell) {
        let is_its_own = |found: &&Self| found.group.iter().all(|(name, value)| agrees(cell, name, value));
        let Some(found) = found.iter().find(is_its_own) else { return };
        let here = |x: f64| x == cell.batch_size as f64;
        cell.searched = true;
        cell.period = found.period.as_ref().map(|period| period.value as i64);
        if let Some(jump) = found.jumps.iter().find(|jump| here(jump.after)) {
            (cell.jump_s, cell.jump_low_s, cell.jump_high_s) = (Some(jump.size), Some(jump.low), Some(jump.high));
            cell.jump_after_low = Some(jump.after_low.unwrap_or(jump.after) as i64);
            cell.jump_after_high = Some(jump.after_high.unwrap_or(jump.after) as i64);
        }
        if let Some(kink) = found.kinks.iter().find(|kink| here(kink.at)) {
            (cell.kink_before_s, cell.kink_after_s) = (Some(kink.slope_before), Some(kink.slope_after));
        }
    }
}

/// Whether a cell has this value in the column by which a series was split. Columns that cells do not store always
/// agree.
fn agrees(cell: &CollectedCell, column: &str, value: &Value) -> bool {
    let asked = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    match column {
        "model" => asked == cell.model,
        // Version 1 of the tables used `candle` for the engine `cpu`.
        "engine" => asked == cell.engine || (asked == "candle" && cell.engine == "cpu"),
        _ => AXES.iter().position(|axis| axis.column == column).is_none_or(|place| match cell.axes.get(place) {
            Some(value) => value.to_string() == asked,
            None => matches!(asked.as_str(), "" | "NaN"),
        }),
    }
}
