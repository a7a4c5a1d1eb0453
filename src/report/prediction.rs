//! Predicted step times, what a training takes with them, and the batch size to take.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::style::Look;
use super::{Column, Style, Table};
use crate::predict::model::Estimate;
use crate::predict::model::conformal::COVERAGE;
use crate::predict::model::cost::{Choice, Limits};
use crate::predict::priced::{Priced, before_jump, cheapest, groups};
use crate::units::human;

const VERSION: u32 = 1;

pub struct Predictions<'a> {
    pub name: &'a str,
    pub rows: &'a [Priced],
    /// Sentences on cells that nothing is known about.
    pub unknown: &'a [String],
    pub limits: Limits,
    /// The row to take, where there are limits and one keeps them.
    pub choice: Option<Choice>,
    /// The day on which the prices were read.
    pub prices_read: Option<&'a str>,
}

/// Rows of a group that are listed without `--all`.
const MOST: usize = 16;

/// What to take, then a table for each network on each device, then what the numbers rest on. Of a long table, `all` lists every row, else
/// those that a person would choose among.
pub fn predictions(found: &Predictions, all: bool, style: &Style) -> String {
    let head = format!("Predicted step times of {}, with intervals of {}", found.name, human::percent(COVERAGE));
    let mut text = format!("{}\n", style.paint(&head, Look::Bold));
    let said = |lines: Vec<(&str, String)>| -> String {
        lines.iter().map(|(label, line)| style.wrap(&format!("  {label:<12} {line}"), 15) + "\n").collect()
    };
    text.push_str(&said(advice(found)));
    let mut left_out = 0;
    for group in groups(found.rows) {
        let shown = listed(&group, all);
        left_out += group.len() - shown.len();
        let heading = format!("{}, from {}", group[0].called(), group[0].row.engine);
        text.push_str(&format!("\n{}\n{}", style.wrap(&heading, 0), table(&shown, style)));
    }
    if left_out > 0 {
        text.push_str(&format!("{}: `--all`\n", human::counted(left_out as u64, "more row")));
    }
    text.push('\n');
    text + &said(grounds(found))
}

/// The rows of a group to list: of a long one the ends, powers of two, the cheapest and those just before a jump.
fn listed<'a>(group: &[&'a Priced], all: bool) -> Vec<&'a Priced> {
    if all || group.len() <= MOST {
        return group.to_vec();
    }
    let cheapest = cheapest(group).map(|priced| priced.row.batch_size);
    let ends = [group[0].row.batch_size, group[group.len() - 1].row.batch_size];
    let worth = |priced: &&&Priced| {
        let size = priced.row.batch_size;
        priced.row.before_jump || size.is_power_of_two() || ends.contains(&size) || Some(size) == cheapest
    };
    group.iter().filter(worth).copied().collect()
}

fn table(rows: &[&Priced], style: &Style) -> String {
    let optional = ["others measured", "epoch", "training", "energy", "cost"];
    let columns = ["batch size", "step", "interval", "an example"].into_iter().chain(optional).map(Column::right);
    let mut table = Table::new(columns.chain([Column::left("from")]));
    for priced in rows {
        let row = &priced.row;
        let time = |time: Option<Estimate>| time.map(|time| human::duration(time.seconds));
        let cells = [
            Some(format!("{}{}", row.batch_size, if row.before_jump { " |" } else { "" })),
            Some(human::seconds(row.step.seconds)),
            Some(interval(row.step)),
            Some(human::seconds(priced.per_example())),
            row.reported.as_ref().map(|reported| human::seconds(reported.seconds)),
            time(priced.epoch),
            time(priced.total),
            priced.energy_j.map(|energy| human::quantity(energy, "J")),
            priced.usd.map(money),
            Some(row.basis.name().to_owned()),
        ];
        table.row(cells.map(Option::unwrap_or_default));
    }
    table.keep_filled(&optional);
    table.render(style)
}

fn interval(step: Estimate) -> String {
    if step.high.is_finite() { human::range(step.low, step.high, "s") } else { "not known".to_owned() }
}

fn money(usd: f64) -> String {
    if usd < 10.0 { format!("${usd:.4}") } else { format!("${usd:.2}") }
}

/// The choice within the limits, and the best batch size of each group.
fn advice(found: &Predictions) -> Vec<(&'static str, String)> {
    let mut lines: Vec<(&str, String)> = chosen(found).into_iter().collect();
    for group in groups(found.rows).iter().filter(|group| group.len() > 1) {
        let Some(best) = cheapest(group) else { continue };
        let mut line = format!(
            "{}: batch size {} takes the least time per example, {}{}",
            best.called(),
            best.row.batch_size,
            human::seconds(best.per_example()),
            if best.row.before_jump { ", just before a jump" } else { "" }
        );
        if let Some(before) = before_jump(group).filter(|before| before.row.batch_size != best.row.batch_size) {
            let more = before.per_example() / best.per_example() - 1.0;
            line.push_str(&format!(
                "; of those just before a jump, marked |, {} with {} more",
                before.row.batch_size,
                human::percent(more)
            ));
        }
        lines.push(("Batch size", line));
    }
    lines
}

/// What the numbers rest on, and what is not known.
fn grounds(found: &Predictions) -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    let basis = |priced: &Priced| format!("{}: {}", priced.row.basis.name(), priced.row.basis.describe());
    let bases: BTreeSet<String> = found.rows.iter().map(basis).collect();
    lines.extend(bases.into_iter().map(|basis| ("From", basis)));
    if let Some(slowest) = found.rows.iter().map(|priced| priced.row.slowdown).reduce(f64::max).filter(|s| *s > 1.005) {
        lines.push((
            "Steps",
            format!(
                "are the fastest of each visit; a typical step took up to {} longer, which the epoch times include",
                human::percent(slowest - 1.0)
            ),
        ));
    }
    let others: BTreeSet<&str> =
        found.rows.iter().filter_map(|priced| Some(priced.row.reported.as_ref()?.by.as_str())).collect();
    lines.extend(
        others.iter().map(|by| ("Others", format!("{by}: the mean step of a training; not used in the prediction"))),
    );
    if let Some(read) = found.prices_read {
        lines.push((
            "Prices",
            format!("of {read}, as their file states them; the device alone, for as long as it computes"),
        ));
    }
    lines.extend(found.unknown.iter().map(|sentence| ("Not known", sentence.clone())));
    lines
}

fn chosen(found: &Predictions) -> Option<(&'static str, String)> {
    let Limits { usd, seconds } = found.limits;
    let budget = usd.map(|usd| format!("a budget of {}", money(usd)));
    let deadline = seconds.map(|seconds| format!("a deadline of {}", human::duration(seconds)));
    let asked: Vec<String> = budget.into_iter().chain(deadline).collect();
    if asked.is_empty() {
        return None;
    }
    let line = match found.choice {
        None => format!("none of these stays within {}", human::listed(&asked)),
        Some(Choice { place, certainty }) => {
            let best = &found.rows[place];
            let total = best.total.map_or_else(String::new, |total| format!(", {}", human::duration(total.seconds)));
            let usd = best.usd.map_or_else(String::new, |usd| format!(" for {}", money(usd)));
            let sure = certainty.map_or_else(
                || "; the probability is not known, since nothing says how far off this prediction is".to_owned(),
                |certainty| format!(" with a probability of {}", human::percent(certainty)),
            );
            format!(
                "{} at batch size {}{total}{usd}: stays within {}{sure}",
                best.called(),
                best.row.batch_size,
                human::listed(&asked),
            )
        }
    };
    Some(("Choice", line))
}

/// The same for programs: seconds, joules, US dollars. A further measurement lies between `low_s` and `high_s` with probability `coverage`;
/// they are null if the error is not known. `basis` is `measured`, `between`, `beyond`, `layers` or `rates`, `from` says it in words;
/// `reported_s` is the published time of the step, null if none is known.
pub fn predictions_json(found: &Predictions) -> Value {
    let finite = |value: f64| value.is_finite().then_some(value);
    let row = |priced: &Priced| {
        let row = &priced.row;
        json!({
            "device": row.device,
            "engine": row.engine,
            "model": row.model,
            "settings": row.settings,
            "batch_size": row.batch_size,
            "step_time_s": row.step.seconds,
            "low_s": finite(row.step.high).map(|_| row.step.low),
            "high_s": finite(row.step.high),
            "slowdown": row.slowdown,
            "basis": row.basis.name(),
            "from": row.basis.describe(),
            "before_jump": row.before_jump,
            "reported_s": row.reported.as_ref().map(|reported| reported.seconds),
            "reported_by": row.reported.as_ref().map(|reported| reported.by.clone()),
            "epoch_time_s": priced.epoch.map(|epoch| epoch.seconds),
            "training_time_s": priced.total.map(|total| total.seconds),
            "training_low_s": priced.total.filter(|total| total.high.is_finite()).map(|total| total.low),
            "training_high_s": priced.total.and_then(|total| finite(total.high)),
            "energy_j": priced.energy_j,
            "usd": priced.usd,
            "offer": priced.offer.as_ref().map(|offer| offer.name.clone()),
        })
    };
    json!({
        "version": VERSION,
        "coverage": COVERAGE,
        "rows": found.rows.iter().map(row).collect::<Vec<_>>(),
        "choice": found.choice.map(|choice| json!({"row": choice.place, "probability": choice.certainty})),
        "unknown": found.unknown,
    })
}
