//! The comparison of two runs or of several.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::entries::position;
use super::{Style, Table};
use crate::analysis::compare::{Between, ComparedCell, Comparison, Decision, Overall, Several, Spread, When};
use crate::units::human;

/// Every decision, in the order in which they are counted.
const ALL: [Decision; 4] = [Decision::Same, Decision::Faster, Decision::Slower, Decision::Ambiguous];

/// Rows of a comparison that are shown without `--all`.
const MOST: usize = 20;

/// A line for each series as a whole, the number of cells with each decision, and the table of cells: those that differ, of many the largest differences,
/// or `all`. `unit` is that of the times.
pub fn comparison(found: &Comparison, unit: &str, all: bool, style: &Style) -> String {
    let overall: String = found.overall.iter().map(|one| style.wrap(&whole(found, one), 2) + "\n").collect();
    let verdict = style.wrap(&verdict(found), 2);
    let means = match found.yardstick {
        Some(scatter) => of_single_values(scatter),
        None => format!("{}{}.", spread(found), meaning(found, "a cell")),
    };
    let means = style.wrap(&means, 0);
    let (shown, left) = listed(found, all);
    let table =
        if shown.is_empty() { String::new() } else { format!("\n{}", table(found, &shown, unit).render(style)) };
    format!("{verdict}\n{}\n{overall}{table}{}\n{means}\n", counts(found), and_more(left))
}

/// How many cells are left out, in a line; empty for none.
fn and_more(left: usize) -> String {
    if left == 0 { String::new() } else { format!("{} more: `--all`\n", human::counted(left as u64, "cell")) }
}

/// The word for FASTER and SLOWER where one run a side cannot tell whether the code is.
const DIFFERS: &str = "DIFFERS";

/// The word for a decision, which claims no more than the runs show.
fn word(found: &Comparison, decision: Decision) -> &'static str {
    if found.is_of_single_runs() && is_apart(decision) { DIFFERS } else { decision.name() }
}

/// Sizes that the verdict names.
const NAMED: usize = 4;

/// What a difference of two single runs can be due to.
const CANNOT_TELL: &str = "This may be the code, the machine between the two runs, or where a process lay in memory: one run a side cannot tell, three interleaved \
                           runs a side can (--against)";

/// What the cells say, which is what the exit code follows: `SLOWER at 1 of 4 sizes: 32 (+4.5 %, +3.8 % to +5.1 %)`. Of several runs a side also
/// what the series say as wholes; of one run a side only that it differs.
pub fn verdict(found: &Comparison) -> String {
    let of = found.cells.len();
    let several = is_of_several(found);
    let part = |decisions: &[Decision], name: &str| {
        let mut cells: Vec<&ComparedCell> =
            found.cells.iter().filter(|cell| decisions.contains(&cell.decision)).collect();
        cells.sort_by(|a, b| b.ratio.ln().abs().total_cmp(&a.ratio.ln().abs()));
        let most = if cells.len() > NAMED { ", most" } else { "" };
        let named = |cell: &&ComparedCell| {
            let group = if several { format!("{} ", cell.group) } else { String::new() };
            format!("{group}{} ({})", human::batch_size(cell.x), percents([cell.ratio, cell.low, cell.high]))
        };
        let names: Vec<String> = cells.iter().take(NAMED).map(named).collect();
        let sizes = if several { "cells" } else { "sizes" };
        let all = human::count(of as u64);
        (!cells.is_empty()).then(|| format!("{name} at {} of {all} {sizes}{most}: {}", cells.len(), names.join(", ")))
    };
    if found.is_of_single_runs()
        && let Some(differs) = part(&[Decision::Slower, Decision::Faster], DIFFERS)
    {
        return format!("{differs}. {CANNOT_TELL}");
    }
    let as_a_whole = |one: &&Overall| !found.spread.is_empty() && is_apart(one.decision);
    let whole = |one: &Overall| {
        let group = if several { format!("{} ", one.group) } else { String::new() };
        format!("{} as a whole: {group}{}", one.decision.name(), percents([one.ratio, one.low, one.high]))
    };
    let wholes = found.overall.iter().filter(as_a_whole).map(whole);
    let cells = [Decision::Slower, Decision::Faster].into_iter().filter_map(|one| part(&[one], one.name()));
    let parts: Vec<String> = wholes.chain(cells).collect();
    match (parts.is_empty(), found.count(Decision::Same) == of) {
        (false, _) => parts.join("; "),
        (true, true) => format!("SAME at all {of}"),
        (true, false) => "No size is shown to be slower or faster".to_owned(),
    }
}

/// Whether the cells are of several series, which then have to be named.
fn is_of_several(found: &Comparison) -> bool {
    found.cells.iter().any(|cell| cell.group != found.cells[0].group)
}

/// `+4.5 %, +3.8 % to +5.1 %` of a ratio and its interval.
fn percents(ratios: [f64; 3]) -> String {
    let [ratio, low, high] = ratios.map(|ratio| human::signed_percent(ratio - 1.0));
    format!("{ratio}, {low} to {high}")
}

/// How far runs of one side differ.
fn spread(found: &Comparison) -> String {
    let several = found.spread.len() > 1;
    let of = |one: &Spread| {
        let group = if several { format!("{}: ", one.group) } else { String::new() };
        format!("{group}{} as wholes and {} more at one size", human::percent(one.whole), human::percent(one.cell))
    };
    let all = found.spread.iter().map(of).collect::<Vec<_>>().join(", ");
    let [first, second] = found.runs;
    match found.spread.is_empty() {
        true => String::new(),
        false => format!("{first} runs against {second}. Runs of one side differ by {all} (standard deviations). "),
    }
}

/// A comparison for a program: `first` and `second` in `unit`, `ratio` the second over the first with its 95 % interval, null where nothing
/// bounds it, and `between_runs`, with several runs a side, how far runs of one side differ there, relative; `series` the same of each
/// series as a whole, and `between_runs_at_a_size` what is added at one size; `runs` the number on each side; `yardstick`, of tables with
/// one value for each size, the scatter of the ratios of sizes that do not differ, relative. `verdict` is the word of the text, DIFFERS with one
/// run a side; `decision` has the direction too, which the exit code follows.
pub fn comparison_json(found: &Comparison, unit: &str) -> Value {
    // A number that is not finite becomes null.
    let cell = |cell: &ComparedCell| {
        json!({
            "group": cell.group, "x": position(cell.x), "first": cell.first, "second": cell.second, "ratio": cell.ratio,
            "low": cell.high.is_finite().then_some(cell.low), "high": cell.high, "p_value": cell.p_value,
            "decision": cell.decision.name(), "verdict": word(found, cell.decision), "between_runs": cell.between,
        })
    };
    let series = |one: &Overall| {
        let spread = found.spread.iter().find(|spread| spread.group == one.group);
        json!({
            "group": one.group, "cells": one.cells, "ratio": one.ratio, "low": one.low, "high": one.high,
            "p_value": one.p_value, "decision": one.decision.name(), "verdict": word(found, one.decision),
            "between_runs": spread.map(|spread| spread.whole), "between_runs_at_a_size": spread.map(|spread| spread.cell),
        })
    };
    let cells: Vec<Value> = found.cells.iter().map(cell).collect();
    let series: Vec<Value> = found.overall.iter().map(series).collect();
    json!({
        "version": 1, "unit": unit, "runs": found.runs, "series": series, "cells": cells, "unmatched": found.unmatched,
        "yardstick": found.yardstick,
    })
}

fn is_apart(decision: Decision) -> bool {
    matches!(decision, Decision::Faster | Decision::Slower)
}

/// The cells to list, in their order, and how many are left out.
fn listed(found: &Comparison, all: bool) -> (Vec<&ComparedCell>, usize) {
    let mut shown: Vec<&ComparedCell> = found.cells.iter().collect();
    if !all {
        shown.retain(|cell| is_apart(cell.decision));
        if shown.len() > MOST {
            let mut sizes: Vec<f64> = shown.iter().map(|cell| cell.ratio.ln().abs()).collect();
            sizes.sort_by(|a, b| b.total_cmp(a));
            shown.retain(|cell| cell.ratio.ln().abs() >= sizes[MOST - 1]);
            shown.truncate(MOST);
        }
    }
    let left = found.cells.len() - shown.len();
    (shown, left)
}

/// What the cells of tables with one value for each size are judged by, and what that does not show. There is no rate of false alarms: it depends
/// on how the noise is distributed, of which single values say nothing.
fn of_single_values(scatter: f64) -> String {
    format!(
        "One value for each size: judged by the scatter of the ratios of sizes that do not differ, {}. A single slow measurement, or a machine that was \
         slower, looks the same as slower code, and how often equal tables have a size that DIFFERS is not known. Give repetitions, a row for each.",
        human::percent(scatter)
    )
}

/// How often equal runs differ, and what may cause a difference.
fn meaning(found: &Comparison, cell: &str) -> String {
    let several = !found.is_of_single_runs();
    let rate = format!("at most 5 % have {cell} {}", if several { "named FASTER or SLOWER" } else { "that DIFFERS" });
    let by_turns = if several {
        "measure them by turns: A, B, B, A, A, B"
    } else {
        "three runs a side by turns (`batchstep compare A1 A2 A3 --against B1 B2 B3`) or `batchstep compare --in-turns A.toml B.toml` tell them apart"
    };
    let code_or_machine = format!("a machine that was slower then looks the same as slower code; {by_turns}");
    let few = several && found.runs.iter().any(|runs| *runs < 3);
    let promise = |of: &str| match few {
        true => "With fewer than three runs a side, how often equal code is named is not known".to_owned(),
        false => format!("{of}, {rate}"),
    };
    let equal = if several {
        promise("Of equal code on a machine that does not change")
    } else {
        format!("Of equal runs on a machine that does not change, whose processes lie alike in memory, {rate}")
    };
    match found.when {
        When::InTurns { rounds } => {
            format!("Measured in turns, in {}: of equal runs, {rate}", human::counted(rounds as u64, "round"))
        }
        When::Mixed => format!("Neither side was measured before the other. {}", promise("Of equal code")),
        When::AtTheSameTime => {
            format!("Of equal runs at the same time on one machine, whose processes lie alike in memory, {rate}")
        }
        When::Apart => {
            format!("{equal}. These were measured at different times, or on different machines: {code_or_machine}")
        }
        When::Unknown if several => format!(
            "{}. When these were measured is not known: if all of one side came first, a machine that was slower then looks the \
             same as slower code",
            promise("Of equal code by turns")
        ),
        When::Unknown => format!(
            "{equal}. When these were measured is not known: a machine that was slower then looks the same as slower code. Where both were measured in turns, and a \
             column `block` numbers the rounds, `--in-turns` tells them apart"
        ),
    }
}

fn counts(found: &Comparison) -> String {
    let mut words = ALL.map(|decision| word(found, decision)).to_vec();
    words.dedup();
    let count = |name: &str| found.cells.iter().filter(|cell| word(found, cell.decision) == name).count();
    words.iter().map(|name| format!("{} {name}", count(name))).collect::<Vec<_>>().join(", ")
}

/// The decision on each other run, the comparison of all pairs of whole runs, and the cells of the first run with the ratio of each other run to
/// it. `names` are the names of the runs.
pub fn comparison_of_several(found: &Several, names: &[String], unit: &str, all: bool, style: &Style) -> String {
    let first = names.first().map_or("", String::as_str);
    let mut text = String::new();
    for (at, (comparison, name)) in found.against_first.iter().zip(names.iter().skip(1)).enumerate() {
        let wholes: Vec<&Overall> =
            found.between.iter().filter(|one| (one.first, one.second) == (0, at + 1)).map(|one| &one.overall).collect();
        let decision = match wholes[..] {
            [whole] => format!("{}  {name}: {:.3} times {first}; ", word(comparison, whole.decision), whole.ratio),
            _ => format!("{name}: "),
        };
        text.push_str(&style.wrap(&format!("{decision}{}", counts(comparison)), 2));
        text.push('\n');
    }
    if !found.between.is_empty() {
        text.push_str("\nAll against each other, as wholes\n");
        text.push_str(&wholes(found, names).render(style));
    }
    let (table, left) = ratios(found, names, unit, all);
    if !table.rows().is_empty() {
        text.push_str(&format!("\n{}", table.render(style)));
    }
    text.push_str(&and_more(left));
    // The weakest of them applies to all.
    let weakest = || found.against_first.iter().find(|one| !one.when.shares_the_machine());
    let means =
        weakest().or(found.against_first.first()).map_or(String::new(), |one| meaning(one, "a cell of any run"));
    let means = format!("Ratios are a run's values over those of {first}. {means}.");
    text + &format!("\n{}\n", style.wrap(&means, 0))
}

/// A row for each cell of the first run that any other has, and how many are left out because no run differs there.
fn ratios(found: &Several, names: &[String], unit: &str, all: bool) -> (Table, usize) {
    let numbers: Vec<&str> = std::iter::once("batch size").chain(names.iter().map(String::as_str)).collect();
    let mut table = Table::of(&["series"], &numbers);
    // By series and batch size, whose bits order as positive numbers do.
    let mut rows: BTreeMap<(&str, u64), Vec<Option<&ComparedCell>>> = BTreeMap::new();
    for (at, comparison) in found.against_first.iter().enumerate() {
        for cell in &comparison.cells {
            let row =
                rows.entry((&cell.group, cell.x.to_bits())).or_insert_with(|| vec![None; found.against_first.len()]);
            row[at] = Some(cell);
        }
    }
    let of = rows.len();
    rows.retain(|_, cells| all || cells.iter().flatten().any(|cell| is_apart(cell.decision)));
    if !all {
        while rows.len() > MOST {
            rows.pop_last();
        }
    }
    let left = of - rows.len();
    for ((group, x), cells) in rows {
        let first = cells.iter().flatten().next().map_or(f64::NAN, |cell| cell.first);
        let ratio = |(comparison, cell): (&Comparison, &Option<&ComparedCell>)| match cell {
            Some(cell) => format!("{:.3} {}", cell.ratio, word(comparison, cell.decision)),
            None => String::new(),
        };
        let ratios = found.against_first.iter().zip(&cells).map(ratio);
        let head = [group.to_owned(), human::batch_size(f64::from_bits(x)), human::quantity(first, unit)];
        table.row(head.into_iter().chain(ratios).collect::<Vec<_>>());
    }
    (table, left)
}

fn wholes(found: &Several, names: &[String]) -> Table {
    let mut table = Table::of(&["series", "run", "against"], &["cells", "ratio", "95 % interval", "p", "decision"]);
    let name = |at: usize| names.get(at).cloned().unwrap_or_default();
    // All pairs were measured alike.
    let decision = |one: Decision| found.against_first.first().map_or(one.name(), |any| word(any, one));
    for Between { first, second, overall } in &found.between {
        table.row([
            overall.group.clone(),
            name(*second),
            name(*first),
            human::count(overall.cells as u64),
            format!("{:.3}", overall.ratio),
            format!("{:.3} to {:.3}", overall.low, overall.high),
            human::p_value(overall.p_value),
            decision(overall.decision).to_owned(),
        ]);
    }
    table
}

/// The result for a series as a whole, the decision first.
fn whole(found: &Comparison, one: &Overall) -> String {
    let name = if one.group.is_empty() { "all cells" } else { &one.group };
    let (cells, p) = (human::counted(one.cells as u64, "cell"), human::p_equals(one.p_value));
    let decision = word(found, one.decision);
    format!(
        "{name} as a whole, {cells}: {decision}, {:.3} times the first, 95 % interval {:.3} to {:.3} ({p})",
        one.ratio, one.low, one.high
    )
}

fn table(found: &Comparison, shown: &[&ComparedCell], unit: &str) -> Table {
    let several = is_of_several(found);
    let numbers = ["batch size", "first", "second", "ratio", "95 % interval", "decision"];
    let mut table = Table::of(&["series"], &numbers);
    for cell in shown {
        let ends = [cell.group.clone(), word(found, cell.decision).to_owned()];
        let [group, decision] = ends.map(std::iter::once);
        table.row(group.chain(size_and_ratio(cell, unit)).chain(decision));
    }
    table.keep(|heading| several || heading != "series");
    table
}

/// The size, both values, their ratio and its interval.
pub(super) fn size_and_ratio(cell: &ComparedCell, unit: &str) -> [String; 5] {
    [
        human::batch_size(cell.x),
        human::quantity(cell.first, unit),
        human::quantity(cell.second, unit),
        format!("{:.3}", cell.ratio),
        interval([cell.low, cell.high], "", |ratio| format!("{ratio:.3}")),
    ]
}

/// An interval by the text of its ends and their unit: `0.950 to 1.050`.
pub(super) fn interval([low, high]: [f64; 2], unit: &str, end: impl Fn(f64) -> String) -> String {
    // One block proves nothing.
    let known = low > 0.0 && high.is_finite();
    if known { format!("{} to {}{unit}", end(low), end(high)) } else { "unknown".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::Series;
    use crate::analysis::compare::{Rules, runs, several};
    use crate::detect::Observation;
    use crate::error::Kind;
    use crate::report::{assert_lines, tidy};

    /// One batch size with the same step time `y` in each of 10 blocks, to 0.1 %.
    fn series(y: f64) -> Vec<Series> {
        let seen = |i: u32| Observation { block: Some(i), ..Observation::new(8.0, y * (1.0 + 0.0001 * f64::from(i))) };
        vec![Series::planted(Vec::new(), (0..10).map(|i| seen(i).into()).collect())]
    }

    #[test]
    fn a_comparison_is_a_table_with_the_count_of_each_decision() {
        let found = runs(&series(0.010), &series(0.020), &Rules::default()).unwrap();
        let text = comparison(&found, "s", false, &Style::PLAIN);
        let verdict = "DIFFERS at 1 of 1 sizes: 8 (+100 %, +100 % to +100 %). This may be the code, the machine";
        assert!(text.starts_with(verdict), "{text}");
        assert!(text.contains("\nall cells as a whole, 1 cell: DIFFERS, 2.000 times the first"), "{text}");
        assert!(text.contains("ratio") && text.contains("2.000") && text.contains("10.0 ms"), "{text}");
        assert!(text.contains("\n0 SAME, 1 DIFFERS, 0 AMBIGUOUS\n") && !text.contains("--all"), "{text}");
    }

    /// No word claims more than the first line: with one run a side none is FASTER or SLOWER, in turns both are.
    #[test]
    fn one_run_a_side_differs_in_text_and_json_and_the_direction_stays_in_the_decision() {
        let single = runs(&series(0.010), &series(0.020), &Rules::default()).unwrap();
        let turns = Comparison { when: When::InTurns { rounds: 10 }, ..single.clone() };
        for (found, wanted) in [(&single, "DIFFERS"), (&turns, "SLOWER")] {
            let text = comparison(found, "s", true, &Style::PLAIN);
            assert!(text.lines().any(|line| line.contains("10.0 ms") && line.trim_end().ends_with(wanted)), "{text}");
            assert_eq!(text.contains("SLOWER"), wanted == "SLOWER", "{text}");
            let json = comparison_json(found, "s");
            for part in [&json["cells"][0], &json["series"][0]] {
                assert_eq!((&part["verdict"], &part["decision"]), (&wanted.into(), &"SLOWER".into()), "{json}");
            }
            assert!(found.is_slower());
        }
    }

    #[test]
    fn cells_that_are_the_same_are_listed_only_if_all_are_asked_for() {
        let found = runs(&series(0.010), &series(0.010), &Rules::default()).unwrap();
        let text = |all| comparison(&found, "s", all, &Style::PLAIN);
        assert!(text(false).starts_with("SAME"), "{}", text(false));
        assert!(text(false).contains("1 cell more: `--all`") && !text(false).contains("10.0 ms"));
        assert!(text(true).contains("10.0 ms") && !text(true).contains("--all"));
    }

    #[test]
    fn a_comparison_says_what_may_cause_a_difference() {
        let said = |when: When| {
            let found = Comparison { when, ..runs(&series(0.010), &series(0.020), &Rules::default()).unwrap() };
            tidy(&comparison(&found, "s", true, &Style::PLAIN)).join(" ")
        };
        for apart in [When::Apart, When::Unknown] {
            let text = said(apart);
            assert!(text.contains("at most 5 %") && text.contains("on a machine that does not change"), "{text}");
            assert!(text.contains("looks the same as slower code") && text.contains("--in-turns"), "{text}");
        }
        let text = said(When::InTurns { rounds: 8 });
        let equal = "in turns, in 8 rounds: of equal runs, at most 5 %";
        assert!(text.contains(equal) && !text.contains("slower code"), "{text}");
    }

    #[test]
    fn where_nothing_bounds_a_ratio_its_interval_is_unknown() {
        let mut found = runs(&series(0.010), &series(0.020), &Rules::default()).unwrap();
        (found.cells[0].low, found.cells[0].high) = (0.0, f64::INFINITY);
        let text = comparison(&found, "s", true, &Style::PLAIN);
        let row = text.lines().find(|line| line.contains("10.0 ms")).expect("a row");
        assert!(row.contains("unknown") && !row.contains("inf"), "{text}");
        let cell = &comparison_json(&found, "s")["cells"][0];
        assert!(cell["low"].is_null() && cell["high"].is_null() && cell["ratio"].is_number(), "{cell}");
    }

    #[test]
    fn of_several_runs_each_cell_is_a_row_and_each_pair_has_its_ratio() {
        let runs = [series(0.010), series(0.020), series(0.005)];
        let names = ["base", "slow", "fast"].map(String::from);
        let found = several(&runs, &Rules::default()).unwrap();
        let text = comparison_of_several(&found, &names, "s", true, &Style::PLAIN);
        // By hand: 20 / 10, 5 / 10, 5 / 20.
        let wanted = [
            "series batch size base slow fast",
            "8 10.0 ms 2.000 DIFFERS 0.500 DIFFERS",
            "DIFFERS slow: 2.000 times base; 0 SAME, 1 DIFFERS, 0 AMBIGUOUS",
            "DIFFERS fast: 0.500 times base; 0 SAME, 1 DIFFERS, 0 AMBIGUOUS",
        ];
        assert_lines(&text, &wanted);
        for start in ["slow base 1 2.000 ", "fast base 1 0.500 ", "fast slow 1 0.250 "] {
            assert!(tidy(&text).iter().any(|found| found.starts_with(start)), "{text}\nlacks: {start}");
        }
    }

    #[test]
    fn runs_in_an_unknown_unit_or_without_a_common_cell_are_refused() {
        let mut other = series(0.010);
        other[0].unit = String::new();
        let error = runs(&series(0.010), &other, &Rules::default()).unwrap_err();
        assert_eq!(error.kind(), Kind::Data);
        assert!(error.to_string().contains("`step_time_s`, which names no unit"), "{error}");
        other[0].unit = "s".into();
        other[0].measurements.iter_mut().for_each(|one| one.observation.x = 9.0);
        let error = runs(&series(0.010), &other, &Rules::default()).unwrap_err().to_string();
        assert!(error.contains("no cell in common"), "{error}");
    }
}
