//! `batchstep merge`: several runs of one spec into one.

use batchstep::analysis::advice::{self, Options};
use batchstep::analysis::{Analysed, Query, analyse};
use batchstep::detect::{Difference, differences};
use batchstep::error::Result;
use batchstep::fleet::merge::{self, Merged, Statement};
use batchstep::report;
use batchstep::report::json::PathFindings;
use batchstep::units::human;

use super::jumps::{advice_lines, tables, warn};
use super::{Exit, notice, print};
use crate::cli::MergeArgs;

pub fn merge(args: &MergeArgs) -> Result<Exit> {
    let merged = merge::merge(&args.out, &args.runs)?;
    let warnings = warnings(&merged);
    let Statement { runs, .. } = &merged.statement;
    print(&format!(
        "{}: {} of {}, {} visits, {} steps, {} cells\n",
        args.out.display(),
        human::counted(runs.len() as u64, "run"),
        human::counted(merged.statement.nodes().len() as u64, "machine"),
        human::count(merged.statement.visits() as u64),
        human::count(merged.rows as u64),
        human::count(merged.cells as u64),
    ));
    let (mut slow, mut exit) = (Vec::new(), Exit::Done);
    if !args.no_analysis {
        let found = analyse(&args.out, &Query::default(), None)?;
        let advices = advice::of_run(&args.out, &found, &Options::default());
        let warnings = report::warnings(&found, Vec::new());
        let results = PathFindings { path: args.out.clone(), found, advices, warnings, ..PathFindings::default() };
        report::json::keep(&results)?;
        let PathFindings { found, advices, warnings, .. } = &results;
        exit = warn(warnings.iter());
        let nodes = report::nodes(found);
        print(&format!("\n{}", tables(found, &[], true)));
        print(&advice_lines(found, advices, true));
        if !nodes.is_empty() {
            print(&format!("\n{}", nodes.render(&report::Style::of_terminal())));
        }
        slow = found.iter().flat_map(slow_machines).collect();
    }
    print(&format!("\nCharts and the page: batchstep report {}\n", args.out.display()));
    warnings.iter().chain(&slow).for_each(notice);
    Ok(if warnings.is_empty() && slow.is_empty() { exit } else { Exit::Warned })
}

/// The machines that are slower or faster than the others.
fn slow_machines(found: &Analysed) -> Vec<String> {
    let text = |difference: Difference| {
        let (low, high) = (100.0 * difference.low, 100.0 * difference.high);
        format!(
            "{}: {difference} ({low:+.1} to {high:+.1} %); what it adds to all batch sizes is taken out of the analysis",
            found.series.label()
        )
    };
    differences(&found.findings.nodes).into_iter().map(text).collect()
}

/// What is missing, and what differs.
fn warnings(merged: &Merged) -> Vec<String> {
    let mut warnings = merged.notices.clone();
    let Statement { missing, shards, differences, runs, .. } = &merged.statement;
    warnings.extend(shards.and_then(|count| absent(missing, count)));
    let unfinished: Vec<&str> = runs.iter().filter(|run| !run.complete).map(|run| run.path.as_str()).collect();
    match unfinished[..] {
        [] => {}
        [one] => warnings.push(format!("{one} has not finished: continue it with `--resume`, and merge again")),
        [one, ..] => warnings.push(format!(
            "{} of {} runs have not finished, {one} among them: `batchstep status` shows which; merge again when they have",
            human::count(unfinished.len() as u64),
            human::count(runs.len() as u64)
        )),
    }
    let lost: i64 = runs.iter().map(|run| run.lost).sum();
    if lost > 0 {
        let (visits, have) = (human::counted(lost as u64, "visit"), if lost == 1 { "has" } else { "have" });
        warnings.push(format!(
            "{visits} that the runs numbered {have} no rows in their tables: a file was damaged or removed"
        ));
    }
    warnings.extend(differences.iter().map(|text| format!("the runs differ in {text}")));
    warnings
}

/// More numbers than that say nothing to a reader; `merge.json` has them all.
const LISTED: usize = 20;

fn absent(missing: &[usize], count: usize) -> Option<String> {
    let numbers: Vec<String> = missing.iter().map(ToString::to_string).collect();
    let count = human::count(count as u64);
    match numbers.len() {
        0 => None,
        1 => Some(format!("1 of {count} shards is missing: number {}", numbers[0])),
        some @ ..=LISTED => Some(format!("{some} of {count} shards are missing: numbers {}", human::listed(&numbers))),
        many => Some(format!("{} of {count} shards are missing; merge.json lists them", human::count(many as u64))),
    }
}
