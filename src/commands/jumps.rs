//! `batchstep jumps`: the jumps in a run, or in any file with sizes and times or rates.

use std::path::{Path, PathBuf};

use batchstep::analysis::advice::{Advice, Silence};
use batchstep::analysis::causes::Explanation;
use batchstep::analysis::control::{self, Control};
use batchstep::analysis::mechanisms::{self, Answers};
use batchstep::analysis::{Analysed, Series, analyse, kernels, run_names, switches};
use batchstep::detect::baseline::Baseline;
use batchstep::error::Result;
use batchstep::foreign;
use batchstep::report::json::PathFindings;
use batchstep::report::{self, Document, JumpTable, Warning};
use batchstep::units::human;
use batchstep::words;

use super::output::or_said;
use super::{Exit, findings, print, print_warnings, query};
use crate::cli::{Form, JumpsArgs, Method};

pub fn jumps(args: &JumpsArgs) -> Result<Exit> {
    let query = query(&args.columns);
    let baseline = baseline_of(args.method);
    let read = |path: &PathBuf| {
        let results = findings::stored(path, analyse(path, &query, baseline)?)?;
        // What to avoid stands on proven jumps, and a baseline proves none.
        Ok(if baseline.is_none() { results } else { PathFindings { advices: Vec::new(), ..results } })
    };
    let mut subjects: Vec<PathFindings> = args.paths.iter().map(read).collect::<Result<_>>()?;
    match args.format {
        Form::Json => print(&format!("{:#}\n", report::json::jumps(&subjects))),
        Form::Table => print(&told(args, &mut subjects)),
    }
    Ok(warn(subjects.iter().flat_map(|subject| &subject.warnings)))
}

/// The findings as text; they are taken out of the subjects.
fn told(args: &JumpsArgs, subjects: &mut [PathFindings]) -> String {
    let read_as: String =
        subjects.iter().map(|subject| read_as(subject.found.first().map(|found| &found.series))).collect();
    let mechanisms = |PathFindings { path, found, explained, .. }: &PathFindings| {
        mechanisms::of_run(path, found, explained).unwrap_or_default()
    };
    let answers: Vec<Vec<Answers>> = subjects.iter().map(mechanisms).collect();
    let switches: String = subjects.iter().map(|subject| switch_lines(&subject.path, &subject.found)).collect();
    tell_apart(&args.paths, subjects.iter_mut().map(|subject| &mut subject.found));
    let likely = likely(subjects.iter().zip(&answers).flat_map(|(subject, answers)| subject.found.iter().zip(answers)));
    let mut all = PathFindings::default();
    for subject in subjects {
        all.found.append(&mut subject.found);
        all.controls.append(&mut subject.controls);
        all.explained.append(&mut subject.explained);
        all.advices.append(&mut subject.advices);
    }
    let why = if args.details { reasons(&all.found, &all.explained) + &switches } else { switches + DETAILS };
    let tables = tables(&all.found, &all.controls, args.details);
    read_as + &tables + &advice_lines(&all.found, &all.advices, args.details) + &likely + &why
}

/// How to see what `jumps` and `explain` leave out.
pub const DETAILS: &str = "\nDetails  the same command with `--details`\n";

/// Adds the name of its path to each series whose label another one has too, so that a reader can tell the series of several paths apart.
pub fn tell_apart<'a>(paths: &[PathBuf], found: impl Iterator<Item = &'a mut Vec<Analysed>>) {
    if paths.len() < 2 {
        return;
    }
    let of_path = |(name, own): (String, &'a mut Vec<Analysed>)| own.iter_mut().map(move |one| (name.clone(), one));
    let all: Vec<(String, &mut Analysed)> = run_names(paths).into_iter().zip(found).flat_map(of_path).collect();
    let labels: Vec<String> = all.iter().map(|(_, one)| one.series.label()).collect();
    for ((name, one), label) in all.into_iter().zip(&labels) {
        if labels.iter().filter(|other| *other == label).count() > 1 {
            one.series.group.push(("run".to_owned(), name));
        }
    }
}

/// How a table of another program was read, a line for each thing to know.
pub fn read_as(series: Option<&Series>) -> String {
    let line = |(series, note): (&Series, &String)| format!("{}: {note}\n", foreign::name(&series.source));
    series.into_iter().flat_map(|series| series.notes.iter().map(move |note| (series, note))).map(line).collect()
}

/// Prints the warnings of stored runs. That a run is too early touches the result of this command; the others are those that the run itself
/// has ended with.
pub fn warn<'a>(mut warnings: impl Iterator<Item = &'a Warning> + Clone) -> Exit {
    print_warnings(warnings.clone());
    if warnings.any(|warning| matches!(warning, Warning::TooEarly { .. })) { Exit::Warned } else { Exit::Done }
}

/// The advice on sizes, after a blank line, for as many series as fit; empty if no series allows advice.
pub fn advice_lines(found: &[Analysed], advices: &[std::result::Result<Advice, Silence>], details: bool) -> String {
    let style = report::Style::of_terminal();
    let said = report::size_advices(found, advices, if details { SENTENCES } else { TABLES }, false);
    apart(said.iter().map(|document| document.render(&style)).collect())
}

/// A text after a blank line; nothing where it is empty.
fn apart(text: String) -> String {
    if text.is_empty() { text } else { format!("\n{text}") }
}

/// The likeliest cause of the jumps in a sentence; empty if no cause is known.
pub fn likely<'a>(known: impl Iterator<Item = (&'a Analysed, &'a Answers)>) -> String {
    apart(report::likely_causes(&labelled(known)).render(&report::Style::of_terminal()))
}

pub fn labelled<'a>(known: impl Iterator<Item = (&'a Analysed, &'a Answers)>) -> Vec<(String, &'a Answers)> {
    known.map(|(found, answers)| (found.series.label(), answers)).collect()
}

/// What to set to see the cause of a jump in a step of one's own; a document without remarks where nothing is known.
pub fn switches(path: &Path, found: &[Analysed]) -> Document {
    let all = or_said("what would show the causes is not known", switches::of_run(path, found));
    let own = found.iter().zip(all).filter(|(_, switches)| !switches.is_empty());
    report::switches(
        &path.display().to_string(),
        &own.map(|(found, switches)| (found.series.label(), switches)).collect::<Vec<_>>(),
    )
}

/// What changes inside the steps at the jumps, where a profiler saw it.
pub fn inside(path: &Path) -> Document {
    report::kernels(&or_said("what changes inside the steps is not known", kernels::of_run(path)))
}

/// The same as text, placed after the changes inside the steps.
pub fn switch_lines(path: &Path, found: &[Analysed]) -> String {
    let style = report::Style::of_terminal();
    apart(inside(path).render(&style) + &switches(path, found).render(&style))
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

/// Up to this many series with too few points are named one by one; more of them are counted in one sentence.
const ONE_BY_ONE: usize = 3;

/// Up to this many series show their jump table without `--details`; with more, each shows one sentence.
const TABLES: usize = 2;
/// Sentences, beyond which the rest is counted; then series with jumps come first.
const SENTENCES: usize = 10;

/// The jump tables as text; without `details` no more than fits on a screen.
pub fn tables(found: &[Analysed], controls: &[Control], details: bool) -> String {
    let style = report::Style::of_terminal();
    let (few, mut shown): (Vec<_>, Vec<_>) = found.iter().partition(|found| words::has_too_few_points(&found.findings));
    let mut few: Vec<_> = few.into_iter().map(|found| &found.findings).collect();
    if few.len() <= ONE_BY_ONE {
        (few, shown) = (Vec::new(), found.iter().collect());
    }
    let many = !details && shown.len() > TABLES;
    let left = if many { shown.len().saturating_sub(SENTENCES) } else { 0 };
    let table = |found: &Analysed| {
        let kept = human::limit(found.series.kept);
        let sample = format!("  Sample   {kept} of the visits; the file contains more than fit\n");
        let sample = if found.series.kept < 1.0 { sample } else { String::new() };
        let label = found.series.label();
        let table = JumpTable { label: &label, found, aa_rate: control::rate(controls, &found.series) };
        let text = match (details, many) {
            (true, _) => table.render(&style),
            (false, false) => table.brief(&style),
            (false, true) => table.sentence(&style),
        };
        text + &sample
    };
    let number = shown.len() - left;
    if left > 0 {
        shown.sort_by_key(|found| found.rank());
    }
    let hidden = shown[number..].iter().filter(|found| !found.findings.jumps.is_empty()).count();
    let hidden = if hidden > 0 { format!(", {hidden} of them with jumps") } else { String::new() };
    let tables = shown.into_iter().take(number).map(table);
    let more = (left > 0).then(|| format!("and {left} more series{hidden}: `--details`\n"));
    let sentence = (!few.is_empty()).then(|| report::too_few_points(&few, &style));
    tables.chain(more).chain(sentence).collect::<Vec<_>>().join(if many { "" } else { "\n" })
}

/// The jump tables, not laid out yet.
pub fn jump_tables(found: &[Analysed], controls: &[Control]) -> Vec<Document> {
    let table = |found: &Analysed| {
        let aa_rate = control::rate(controls, &found.series);
        JumpTable { label: &found.series.label(), found, aa_rate }.document()
    };
    found.iter().map(table).collect()
}
