//! What a user should know about a result, each with what to do about it.

use std::fmt;

use super::style::Look;
use super::{Style, human};

/// A warning.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Warning {
    /// The run was stopped before its end.
    Interrupted,
    /// The device does not work any more; what came next would have failed for no reason of its own.
    DeviceLost { message: String },
    /// Cells that did not fit in the device's memory.
    OutOfMemory { cells: usize },
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
    /// Steps while the device held its clocks down.
    Throttled { steps: usize, of: usize },
    /// Steps whose loss was infinite or not a number, and visits in which that began with the first step.
    NanLoss { steps: usize, visits_from_start: usize },
    /// Visits in which the step time never became steady.
    Unsteady { visits: usize },
    /// The step time drifted over the run by this share.
    Drift { relative: f64 },
    /// No clock could be read: work and clock cannot be distinguished.
    ClockUnreadable,
    /// Something a device or its library said.
    Device { message: String },
}

impl Warning {
    /// False where it is about the machine alone and no number of the result is in doubt.
    pub fn touches_the_result(&self) -> bool {
        !matches!(self, Self::ClockUnreadable | Self::Device { .. })
    }

    /// What to do about it; empty where the message says it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Interrupted => "continue with `--resume`; every finished visit is kept",
            Self::DeviceLost { .. } => {
                "see that the device works again (`batchstep selftest`), then continue with `--resume`; every finished visit is kept"
            }
            Self::OutOfMemory { .. } => "these batch sizes are left out; end the sweep below them, or free the device",
            Self::Failed { .. } => "the reason is in the column `status` of steps.parquet",
            Self::NotConverged { .. } => {
                "raise `time_limit` or `blocks.max` in [measure], or ask for a larger `smallest_jump`"
            }
            Self::Undecided { .. } => "measure that long with `--time`, or ask for less with `--smallest-jump`",
            Self::Rough { .. } => "more visits do not help; ask for less with `--smallest-jump`, and look at the chart",
            Self::Throttled { .. } => "cool the device or lock its clocks (`nvidia-smi -lgc`), then measure again",
            Self::NanLoss { visits_from_start: 0, .. } => {
                "lower `learning_rate` in [train]; the step times stand, but not-a-number can take other paths"
            }
            Self::NanLoss { .. } => {
                "before the first update no learning rate can be the cause: the engine is at fault (its memory begins as NaN, so that a \
                 read of what nothing wrote is seen), or 16 bits do not hold the network's numbers; do not use these times, and see \
                 `batchstep selftest`"
            }
            Self::Unsteady { .. } => "see the honesty chart; something else may be using the machine",
            Self::Drift { .. } => {
                "it was taken out of the analysis; let the machine warm up, and look at the honesty chart"
            }
            Self::ClockUnreadable => "every verdict stays `ambiguous`; `batchstep doctor` says what is missing",
            Self::Device { .. } => "",
        }
    }

    /// As it is shown: `warning: ...`, and the remedy in a second line.
    pub fn text(&self, style: &Style) -> String {
        let head = if self.touches_the_result() { "warning" } else { "note" };
        let message = style.wrap(&format!("{head}: {self}"), 2);
        let message = message.replacen(head, &style.paint(head, Look::Yellow), 1);
        match self.remedy() {
            "" => message,
            remedy => format!("{message}\n{}", style.wrap(&format!("  help: {remedy}"), 8)),
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counted = |number: usize, noun: &str| human::counted(number as u64, noun);
        let share = |part: usize, of: usize| human::percent(part as f64 / of.max(1) as f64);
        match self {
            Self::Interrupted => f.write_str("the run was interrupted before its end"),
            Self::DeviceLost { message } => write!(f, "the run ended before its end: {message}"),
            Self::OutOfMemory { cells } => write!(f, "{} did not fit in memory", counted(*cells, "cell")),
            Self::Failed { cells } => write!(f, "{} failed", counted(*cells, "cell")),
            Self::NotConverged { cells, of, smallest_jump } => {
                let (asked, of) = (human::limit(*smallest_jump), human::count(*of as u64));
                write!(f, "{} of {of} not known well enough to show a jump of {asked}", counted(*cells, "cell"))
            }
            Self::Undecided { boundaries, of, smallest_jump, settled, takes_s } => {
                let (asked, settled) = (human::limit(*smallest_jump), human::limit(*settled));
                let (of, takes) = (human::count(*of as u64), human::duration(*takes_s));
                write!(
                    f,
                    "jumps of {settled} or more are settled everywhere, jumps of {asked} are open at {boundaries} of {of} \
                     boundaries: at this noise they take about {takes}"
                )
            }
            Self::Rough { boundaries, of, smallest_jump } => {
                let (asked, of) = (human::limit(*smallest_jump), human::count(*of as u64));
                write!(
                    f,
                    "jumps of {asked} cannot be decided at {boundaries} of {of} boundaries: neighbouring batch sizes differ by as \
                     much without a pattern"
                )
            }
            Self::Throttled { steps, of } => {
                let of_all = share(*steps, *of);
                write!(f, "the device held its clocks down in {} ({of_all})", counted(*steps, "step"))
            }
            Self::NanLoss { steps, visits_from_start } => {
                write!(f, "the loss was not a finite number in {}", counted(*steps, "step"))?;
                match visits_from_start {
                    0 => Ok(()),
                    visits => write!(f, ", in {} from the first step on", counted(*visits, "visit")),
                }
            }
            Self::Unsteady { visits } => {
                write!(f, "the step time never became steady in {}", counted(*visits, "visit"))
            }
            Self::Drift { relative } => {
                write!(f, "the step time drifted by {} over the run", human::percent(*relative))
            }
            Self::ClockUnreadable => f.write_str("no clock was readable, so work cannot be distinguished from clock"),
            Self::Device { message } => f.write_str(message),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_ends_with_its_remedy() {
        let text = Warning::OutOfMemory { cells: 3 }.text(&Style::PLAIN);
        assert!(text.starts_with("warning: 3 cells did not fit in memory\n  help: these batch sizes"), "{text}");
        let text = Warning::NotConverged { cells: 1, of: 1400, smallest_jump: 0.01 }.to_string();
        assert_eq!(text, "1 cell of 1,400 not known well enough to show a jump of 1 %");
        assert_eq!(
            Warning::Throttled { steps: 5, of: 200 }.to_string(),
            "the device held its clocks down in 5 steps (2.5 %)"
        );
    }

    #[test]
    fn what_is_only_about_the_machine_does_not_touch_the_result() {
        let device = Warning::Device { message: "NVML is older than the driver".into() };
        assert_eq!(device.text(&Style::PLAIN), "note: NVML is older than the driver");
        assert!(!device.touches_the_result() && !Warning::ClockUnreadable.touches_the_result());
        assert!(
            Warning::Interrupted.touches_the_result()
                && Warning::NanLoss { steps: 1, visits_from_start: 0 }.touches_the_result()
        );
    }

    #[test]
    fn long_warnings_wrap() {
        let style = Style { color: false, width: 50 };
        let text = Warning::NotConverged { cells: 12, of: 280, smallest_jump: 0.01 }.text(&style);
        assert!(text.lines().all(|line| line.chars().count() <= 50), "{text}");
    }

    #[test]
    fn a_loss_that_is_no_number_before_the_first_update_is_not_blamed_on_the_learning_rate() {
        let diverged = Warning::NanLoss { steps: 4, visits_from_start: 0 };
        assert_eq!(diverged.to_string(), "the loss was not a finite number in 4 steps");
        assert!(diverged.remedy().contains("lower `learning_rate`"));
        let from_start = Warning::NanLoss { steps: 6, visits_from_start: 2 };
        assert!(from_start.to_string().ends_with("in 6 steps, in 2 visits from the first step on"));
        assert!(!from_start.remedy().contains("lower `learning_rate`") && from_start.remedy().contains("selftest"));
    }
}
