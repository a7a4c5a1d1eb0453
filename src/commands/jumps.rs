//! `batchstep jumps`: the jumps in a run, or in any file with sizes and times or rates.

use std::path::Path;

use batchstep::analysis::causes::{self, Explanation};
use batchstep::analysis::control::{self, Control};
use batchstep::analysis::{Analysed, analyse};
use batchstep::detect::baseline::Baseline;
use batchstep::error::Result;
use batchstep::report::{self, Document, JumpTable, human};

use super::{Exit, notice, print, query, warn_of_table};
use crate::cli::{Form, JumpsArgs, Method};

pub fn jumps(args: &JumpsArgs) -> Result<Exit> {
    let query = query(&args.columns);
    let mut found = Vec::new();
    let (mut controls, mut explained) = (Vec::new(), Vec::new());
    for path in &args.paths {
        let of_path = analyse(path, &query, baseline_of(args.method))?;
        warn_of_table(of_path.first().map(|found| &found.series));
        explained.extend(explain(path, &of_path));
        found.extend(of_path);
        controls.extend(control::near(path));
    }
    match args.format {
        Form::Json => print(&format!("{:#}\n", report::json::jumps(&found, &controls, &explained))),
        Form::Table => print(&(tables(&found, &controls) + &reasons(&found, &explained))),
    }
    Ok(Exit::Done)
}

/// The layers that explain the jumps of a run; nothing where `path` is no run directory.
pub fn explain(path: &Path, found: &[Analysed]) -> Vec<Vec<Explanation>> {
    causes::of_run(path, found).unwrap_or_else(|error| {
        notice(format!("the jumps are not explained: {error}"));
        vec![Vec::new(); found.len()]
    })
}

/// The explanations as text; empty without any.
pub fn reasons(found: &[Analysed], explained: &[Vec<Explanation>]) -> String {
    let style = report::Style::of_terminal();
    let shown = found.iter().zip(explained).filter(|(_, explained)| !explained.is_empty());
    shown
        .map(|(found, explained)| format!("\n{}", report::causes(&found.series.label(), explained).render(&style)))
        .collect()
}

/// The baseline of that name; `None` for our own method.
fn baseline_of(method: Method) -> Option<Baseline> {
    match method {
        Method::Ours => None,
        Method::Differences => Some(Baseline::Differences),
        Method::Pelt => Some(Baseline::Pelt),
        Method::EDivisive => Some(Baseline::EDivisive),
    }
}

/// Series of too few points that are told one by one; more of them are told in one sentence.
const ONE_BY_ONE: usize = 3;

/// The jump tables as text.
pub fn tables(found: &[Analysed], controls: &[Control]) -> String {
    let style = report::Style::of_terminal();
    let table = |found: &Analysed| {
        let kept = human::limit(found.series.kept);
        let sample = if found.series.kept < 1.0 {
            format!("  Sample   {kept} of the visits; the file holds more than fit\n")
        } else {
            String::new()
        };
        jump_table(found, &found.series.label(), controls).render(&style) + &sample
    };
    let (few, mut shown): (Vec<_>, Vec<_>) =
        found.iter().partition(|found| report::has_too_few_points(&found.findings));
    let mut few: Vec<_> = few.into_iter().map(|found| &found.findings).collect();
    if few.len() <= ONE_BY_ONE {
        (few, shown) = (Vec::new(), found.iter().collect());
    }
    let tables = shown.into_iter().map(table);
    let sentence = (!few.is_empty()).then(|| report::too_few_points(&few, &style));
    tables.chain(sentence).collect::<Vec<_>>().join("\n")
}

/// The jump tables, not laid out yet.
pub fn jump_tables(found: &[Analysed], controls: &[Control]) -> Vec<Document> {
    found.iter().map(|found| jump_table(found, &found.series.label(), controls).document()).collect()
}

fn jump_table<'a>(Analysed { series, findings }: &'a Analysed, label: &'a str, controls: &[Control]) -> JumpTable<'a> {
    let (hardware, smallest) = (series.hardware(), findings.detectable);
    let axes = report::Axes { unit: &series.unit, kind: series.kind, item: &series.size.item };
    JumpTable { label, findings, axes, smallest, hardware, aa_rate: control::rate(controls, series) }
}
