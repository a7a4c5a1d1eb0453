//! The JSON of `batchstep jumps`: a stable contract, version 1.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::entries::{group, how_read, position, positions};
use super::warning::{Warning, warning_entries};
use super::{advice, entries};
use crate::analysis::advice::{Advice, Silence};
use crate::analysis::causes::Explanation;
use crate::analysis::control::{self, Control};
use crate::analysis::slow::Speed;
use crate::analysis::{Analysed, slow};
use crate::detect::{Candidate, Early, Jump, Kink, NodeEffect, Rejection, unexplained};
use crate::error;
use crate::os::atomic;
use crate::store::files;

const VERSION: u32 = 1;

/// What the series of one run or file show.
#[derive(Debug, Default)]
pub struct PathFindings {
    pub path: PathBuf,
    pub found: Vec<Analysed>,
    pub controls: Vec<Control>,
    /// For each series the layers behind its jumps; empty where none are known.
    pub explained: Vec<Vec<Explanation>>,
    /// For each series, the advice on sizes; empty if it was not asked for.
    pub advices: Vec<Result<Advice, Silence>>,
    pub warnings: Vec<Warning>,
}

/// The document of some series and their findings. `aa_rate` is the share of false alarms in the machine's A/A runs, null if there are
/// none; `p_value` is the share of jump-free series like it that show a step as strong as its strongest; `detectable` is the smallest
/// relative jump that would have been found with a probability of 90 % in `detectable_between`; `kept` is the share of the visits that was used, below 1 only
/// for files of millions of steps. `x` and `y` are the columns, `y_kind` is `time` or `rate`. Sizes are in
/// the unit of the y column, named in `unit`, slopes in that unit per unit of x. A jump is after one of the x from `after_low` to `after_high`,
/// most likely after `after`. `nodes` are the machines that measured the series, if there are several, each with its relative difference
/// from the others at all sizes. `read_as` describes how the columns of another program's table were read. `left_out`, if any, are the
/// rows of the table without a number in a column. A period's `unconfirmed` are its places at which the neighbouring points show no jump.
/// `too_early` is null, or the number of complete blocks of the run and the number that its spec requires before anything is reported.
///
/// `advice` is null, or says which sizes to use, see [`super::size_advice`].
///
/// A jump that is explained has `causes`, the layers that step or change there, and `layers_together`, the step of all layers' times, null
/// if it is not known; a layer's `step` is null where it was not timed, or does not stand out. `warnings` are the warnings of the runs, each with its `source`, a `message` and the remedy, `help`.
pub fn jumps(subjects: &[PathFindings]) -> Value {
    let entries: Vec<Value> = subjects.iter().flat_map(PathFindings::entries).collect();
    let warnings: Vec<Value> =
        subjects.iter().flat_map(|subject| warning_entries(&subject.path, &subject.warnings)).collect();
    json!({"version": VERSION, "series": entries, "warnings": warnings})
}

/// Stores the document of a run in its folder as `jumps.json`.
///
/// # Errors
/// As [`atomic::write_text`].
pub fn keep(subject: &PathFindings) -> error::Result<()> {
    let text = format!("{:#}\n", jumps(std::slice::from_ref(subject)));
    atomic::write_text(&subject.path.join(files::JUMPS), &text)
}

impl PathFindings {
    fn entries(&self) -> impl Iterator<Item = Value> {
        self.found.iter().enumerate().map(|(index, found)| {
            let explained = self.explained.get(index).map(Vec::as_slice).unwrap_or_default();
            let mut entry = entry(found, control::rate(&self.controls, &found.series), explained);
            entry["advice"] = advice::entry(self.advices.get(index));
            entry
        })
    }
}

fn entry(found: &Analysed, aa_rate: Option<f64>, explained: &[Explanation]) -> Value {
    let Analysed { series, findings } = found;
    let period = findings.period.as_ref().map(|period| {
        json!({
            "value": position(period.value),
            "p_value": period.p_value,
            "explains": positions(&period.explains),
            "unconfirmed": positions(&period.unconfirmed),
        })
    });
    let jump = |found: &Jump| {
        let mut entry = jump(found);
        if let Some(explanation) = explained.iter().find(|explanation| explanation.after == found.after) {
            entry["layers_together"] = json!(explanation.together);
            entry["causes"] = json!(explanation.layers);
        }
        entry
    };
    let mut entry = json!({
        "source": series.source,
        "group": group(series),
        "points": findings.points.len(),
        "x": series.size.column,
        "y": series.y,
        "y_kind": series.kind.name(),
        "unit": series.unit,
        "jumps": findings.jumps.iter().map(jump).collect::<Vec<_>>(),
        "kinks": findings.kinks.iter().map(kink).collect::<Vec<_>>(),
        "rejected": findings.rejected.iter().map(rejected).collect::<Vec<_>>(),
        "period": period,
        "p_value": findings.p_value,
        "false_positive_rate": findings.false_positive_rate,
        "alarm_rate": findings.alarm_rate.map(|rate| {
            let [low, high] = rate.interval();
            json!({ "share": rate.share(), "low": low, "high": high, "series": rate.series })
        }),
        "detectable": findings.detectable,
        "detectable_between": findings.detectable.and_then(|_| findings.detectable_between()),
        "too_early": findings.early.map(early),
        "aa_rate": aa_rate,
        "kept": series.kept,
        "nodes": findings.nodes.iter().map(node).collect::<Vec<_>>(),
        "notes": findings.notes.iter().map(ToString::to_string).collect::<Vec<_>>(),
    });
    for (key, speed) in [("slow_sizes", Speed::Slow), ("fast_sizes", Speed::Fast)] {
        if let Some(found) = slow::sizes(findings, series.kind, speed) {
            entry[key] = super::slow::json(&found);
        }
    }
    let found = if findings.is_judged() { unexplained(findings) } else { Vec::new() };
    if !found.is_empty() {
        entry["unexplained"] = entries::unexplained(&found);
    }
    how_read(series, &mut entry);
    entry
}

/// The note on a run with fewer complete blocks than its spec asks for.
pub(super) fn early(Early { blocks, of }: Early) -> Value {
    json!({"blocks": blocks, "of": of})
}

fn node(node: &NodeEffect) -> Value {
    let NodeEffect { name, visits, relative, low, high } = node;
    json!({"name": name, "visits": visits, "relative": relative, "low": low, "high": high})
}

/// Without `verdict` where neither clock nor waits were read.
fn jump(jump: &Jump) -> Value {
    let mut entry = json!({
        "after": position(jump.after),
        "after_low": position(jump.after_low),
        "after_high": position(jump.after_high),
        "size": jump.size,
        "low": jump.low,
        "high": jump.high,
        "relative": jump.relative,
        "direction": jump.direction(),
        "p_value": jump.p_value,
        "nearby_p_value": jump.nearby_p_value,
    });
    if let Some(verdict) = jump.verdict {
        entry["verdict"] = verdict.name().into();
    }
    entry
}

fn rejected(candidate: &Candidate) -> Value {
    let Candidate { after, size, p_value, reason } = candidate;
    let mut entry = json!({"after": position(*after), "size": size, "p_value": p_value, "reason": reason.to_string()});
    if let Rejection::OtherPrograms { relative } = reason {
        entry["verdict"] = "interference".into();
        entry["relative"] = (*relative).into();
    }
    entry
}

fn kink(kink: &Kink) -> Value {
    json!({
        "at": position(kink.at),
        "slope_before": kink.slope_before,
        "slope_after": kink.slope_after,
        "p_value": kink.p_value,
    })
}
