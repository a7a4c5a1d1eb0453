//! The JSON of `batchstep jumps`: a stable contract, version 1.

use serde_json::{Value, json};

use crate::analysis::Series;
use crate::control::{self, Control};
use crate::detect::{Findings, Jump, Kink};

/// The version of the document.
const VERSION: u32 = 1;

/// The document of some series and what was found in them. `aa_rate` is the share of false alarms of the machine's A/A runs,
/// null where there is none; `p_value` the share of jump-free series like it that show a step as strong as its strongest; `kept` the share of the visits that was used, below 1 only for files of millions of steps. Sizes are in the unit of the y column, named in `unit`;
/// slopes in that unit per example.
pub fn jumps(series: &[(Series, Findings)], controls: &[Control]) -> Value {
    let entry = |(series, findings): &(Series, Findings)| entry(series, findings, control::rate(controls, series));
    let entries: Vec<Value> = series.iter().map(entry).collect();
    json!({"version": VERSION, "series": entries})
}

fn entry(series: &Series, findings: &Findings, aa_rate: Option<f64>) -> Value {
    let group: serde_json::Map<String, Value> =
        series.group.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str()))).collect();
    let period = findings.period.as_ref().map(|period| {
        let explains: Vec<Value> = period.explains.iter().map(|&at| position(at)).collect();
        json!({"value": position(period.value), "p_value": period.p_value, "explains": explains})
    });
    json!({
        "source": series.source,
        "group": group,
        "points": findings.points.len(),
        "unit": series.unit,
        "jumps": findings.jumps.iter().map(jump).collect::<Vec<_>>(),
        "kinks": findings.kinks.iter().map(kink).collect::<Vec<_>>(),
        "period": period,
        "p_value": findings.p_value,
        "false_positive_rate": findings.false_positive_rate,
        "aa_rate": aa_rate,
        "kept": series.kept,
        "notes": findings.notes.iter().map(ToString::to_string).collect::<Vec<_>>(),
    })
}

fn jump(jump: &Jump) -> Value {
    json!({
        "after": position(jump.after),
        "size": jump.size,
        "low": jump.low,
        "high": jump.high,
        "relative": jump.relative,
        "direction": jump.direction(),
        "p_value": jump.p_value,
        "verdict": jump.verdict.name(),
    })
}

fn kink(kink: &Kink) -> Value {
    json!({
        "at": position(kink.at),
        "slope_before": kink.slope_before,
        "slope_after": kink.slope_after,
        "p_value": kink.p_value,
    })
}

/// A place on the batch axis: a whole number where it is one.
fn position(x: f64) -> Value {
    if x.fract() == 0.0 && x.abs() < 9e15 { Value::from(x as i64) } else { Value::from(x) }
}
