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
    let head =
        format!("Predicted step times of {}, with intervals of nominally {}", found.name, human::percent(COVERAGE));
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
    let optional = ["interval held", "others measured", "epoch", "training", "energy", "cost"];
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
            row.basis.coverage_seen().map(human::percent),
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
            let seen = best.row.basis.coverage_seen().map_or_else(String::new, |seen| {
                format!(
                    ", by an interval of nominally {}, of which {} held",
                    human::percent(COVERAGE),
                    human::percent(seen)
                )
            });
            format!(
                "{} at batch size {}{total}{usd}: stays within {}{sure}{seen}",
                best.called(),
                best.row.batch_size,
                human::listed(&asked),
            )
        }
    };
    Some(("Choice", line))
}

/// The same for programs: seconds, joules, US dollars. A further measurement should lie between `low_s` and `high_s` with probability `coverage`;
/// `coverage_seen` is the share of such measurements that did, where it is less; the bounds are null if the error is not known. `basis` is `measured`, `between`, `beyond`, `layers` or `rates`, `from` says it in words;
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
            "coverage_seen": row.basis.coverage_seen(),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::predict::{Basis, Place, Row};
    use crate::report::{assert_lines, tidy};

    fn row(batch_size: usize, basis: Basis) -> Priced {
        let row = Row {
            device: "T4".to_owned(),
            engine: "cudnn".to_owned(),
            model: "vgg16".to_owned(),
            settings: String::new(),
            batch_size,
            step: Estimate::around(0.09, 0.1),
            slowdown: 1.0,
            basis,
            power_w: None,
            before_jump: false,
            reported: None,
        };
        Priced { row, epoch: None, total: None, energy_j: None, offer: None, usd: None }
    }

    /// docs/prediction.md: 14 of 20 just after a jump, 32 of 40 of larger networks; elsewhere nine in ten or more.
    #[test]
    fn rows_whose_intervals_held_less_than_they_should_say_how_often_they_did() {
        let curve = |place| Basis::Curve { place, runs: 1, repeated: true };
        let layers = |covered| Basis::Layers { networks: 9, covered };
        let all = [curve(Place::Between), curve(Place::AtJump), layers(true), layers(false)];
        let rows: Vec<Priced> = all.into_iter().zip(1..).map(|(basis, batch)| row(batch, basis)).collect();
        let (limits, choice) = (Limits::default(), None);
        let found = Predictions { name: "ask", rows: &rows, unknown: &[], limits, choice, prices_read: None };
        let text = predictions(&found, true, &Style::PLAIN);
        assert!(text.starts_with("Predicted step times of ask, with intervals of nominally 90 %"), "{text}");
        assert_lines(&text, &["batch size step interval an example interval held from"]);
        let lines = tidy(&text);
        for (batch, end) in [("1", "90.0 ms between"), ("2", "45.0 ms 70 % between"), ("4", "22.5 ms 80 % layers")] {
            let is = |line: &&String| line.starts_with(&format!("{batch} 90.0 ms ")) && line.ends_with(end);
            assert!(lines.iter().any(|line| is(&line)), "{batch}: {end}: {text}");
        }
        let json = predictions_json(&found);
        let seen: Vec<Option<f64>> = (0..4).map(|at| json["rows"][at]["coverage_seen"].as_f64()).collect();
        assert_eq!((seen, &json["coverage"]), (vec![None, Some(0.7), None, Some(0.8)], &0.9.into()));
        for (at, said) in [(1, "; 14 of 20 such times lay"), (3, "; 32 of 40 such times lay")] {
            assert!(json["rows"][at]["from"].as_str().is_some_and(|from| from.contains(said)), "{json}");
        }
    }
}
