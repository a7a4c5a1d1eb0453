//! `batchstep jumps`: the jumps in a run, or in any file with sizes and times or rates.

use std::path::{Path, PathBuf};

use batchstep::analysis::causes::{self, Explanation};
use batchstep::analysis::control::{self, Control};
use batchstep::analysis::{Analysed, Series, analyse};
use batchstep::detect::baseline::Baseline;
use batchstep::error::Result;
use batchstep::foreign;
use batchstep::report::{self, Document, JumpTable, Warning, human};

use super::{Exit, notice, print, print_aside, query};
use crate::cli::{Form, JumpsArgs, Method};

pub fn jumps(args: &JumpsArgs) -> Result<Exit> {
    let query = query(&args.columns);
    let read = |path: &PathBuf| Subject::read(path, analyse(path, &query, baseline_of(args.method))?);
    let subjects: Vec<Subject> = args.paths.iter().map(read).collect::<Result<_>>()?;
    match args.format {
        Form::Json => {
            let said: Vec<report::json::Subject> = subjects.iter().map(Subject::said).collect();
            print(&format!("{:#}\n", report::json::jumps(&said)));
        }
        Form::Table => {
            let found: Vec<Analysed> = subjects.iter().flat_map(|subject| subject.found.clone()).collect();
            let controls: Vec<Control> = subjects.iter().flat_map(|subject| subject.controls.clone()).collect();
            let explained: Vec<_> = subjects.iter().flat_map(|subject| subject.explained.clone()).collect();
            let read_as: String =
                subjects.iter().map(|subject| read_as(subject.found.first().map(|found| &found.series))).collect();
            print(&(read_as + &tables(&found, &controls) + &reasons(&found, &explained)));
        }
    }
    Ok(warn(subjects.iter().flat_map(|subject| &subject.warnings)))
}

/// What one path holds.
struct Subject {
    path: PathBuf,
    found: Vec<Analysed>,
    controls: Vec<Control>,
    explained: Vec<Vec<Explanation>>,
    warnings: Vec<Warning>,
}

impl Subject {
    fn read(path: &Path, found: Vec<Analysed>) -> Result<Self> {
        let (explained, controls) = (explain(path, &found), control::near(path));
        let warnings = report::warnings(path, &found, report::kept_warnings(path)?)?;
        Ok(Self { path: path.to_path_buf(), found, controls, explained, warnings })
    }

    fn said(&self) -> report::json::Subject<'_> {
        let Self { path, found, controls, explained, warnings } = self;
        report::json::Subject { path, found, controls, explained, warnings }
    }
}

/// How a table of another program was read, a line for each thing to know.
pub fn read_as(series: Option<&Series>) -> String {
    let line = |(series, note): (&Series, &String)| format!("{}: {note}\n", foreign::name(&series.source));
    series.into_iter().flat_map(|series| series.notes.iter().map(move |note| (series, note))).map(line).collect()
}

/// Prints the warnings of stored runs. That a run is too early touches the result of this command; the others are those that the run itself
/// has ended with.
pub fn warn<'a>(warnings: impl Iterator<Item = &'a Warning>) -> Exit {
    let style = report::Style::of_terminal();
    let mut exit = Exit::Done;
    for warning in warnings {
        print_aside(&format!("{}\n", warning.text(&style)));
        if matches!(warning, Warning::TooEarly { .. }) {
            exit = Exit::Warned;
        }
    }
    exit
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
