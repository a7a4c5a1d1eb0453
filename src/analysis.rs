//! From stored data to series: which column is the batch size, which the time, what makes a series of its own. The same
//! path serves a run that has just ended, a run of last year, and a file of another program.

mod columns;

use std::collections::BTreeMap;
use std::path::Path;

use crate::detect::{self, Findings, Observation};
use crate::error::{Error, Result};
use crate::stats::quantile::median;
use crate::store::Table;
use columns::Columns;

/// What the user says about the columns; what is left open is found by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Query {
    /// The column of the batch size.
    pub x: Option<String>,
    /// The column of the time.
    pub y: Option<String>,
    /// Columns whose values make a series each.
    pub group: Option<Vec<String>>,
}

/// One measured step, with what was in force.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    pub observation: Observation,
    pub warmup: bool,
    pub outlier: bool,
    /// Nulls are `None`.
    pub clock_hz: Option<f64>,
    pub temperature_c: Option<f64>,
}

/// One series: the step times of one combination of group values.
#[derive(Clone, Debug)]
pub struct Series {
    pub source: String,
    /// Column and value, in the order of the columns.
    pub group: Vec<(String, String)>,
    /// The unit of the times: `s`, `ms`, ..., or empty where the column does not say.
    pub unit: String,
    /// Every step, in the order of the file, warm-up included.
    pub measurements: Vec<Measurement>,
    /// Values that are the same for the whole series, from the columns that batchstep writes: device, precision, link.
    pub facts: BTreeMap<String, String>,
}

impl Series {
    /// The steps that count.
    pub fn observations(&self) -> Vec<Observation> {
        self.measurements.iter().filter(|m| !m.warmup).map(|m| m.observation).collect()
    }

    /// The group's values, to call the series by: `vgg16`, `vgg16, bf16`, `vgg16, threads 2`.
    pub fn label(&self) -> String {
        let word = |(name, value): &(String, String)| {
            // A bare number would leave the reader to guess.
            if value.parse::<f64>().is_ok() { format!("{name} {value}") } else { value.clone() }
        };
        let values: Vec<String> = self.group.iter().map(word).collect();
        if values.is_empty() { self.source.clone() } else { values.join(", ") }
    }

    /// Seconds in one unit of the times, where the unit is known.
    pub fn seconds_per_unit(&self) -> Option<f64> {
        columns::seconds_in(&self.unit)
    }

    /// Finds the jumps.
    pub fn find(&self, settings: &detect::Settings) -> Findings {
        detect::detect(&self.observations(), settings)
    }
}

/// About the smallest jump, relative to the step time, that these points would have shown; `None` without intervals.
///
/// The detector asks for 4.5 standard errors; a jump of 6 passes that in 93 of 100 runs. A gap between two lines fitted to m points on each side has the variance
/// 4 s^2 / m + 4 s^2 / m (each line's end point), with s the standard error of one point: its own, from the width of its
/// interval, and the roughness around the fit. For m = 8 that is s^2, so the jump is 6 s.
pub fn smallest_visible(findings: &Findings) -> Option<f64> {
    const STANDARD_ERRORS: f64 = 6.0;
    let points = findings.points.iter().filter(|point| point.center > 0.0 && point.count > 1 && !point.off);
    let own = points.clone().map(|point| (point.high - point.low) / (2.0 * 1.96 * point.center));
    let around = points.map(|point| 1.4826 * (point.center / point.fit - 1.0).abs());
    let (mut own, mut around) = (own.collect::<Vec<_>>(), around.collect::<Vec<_>>());
    let error = median(&mut own).max(median(&mut around));
    (error > 0.0).then_some(STANDARD_ERRORS * error)
}

/// Reads every series that `path` holds: in the order of the plan, or of other programs in the order of first appearance.
///
/// # Errors
/// [`crate::error::Kind::Data`] where a column is missing (with the nearest name), or holds what is not a number; as
/// [`Table::read`] where the file can't be read.
pub fn series(path: &Path, query: &Query) -> Result<Vec<Series>> {
    let columns = Columns::choose(&Table::names(path)?, query).map_err(|e| e.at(path.display().to_string()))?;
    let table = Table::read(path, &columns.wanted())?;
    let group = columns.group(&table)?;
    let keys: Vec<(String, Vec<String>)> =
        group.into_iter().map(|name| Ok((name.clone(), table.texts(&name)?))).collect::<Result<_>>()?;
    let rows = read_rows(&table, &columns)?;

    let mut index: BTreeMap<Vec<String>, usize> = BTreeMap::new();
    let mut members: Vec<(Vec<String>, Vec<usize>)> = Vec::new();
    for row in rows.iter().enumerate().filter_map(|(i, row)| row.is_some().then_some(i)) {
        let key: Vec<String> = keys.iter().map(|(_, values)| values[row].clone()).collect();
        let place = *index.entry(key.clone()).or_insert_with(|| {
            members.push((key, Vec::new()));
            members.len() - 1
        });
        members[place].1.push(row);
    }
    if members.is_empty() {
        return Err(Error::data("no row holds both a batch size and a time").at(path.display().to_string()));
    }
    if table.has("cell") {
        let cells = table.numbers("cell")?;
        let first = |members: &[usize]| members.iter().map(|&row| cells[row]).fold(f64::INFINITY, f64::min);
        members.sort_by(|(_, a), (_, b)| first(a).total_cmp(&first(b)));
    }
    let constants = columns.constants(&table)?;
    Ok(members
        .into_iter()
        .map(|(key, members)| Series {
            source: path.display().to_string(),
            group: keys.iter().map(|(name, _)| name.clone()).zip(key).collect(),
            unit: columns.unit(),
            facts: columns::facts(&constants, &members),
            measurements: members.into_iter().filter_map(|row| rows[row].clone()).collect(),
        })
        .collect())
}

/// The measurements row by row; `None` where a row holds no usable step.
fn read_rows(table: &Table, columns: &Columns) -> Result<Vec<Option<Measurement>>> {
    let optional = |name: &str| if table.has(name) { table.numbers(name).map(Some) } else { Ok(None) };
    let (x, y) = (table.numbers(&columns.x)?, table.numbers(&columns.y)?);
    let (order, block) = (optional("order")?, optional("block")?);
    let (clock, cpu_clock, temperature) =
        (optional("sm_clock_hz")?, optional("cpu_clock_hz")?, optional("temperature_c")?);
    let texts = |name: &str| if table.has(name) { table.texts(name).map(Some) } else { Ok(None) };
    let (warmup, outlier, status) = (texts("warmup")?, texts("outlier")?, texts("status")?);
    let flag = |values: &Option<Vec<String>>, row: usize| {
        values.as_ref().is_some_and(|values| values[row] == "1" || values[row].eq_ignore_ascii_case("true"))
    };
    let at = |values: &Option<Vec<f64>>, row: usize| values.as_ref().map(|v| v[row]).filter(|v| v.is_finite());
    let row = |row: usize| {
        let failed = status.as_ref().is_some_and(|status| status[row] != "ok");
        if failed || !x[row].is_finite() || !y[row].is_finite() {
            return None;
        }
        Some(Measurement {
            observation: Observation {
                x: x[row],
                y: y[row],
                order: at(&order, row),
                block: at(&block, row).map(|block| block as u32),
                clock_hz: at(&clock, row),
            },
            warmup: flag(&warmup, row),
            outlier: flag(&outlier, row),
            clock_hz: at(&clock, row).or(at(&cpu_clock, row)),
            temperature_c: at(&temperature, row),
        })
    };
    Ok((0..table.rows()).map(row).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detect::Point;

    fn point(x: f64, half: f64, fit: f64) -> Point {
        Point { x, count: 5, center: 1.0, low: 1.0 - half, high: 1.0 + half, fit, off: false }
    }

    #[test]
    fn the_smallest_visible_jump_follows_the_larger_of_both_errors() {
        // Half-widths of 1.96 % are standard errors of 1 %: six of them are 6 %.
        let mut findings =
            Findings { points: (1..10).map(|x| point(x.into(), 0.0196, 1.0)).collect(), ..Findings::default() };
        assert!((smallest_visible(&findings).expect("errors") - 0.06).abs() < 1e-12);
        // Points that lie 2 % off the fit say more: 6 x 1.4826 x 2 %.
        findings.points.iter_mut().for_each(|point| point.fit = 1.0 / 1.02);
        assert!((smallest_visible(&findings).expect("errors") - 6.0 * 1.4826 * 0.02).abs() < 1e-9);
        findings.points.clear();
        assert_eq!(smallest_visible(&findings), None);
    }

    #[test]
    fn a_label_explains_bare_numbers() {
        let pair = |name: &str, value: &str| (name.to_string(), value.to_string());
        let series = Series {
            source: "a.csv".into(),
            group: vec![pair("model", "vgg16"), pair("threads", "2")],
            unit: "s".into(),
            measurements: Vec::new(),
            facts: BTreeMap::new(),
        };
        assert_eq!(series.label(), "vgg16, threads 2");
    }
}
