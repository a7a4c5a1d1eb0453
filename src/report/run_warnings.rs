//! The warnings of a run: those that it ended with, and those that its stored data show; and those of a table.

use std::path::Path;

use serde_json::Value;

use super::Warning;
use crate::analysis::{Analysed, Gap, Series};
use crate::error::Result;
use crate::os::look;
use crate::run::{Boundary, Disagreement, Knowledge, Outcome};
use crate::settings::EngineName;
use crate::spec::Measure;
use crate::stats::quantile::median;
use crate::store::{StopReason, files};

/// The list of all warnings of a run, for the terminal, its page and its documents: the warnings that it `ended` with, and those that follow
/// from what was `found` in its data.
pub fn warnings(found: &[Analysed], mut ended: Vec<Warning>) -> Vec<Warning> {
    let early = too_early(found);
    if early.is_some() {
        ended.retain(|warning| !matches!(warning, Warning::NotConverged { .. }));
    }
    let mut all: Vec<Warning> = early.into_iter().chain(ended).collect();
    all.extend(found.iter().filter_map(next_to_nothing));
    all.extend(found.first().into_iter().flat_map(|found| table_warnings(&found.series)));
    all
}

/// The warnings that the run in `path` ended with, as its `jumps.json` keeps them; none where it keeps none. What its data show is left out.
///
/// # Errors
/// [`crate::error::Kind::Io`] where the file is there and cannot be read.
pub fn kept_warnings(path: &Path) -> Result<Vec<Warning>> {
    let Some(text) = look::text(&path.join(files::JUMPS))? else { return Ok(Vec::new()) };
    let document: Value = serde_json::from_str(&text).unwrap_or_default();
    let entries = document["warnings"].as_array().cloned().unwrap_or_default();
    let kept = entries.into_iter().filter_map(|entry| serde_json::from_value(entry).ok());
    let is_of_data = |warning: &Warning| {
        matches!(warning, Warning::TooEarly { .. } | Warning::NextToNothing { .. } | Warning::Gaps { .. })
    };
    Ok(kept.filter(|warning| !is_of_data(warning)).collect())
}

/// Less than the time that a library takes to start one operation on a device, in seconds.
const NEXT_TO_NOTHING_S: f64 = 20e-6;

/// The warning that the step of a user's file takes next to no time at any size, although the largest size is at least four times the smallest.
fn next_to_nothing(found: &Analysed) -> Option<Warning> {
    let Analysed { series, findings } = found;
    if series.engine() != Some(EngineName::Python) {
        return None;
    }
    let seconds = series.seconds_per_unit()?;
    let (first, last) = (findings.points.first()?, findings.points.last()?);
    let mut times: Vec<f64> = findings.points.iter().map(|point| point.center * seconds).collect();
    let [least, most] = [f64::min, f64::max].map(|of| times.iter().copied().reduce(of).unwrap_or(f64::NAN));
    let is_constant = last.x >= 4.0 * first.x && most < 2.0 * least;
    (is_constant && most < NEXT_TO_NOTHING_S)
        .then(|| Warning::NextToNothing { what: series.label(), median_s: median(&mut times) })
}

/// The warning that a run has fewer complete blocks than its spec asks for, from its least visited series.
fn too_early(found: &[Analysed]) -> Option<Warning> {
    let goals = found.iter().filter_map(|found| found.series.goal.as_ref());
    let early = goals.filter_map(|goal| Some((goal.early()?, goal))).min_by_key(|(early, _)| early.blocks);
    early.map(|(early, goal)| Warning::TooEarly { blocks: early.blocks, of: early.of, go_on: goal.go_on.clone() })
}

/// What a user should know about the table that a series is of.
pub fn table_warnings(series: &Series) -> Vec<Warning> {
    let warning = |gap: &Gap| {
        let Gap { column, rows, first_line, sizes, more_sizes, said } = gap.clone();
        Warning::Gaps { source: series.source.clone(), column, rows, first_line, sizes, more_sizes, said }
    };
    series.gaps.iter().map(warning).collect()
}

/// Everything in the outcome of a run that puts its result in doubt.
pub fn run_warnings(outcome: &Outcome, measure: &Measure) -> Vec<Warning> {
    let count = |reason: StopReason| outcome.cells.iter().filter(|cell| cell.stop_reason == reason).count();
    let lost = outcome.lost.as_ref().map(|error| Warning::DeviceLost { message: error.to_string() });
    let [too_large, failed] = [StopReason::OutOfMemory, StopReason::Failed].map(count);
    let open = not_converged(outcome, measure);
    let Knowledge { boundaries, rough, .. } = outcome.knowledge;
    let is_rough = rough > 0 && measure.blocks.min < measure.blocks.max;
    let (tally, smallest_jump) = (&outcome.tally, measure.smallest_jump);
    let (throttled, nan, visits) = (tally.throttled, tally.nan_loss, tally.unsteady_visits);
    let found = [
        lost.or((!outcome.complete).then_some(Warning::Interrupted)),
        (too_large > 0).then_some(Warning::OutOfMemory { cells: too_large }),
        (failed > 0).then_some(Warning::Failed { cells: failed }),
        (open > 0).then_some(Warning::NotConverged { cells: open, of: outcome.cells.len(), smallest_jump }),
        undecided(outcome, measure),
        is_rough.then_some(Warning::Rough { boundaries: rough, of: boundaries, smallest_jump }),
        (throttled > 0).then_some(Warning::Throttled { steps: throttled, of: tally.steps }),
        (nan > 0).then_some(Warning::NanLoss { steps: nan, visits_from_start: tally.nan_from_start }),
        (visits > 0).then_some(Warning::Unsteady { visits }),
    ];
    found.into_iter().flatten().collect()
}

/// What a complete run left open that was to decide on jumps. A fixed number of blocks asks for no decision.
fn undecided(outcome: &Outcome, measure: &Measure) -> Option<Warning> {
    let Knowledge { boundaries: of, open: boundaries, settled, needed, .. } = outcome.knowledge;
    let open = outcome.complete && boundaries > 0 && measure.blocks.min < measure.blocks.max;
    let (smallest_jump, visits) = (measure.smallest_jump, outcome.visits + needed?);
    open.then_some(Warning::Undecided {
        boundaries,
        of,
        smallest_jump,
        settled: settled?,
        takes_s: outcome.visit_s * visits as f64,
    })
}

/// The cells of a complete run that are less precise than the spec asks. A fixed number of blocks asks for no precision:
/// then only the cells count that have fewer blocks.
fn not_converged(outcome: &Outcome, measure: &Measure) -> usize {
    let fixed = measure.blocks.min >= measure.blocks.max;
    // Boundaries are what that run was to decide.
    if outcome.knowledge.boundaries > 0 && !fixed {
        return 0;
    }
    let stopped = outcome.cells.iter().filter(|cell| cell.stop_reason == StopReason::Budget);
    let cells = stopped.filter(|cell| !fixed || (cell.blocks as usize) < measure.blocks.min).count();
    if outcome.complete { cells } else { 0 }
}

/// The jumps that only one of the two shows, if there are any.
pub fn disagreement(outcome: &Outcome, found: &[Analysed], measure: &Measure) -> Option<Warning> {
    let (mut during, mut at_the_end) = (Vec::new(), Vec::new());
    for Analysed { series, findings } in found {
        let cells = outcome.cells.iter().filter(|cell| series.cells.contains(&cell.cell));
        let (cells, x): (Vec<usize>, Vec<f64>) = cells.map(|cell| (cell.cell as usize, cell.batch_size as f64)).unzip();
        let place = |boundary: &Boundary| cells.iter().position(|cell| *cell == boundary.below);
        let decided = outcome.boundaries.iter().filter_map(|boundary| Some((place(boundary)?, boundary.decision)));
        let decisions: Vec<_> = decided.collect();
        let found_here = Disagreement::between(&decisions, &x, &findings.jumps, measure.smallest_jump);
        let name =
            |k: &usize| if found.len() > 1 { format!("{} ({})", x[*k], series.label()) } else { x[*k].to_string() };
        during.extend(found_here.only_the_tests.iter().map(name));
        at_the_end.extend(found_here.only_the_analysis.iter().map(name));
    }
    (!during.is_empty() || !at_the_end.is_empty()).then_some(Warning::Disagreement { during, at_the_end })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::run::Decision;
    use crate::run::simulation::simulate;
    use crate::spec::Experiment;

    /// Three cells and `blocks`; 2 or 3 of the blocks were executed.
    fn run(blocks: &str) -> (Outcome, Measure) {
        let spec = format!(
            "version = 1\nname = \"a\"\n[sweep]\nbatch_size = \"1..=3\"\n[engine]\nname = \"synthetic\"\n[synthetic]\n\
             noise = {{ visits = \"20%\" }}\n[measure]\nblocks = {{ {blocks} }}\nsteps_per_visit = 1\n"
        );
        let experiment = Experiment::parse(&spec, "a.toml").expect("valid");
        let outcome = simulate(&experiment, None).expect("runs").outcome;
        (outcome, experiment.measure)
    }

    #[test]
    fn a_fixed_number_of_blocks_asks_for_no_precision() {
        let (mut outcome, measure) = run("min = 3, max = 3");
        assert_eq!(run_warnings(&outcome, &measure), []);
        outcome.cells[1].blocks = 2;
        let short = Warning::NotConverged { cells: 1, of: 3, smallest_jump: measure.smallest_jump };
        assert_eq!(run_warnings(&outcome, &measure), [short]);
        let (outcome, measure) = run("min = 2, max = 3");
        let imprecise = Warning::NotConverged { cells: 3, of: 3, smallest_jump: measure.smallest_jump };
        assert_eq!(run_warnings(&outcome, &measure), [imprecise]);
    }

    #[test]
    fn open_and_rough_boundaries_are_different_warnings() {
        let (mut outcome, measure) = run("min = 2, max = 3");
        outcome.knowledge = Knowledge { boundaries: 60, open: 4, rough: 2, settled: Some(0.03), needed: Some(90) };
        (outcome.visits, outcome.visit_s) = (30, 0.5);
        let smallest_jump = measure.smallest_jump;
        // 30 visits and 90 more, of half a second each.
        let open = Warning::Undecided { boundaries: 4, of: 60, smallest_jump, settled: 0.03, takes_s: 60.0 };
        let rough = Warning::Rough { boundaries: 2, of: 60, smallest_jump };
        assert_eq!(run_warnings(&outcome, &measure), [open, rough]);
    }

    #[test]
    fn every_doubt_about_the_result_is_a_warning() {
        let (mut outcome, measure) = run("min = 3, max = 3");
        outcome.cells[0].stop_reason = StopReason::OutOfMemory;
        outcome.cells[2].stop_reason = StopReason::Failed;
        (outcome.tally.steps, outcome.tally.throttled, outcome.tally.nan_loss) = (9, 2, 1);
        outcome.complete = false;
        let rest = [
            Warning::OutOfMemory { cells: 1 },
            Warning::Failed { cells: 1 },
            Warning::Throttled { steps: 2, of: 9 },
            Warning::NanLoss { steps: 1, visits_from_start: 0 },
        ];
        let found = run_warnings(&outcome, &measure);
        assert_eq!((&found[0], &found[1..]), (&Warning::Interrupted, &rest[..]));
        outcome.lost = Some(Error::device("gone"));
        assert_eq!(run_warnings(&outcome, &measure)[0], Warning::DeviceLost { message: "gone".into() });
    }

    /// Twelve batch sizes with one jump of 40 %, after 6.
    #[test]
    fn a_jump_that_only_one_analysis_shows_is_named() {
        let spec = "version = 1\nname = \"a\"\n[sweep]\nbatch_size = \"1..=12\"\n[engine]\nname = \"synthetic\"\n[synthetic]\n\
                    base = \"10ms\"\njumps = [{ after = 6, size = \"4ms\" }]\nnoise = { visits = \"0.5%\" }\n\
                    [measure]\nsmallest_jump = \"5%\"\n";
        let experiment = Experiment::parse(spec, "a.toml").expect("valid");
        let simulated = simulate(&experiment, None).expect("runs");
        let (observations, mut outcome) = (simulated.observations(), simulated.outcome);
        let mut series = Series::planted(Vec::new(), observations.into_iter().map(Into::into).collect());
        series.cells = (0..12).collect();
        let findings = series.find(&crate::detect::Settings::default());
        let mut found = [Analysed { series, findings }];
        let measure = &experiment.measure;
        assert_eq!(found[0].findings.jumps.iter().map(|jump| jump.after).collect::<Vec<_>>(), [6.0]);
        assert_eq!(disagreement(&outcome, &found, measure), None);
        // One place beside is the same jump.
        outcome.boundaries = vec![Boundary { below: 4, decision: Decision::Jump }];
        assert_eq!(disagreement(&outcome, &found, measure), None);
        outcome.boundaries =
            vec![Boundary { below: 1, decision: Decision::Jump }, Boundary { below: 5, decision: Decision::NoJump }];
        let text = disagreement(&outcome, &found, measure).expect("a warning").to_string();
        let during = "the tests during the run show a jump after 2 that the analysis of all steps does not";
        let at_the_end = "the analysis of all steps shows a jump after 6 that the tests during the run ruled out";
        assert_eq!(text, format!("{during}; {at_the_end}"));
        found[0].findings.jumps.clear();
        outcome.boundaries.truncate(1);
        assert_eq!(disagreement(&outcome, &found, measure).expect("a warning").to_string(), during);
    }
}
