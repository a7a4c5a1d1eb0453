//! Warnings about a result, each with a remedy.

use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use super::Style;
use super::entries::positions;
use super::style::Look;
use crate::detect::Early;
use crate::units::human;

/// Part of the message about a changed file. It ends a run as a lost device does, but the device works.
const WAS_CHANGED: &str = "was changed while the run measured it";

/// A warning. In JSON its `kind` and its numbers, as a run keeps them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Warning {
    /// The run has fewer complete blocks than it asks for, and how to go on.
    TooEarly { blocks: usize, of: usize, go_on: String },
    /// The run was stopped before its end.
    Interrupted,
    /// The device no longer works; later cells would have failed only because of that.
    DeviceLost { message: String },
    /// Cells that did not fit in the device's memory.
    OutOfMemory { cells: usize },
    /// Settings of the spec that no engine of the run has on this device.
    LeftOut { what: Vec<String> },
    /// Optional engines that cannot run a training on these data, each with the reason and what to do.
    EnginesLeftOut { what: Vec<String> },
    /// Rows of a table without a number in a column, which are left out.
    Gaps {
        source: String,
        column: String,
        rows: usize,
        first_line: usize,
        /// The first of their sizes, and whether there are more.
        #[serde(serialize_with = "as_positions")]
        sizes: Vec<f64>,
        more_sizes: bool,
        said: Option<String>,
    },
    /// A step of one's own that takes next to nothing, whatever its size: the median over all sizes.
    NextToNothing { what: String, median_s: f64 },
    /// Cells whose step failed.
    Failed { cells: usize },
    /// Cells that are not known well enough to show the smallest jump asked for.
    NotConverged { cells: usize, of: usize, smallest_jump: f64 },
    /// Boundaries between batch sizes at which a jump of the smallest size asked for is neither shown nor ruled out.
    Undecided {
        boundaries: usize,
        of: usize,
        smallest_jump: f64,
        /// The jump that is ruled out or shown everywhere.
        settled: f64,
        /// Seconds that the whole run would take for `smallest_jump`, at the noise that was seen.
        takes_s: f64,
    },
    /// Boundaries that no visit decides: the levels of neighbouring batch sizes scatter by more than the smallest jump asked for.
    Rough { boundaries: usize, of: usize, smallest_jump: f64 },
    /// Jumps after those batch sizes that only one of the two analyses shows: the tests during the run, or the detector at its end.
    Disagreement { during: Vec<String>, at_the_end: Vec<String> },
    /// Steps while the device held its clocks down.
    Throttled { steps: usize, of: usize },
    /// Steps whose loss was infinite or not a number, and visits in which that began with the first step.
    NanLoss { steps: usize, visits_from_start: usize },
    /// Visits in which the step time never became steady.
    Unsteady { visits: usize },
    /// The time limit came before the last repetition.
    OutOfTime { visits: usize, of: usize },
    /// What one kind of study warns of, in its own words.
    OfStudy { message: String, remedy: String },
    /// A training ended early, as its spec asks for.
    Stopped { message: String },
}

impl Warning {
    /// What to do about it.
    pub fn remedy(&self) -> &str {
        self.said().1
    }

    /// The message, and what to do about it.
    fn said(&self) -> (String, &str) {
        let counted = |number: usize, noun: &str| human::counted(number as u64, noun);
        let count = |number: usize| human::count(number as u64);
        let are = |number: usize| if number == 1 { "is" } else { "are" };
        let line = |text: &str| text.lines().next().unwrap_or_default().to_owned();
        match self {
            Self::TooEarly { blocks, of, go_on } => {
                (format!("{}: jumps are not reported yet", Early { blocks: *blocks, of: *of }), go_on)
            }
            Self::Interrupted => (
                "the run was interrupted before its end".to_owned(),
                "continue with `--resume`; every finished visit is kept",
            ),
            // The message has a remedy of its own.
            Self::DeviceLost { message } if message.contains(WAS_CHANGED) => (
                format!("the run stopped before its end: {}", line(message)),
                "put the file back and continue with `--resume`, or begin another run with `--out`; every finished visit is kept",
            ),
            Self::DeviceLost { message } => (
                format!("the run stopped before its end: {message}"),
                "see that the device works again (`batchstep selftest`), then continue with `--resume`; every finished visit is kept",
            ),
            Self::OutOfMemory { cells } => (
                format!("{} did not fit in memory", counted(*cells, "cell")),
                "these sizes are left out; end the sweep below them, or free the device",
            ),
            Self::LeftOut { what } => (
                format!("settings that nothing here supports are left out: {}", what.join("; ")),
                "run the spec on a device that supports them, or remove them from the spec",
            ),
            Self::EnginesLeftOut { what } => (
                format!("optional engines are left out: {}", what.join("; ")),
                "the other engines were measured; to run without this warning, remove these from [engine]",
            ),
            Self::NextToNothing { what, median_s } => (
                format!("the step of {what} takes {} whatever its size, next to nothing", human::seconds(*median_s)),
                "is its work finished when it returns? Return its result, or define `synchronize()` in the file",
            ),
            Self::Gaps { source, column, rows, first_line, sizes, more_sizes, said } => {
                let (counted, verb) = (counted(*rows, "row"), are(*rows));
                let said = said.as_ref().map(|said| format!(", which says `{said}`")).unwrap_or_default();
                let more = if *more_sizes { " and more" } else { "" };
                let listed = sizes.iter().map(|&size| human::batch_size(size)).collect::<Vec<_>>().join(", ");
                let without =
                    if sizes.is_empty() { String::new() } else { format!("; sizes without a value: {listed}{more}") };
                (
                    format!(
                        "{source}: {counted} without a number in `{column}` {verb} left out; the first is line {first_line}{said}{without}"
                    ),
                    "fill in the cell, or remove the row; the other rows count",
                )
            }
            Self::Failed { cells } => (
                format!("{} failed", counted(*cells, "cell")),
                "each reason was printed when the cell failed; of a step of your own, `--try SIZE` shows it again",
            ),
            Self::NotConverged { cells, of, smallest_jump } => (
                format!(
                    "{} of {} {} not known well enough to show a jump of {}",
                    counted(*cells, "cell"),
                    count(*of),
                    are(*cells),
                    human::limit(*smallest_jump)
                ),
                "raise `time_limit` or `blocks.max` in [measure], or ask for a larger `smallest_jump`",
            ),
            Self::Undecided { boundaries, of, smallest_jump, settled, takes_s } => {
                let known = if settled > smallest_jump {
                    let settled = human::limit(*settled);
                    format!("jumps of {settled} or more are shown or ruled out wherever a jump can be tested, but ")
                } else {
                    String::new()
                };
                let (asked, of, takes) = (human::limit(*smallest_jump), count(*of), human::duration(*takes_s));
                (
                    format!(
                        "{known}the tests during the run neither show nor rule out jumps of {asked} at {boundaries} of {of} boundaries: at this noise, a run that \
                         decides them would take about {takes}"
                    ),
                    "raise `--time`, and `blocks.max` if that ended the run, or use `--smallest-jump` to ask only for larger jumps",
                )
            }
            Self::Rough { boundaries, of, smallest_jump } => (
                format!(
                    "the tests during the run cannot decide jumps of {} at {boundaries} of {} boundaries: neighbouring sizes differ by as much without a pattern",
                    human::limit(*smallest_jump),
                    count(*of)
                ),
                "more visits do not help; use `--smallest-jump` to ask only for larger jumps, and look at the chart",
            ),
            Self::Disagreement { during, at_the_end } => {
                let (tests, analysis) = ("the tests during the run", "the analysis of all steps");
                let said = [
                    (during, format!("{tests} show"), format!("{analysis} does not")),
                    (at_the_end, format!("{analysis} shows"), format!("{tests} ruled out")),
                ];
                let shown = said.into_iter().filter(|(places, ..)| !places.is_empty());
                let part = |(places, one, other): (&Vec<String>, String, String)| {
                    format!("{one} a jump after {} that {other}", human::listed(places))
                };
                (
                    shown.map(part).collect::<Vec<_>>().join("; "),
                    "neither counts as shown: look at the chart, and measure these sizes again with more `--time`",
                )
            }
            Self::Throttled { steps, of } => {
                let share = human::percent(*steps as f64 / (*of).max(1) as f64);
                (
                    format!("the device throttled its clocks in {} ({share})", counted(*steps, "step")),
                    "cool the device or lock its clocks (`nvidia-smi -lgc`), then measure again",
                )
            }
            Self::NanLoss { steps, visits_from_start: 0 } => (
                format!("the loss was not a finite number in {}", counted(*steps, "step")),
                "lower `learning_rate` in [train]; the step times stand, but computing with NaN can take other paths",
            ),
            Self::NanLoss { steps, visits_from_start } => (
                format!(
                    "the loss was not a finite number in {}, in {} from the first step on",
                    counted(*steps, "step"),
                    counted(*visits_from_start, "visit")
                ),
                "before the first update no learning rate can be the cause: the engine is at fault (its memory begins as NaN, so that a \
                 read of what nothing wrote is seen), or 16 bits do not hold the network's numbers; do not use these times, and see \
                 `batchstep selftest`",
            ),
            Self::Unsteady { visits } => (
                format!("the step time never became steady in {}", counted(*visits, "visit")),
                "see the honesty chart; something else may be using the machine",
            ),
            Self::OutOfTime { visits, of } => (
                format!("the time limit was reached after {} of {}", count(*visits), counted(*of, "visit")),
                "continue with `--resume` and a longer `--time`; every finished visit is kept",
            ),
            Self::OfStudy { message, remedy } => (message.clone(), remedy),
            Self::Stopped { message } => (
                format!("the run ended early: {}", line(message)),
                "repair the image, then continue with `--resume`; with `on_error = \"skip\"` in [loader], or where the image lies in a Parquet file, begin \
                 another run with `--out DIR`",
            ),
        }
    }

    /// As it is shown: `warning: ...`, and the remedy in a second line.
    pub fn text(&self, style: &Style) -> String {
        let message = style.wrap(&format!("warning: {self}"), 2);
        let message = message.replacen("warning", &style.paint("warning", Look::Yellow), 1);
        format!("{message}\n{}", style.wrap(&format!("  help: {}", self.remedy()), 8))
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.said().0)
    }
}

/// Sizes as the other documents have them.
/// The entries of warnings in a JSON document.
pub(super) fn warning_entries(path: &Path, warnings: &[Warning]) -> impl Iterator<Item = Value> {
    warnings.iter().map(move |warning| {
        let mut entry = serde_json::to_value(warning).unwrap_or_default();
        entry["source"] = path.display().to_string().into();
        entry["message"] = warning.to_string().into();
        entry["help"] = warning.remedy().into();
        entry
    })
}

fn as_positions<S: Serializer>(sizes: &[f64], serializer: S) -> Result<S::Ok, S::Error> {
    positions(sizes).serialize(serializer)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each with what it says, and what it says to do.
    #[test]
    fn a_warning_says_how_many_and_how_much_and_what_to_do() {
        let lost = |message: &str| Warning::DeviceLost { message: message.to_owned() };
        let (smallest_jump, takes_s) = (0.05, 93.0);
        let open = "the tests during the run neither show nor rule out jumps of 5 % at 13 of 65 boundaries: at this noise, a run that decides them \
                    would take about 1 min 33 s";
        let undecided = |settled| Warning::Undecided { boundaries: 13, of: 65, smallest_jump, settled, takes_s };
        let settled = "jumps of 18 % or more are shown or ruled out wherever a jump can be tested, but ";
        for (warning, said, remedy) in [
            (
                Warning::NotConverged { cells: 1, of: 1400, smallest_jump: 0.01 },
                "1 cell of 1,400 is not known well enough to show a jump of 1 %",
                "raise",
            ),
            (Warning::Throttled { steps: 5, of: 200 }, "the device throttled its clocks in 5 steps (2.5 %)", "cool"),
            (Warning::Failed { cells: 8 }, "8 cells failed", "each reason was printed"),
            // A file that was changed is not the device's fault.
            (
                lost("a.py was changed while the run measured it\n  help: put it back"),
                "the run stopped before its end: a.py was changed while the run measured it",
                "put the file back",
            ),
            (lost("gone"), "the run stopped before its end: gone", "see that the device works again"),
            (undecided(0.18), &format!("{settled}{open}"), "raise"),
            // Where the noise is small enough, what is open is not for the noise.
            (undecided(0.036), open, "raise"),
            // A loss that is no number before the first update is not blamed on the learning rate.
            (
                Warning::NanLoss { steps: 4, visits_from_start: 0 },
                "the loss was not a finite number in 4 steps",
                "lower `learning_rate`",
            ),
            (
                Warning::NanLoss { steps: 6, visits_from_start: 2 },
                "the loss was not a finite number in 6 steps, in 2 visits from the first step on",
                "before the first update no learning rate can be the cause",
            ),
        ] {
            assert_eq!(warning.to_string(), said);
            assert!(warning.remedy().starts_with(remedy), "{}", warning.remedy());
        }
    }

    #[test]
    fn a_warning_ends_with_its_remedy_and_wraps() {
        let text = Warning::OutOfMemory { cells: 3 }.text(&Style::PLAIN);
        assert!(text.starts_with("warning: 3 cells did not fit in memory\n  help: these sizes"), "{text}");
        let style = Style { color: false, width: 50 };
        let text = Warning::NotConverged { cells: 12, of: 280, smallest_jump: 0.01 }.text(&style);
        assert!(text.lines().all(|line| line.chars().count() <= 50), "{text}");
    }
}
