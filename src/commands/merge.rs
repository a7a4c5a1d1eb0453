//! `batchstep merge`: several runs of one spec into one.

use batchstep::analysis::{Analysed, Query, analyse};
use batchstep::error::Result;
use batchstep::merge::{self, Merged, Statement};
use batchstep::report::{self, human};

use super::jumps::tables;
use super::{Exit, print};
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
    let mut found = Vec::new();
    if !args.no_analysis {
        found = analyse(&args.out, &Query::default(), None)?;
        report::json::keep(&args.out, &found, &[], &[])?;
        let nodes = report::nodes(&found);
        print(&format!("\n{}", tables(&found, &[])));
        if !nodes.is_empty() {
            print(&format!("\n{}", nodes.render(&report::Style::of_terminal())));
        }
    }
    print(&format!("\nCharts and the page: batchstep report {}\n", args.out.display()));
    let slow: Vec<String> = found.iter().flat_map(slow).collect();
    warnings.iter().chain(&slow).for_each(|warning| eprintln!("batchstep: {warning}"));
    Ok(if warnings.is_empty() && slow.is_empty() { Exit::Done } else { Exit::Warned })
}

/// The machines that are slower or faster than the others.
fn slow(found: &Analysed) -> Vec<String> {
    let text = |node: &batchstep::detect::NodeEffect| {
        let way = if node.relative > 0.0 { "slower" } else { "faster" };
        format!(
            "{}: {} is {:.1} % {way} than the other machines ({:+.1} to {:+.1} %); what it adds to all batch sizes is taken out of the analysis",
            found.series.label(),
            node.name,
            100.0 * node.relative.abs(),
            100.0 * node.low,
            100.0 * node.high
        )
    };
    found.findings.nodes.iter().filter(|node| node.stands_out()).map(text).collect()
}

/// What is missing, and what differs.
fn warnings(merged: &Merged) -> Vec<String> {
    let mut warnings = merged.notices.clone();
    let Statement { missing, shards, differences, runs, .. } = &merged.statement;
    if let (Some(count), false) = (shards, missing.is_empty()) {
        let numbers: Vec<String> = missing.iter().map(ToString::to_string).collect();
        let shown = if numbers.len() > 20 { format!("{} of them", numbers.len()) } else { human::listed(&numbers) };
        warnings.push(format!("of {count} shards are missing: {shown}"));
    }
    let unfinished: Vec<&str> = runs.iter().filter(|run| !run.complete).map(|run| run.path.as_str()).collect();
    match unfinished[..] {
        [] => {}
        [one] => warnings.push(format!("{one} is not finished; go on with `--resume` and merge again")),
        [one, ..] => warnings.push(format!(
            "{} runs are not finished, {one} among them; `batchstep status` lists them",
            unfinished.len()
        )),
    }
    let lost: i64 = runs.iter().map(|run| run.lost).sum();
    if lost > 0 {
        let noun = human::counted(lost as u64, "visit");
        warnings.push(format!(
            "{noun} that the runs' numbering has are not in their tables: a part was damaged or removed"
        ));
    }
    warnings.extend(differences.iter().map(|text| format!("the runs differ in {text}")));
    warnings
}
