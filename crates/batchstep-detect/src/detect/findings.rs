//! The result of a detection.

use std::fmt;

use super::input::FEWEST_POINTS;
use super::machines::{Difference, NodeEffect};
use super::rates::AlarmRate;
use super::rejection::Rejection;
use crate::stats::disturbance::Fastest;
use crate::stats::slow_times::SlowTimes;

/// All findings in one series.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Findings {
    /// One entry for each distinct x, ascending.
    pub points: Vec<Point>,
    /// For each of [`Self::points`], the smallest and the largest of its repetitions, less one in six at either end; empty where nothing was
    /// searched.
    pub extremes: Vec<[f64; 2]>,
    /// Accepted jumps, ascending.
    pub jumps: Vec<Jump>,
    /// Changes of slope without a gap, ascending.
    pub kinks: Vec<Kink>,
    /// The common distance of the jumps, where one is proven.
    pub period: Option<Period>,
    /// Whole numbers whose multiples lie off the curve of the other x: no jumps, however many.
    pub multiples: Vec<Multiples>,
    /// Boundaries that looked like jumps but failed a test, each with the reason.
    pub rejected: Vec<Candidate>,
    /// Remarks that a reader needs to judge the rest.
    pub notes: Vec<Note>,
    /// The false-positive rate per series for which the threshold was set; `NaN` if the method states none.
    pub false_positive_rate: f64,
    /// How many of simulated series of its kind have a false jump; `None` where nothing was searched, or too few were simulated.
    pub alarm_rate: Option<AlarmRate>,
    /// The share of jump-free series like this one that show a step as strong as the strongest here; `None` if it was
    /// not requested.
    pub p_value: Option<f64>,
    /// The smallest jump, as a share of the level, that would have been found with probability 0.9 in the middle third of
    /// the points; `None` where nothing was searched.
    pub detectable: Option<f64>,
    /// The factor that all x share over the run, visit by visit in the order of the run; empty if no such factor was
    /// found.
    pub factor: Vec<FactorPoint>,
    /// The machines that measured the series, with what each adds to all x, which was subtracted; empty if there was
    /// one machine.
    pub nodes: Vec<NodeEffect>,
    /// Why nothing was searched, if too little has been measured yet.
    pub early: Option<Early>,
    /// The smallest jump, as a share of the level, that the measurement should show; `None` if none was requested.
    pub asked: Option<f64>,
}

impl Findings {
    /// Whether anything can be said about jumps: there must be enough blocks and enough points, and they must have been searched.
    pub fn is_judged(&self) -> bool {
        self.early.is_none() && self.points.len() >= FEWEST_POINTS && self.unsearched().is_none()
    }

    /// The note that says why nothing was searched, where there are points enough.
    pub fn unsearched(&self) -> Option<&Note> {
        self.notes.iter().find(|note| matches!(note, Note::TooManyPoints { .. } | Note::TooWide { .. }))
    }

    /// The x for which [`Self::detectable`] holds: the middle third of the points, with the boundaries on both sides of it.
    pub fn detectable_between(&self) -> Option<[f64; 2]> {
        let third = self.points.len() / 3;
        third.checked_sub(1).map(|before| [self.points[before].x, self.points[self.points.len() - third].x])
    }

    /// The smallest jump that would have been seen, if the measurement should show smaller ones: those remain open.
    pub fn open_below(&self) -> Option<f64> {
        self.detectable.zip(self.asked).filter(|(seen, asked)| seen > asked).map(|(seen, _)| seen)
    }
}

/// There are fewer complete passes over all x than the measurement requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Early {
    pub blocks: usize,
    pub of: usize,
}

impl fmt::Display for Early {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "too early: {} of {} block{}", self.blocks, self.of, if self.of == 1 { "" } else { "s" })
    }
}

/// The common factor during one visit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FactorPoint {
    /// The position in the run at which the visit began.
    pub order: f64,
    /// The share by which it is slower than the mean of the run.
    pub relative: f64,
    /// Standard error of `relative`.
    pub sd: f64,
}

/// One distinct x, its repetitions reduced to a center with an interval. `y` values are in the unit of the input.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    pub x: f64,
    /// The number of repetitions that were used.
    pub count: usize,
    /// Robust location of the repetitions, after subtracting the common factor.
    pub center: f64,
    /// Interval of the center at the requested confidence.
    pub low: f64,
    pub high: f64,
    /// The fitted model at this x, without the terms of bad points.
    pub fit: f64,
    /// Whether this x, by itself or with up to three neighbours, deviates from the curve, which returns after it: a bad
    /// point, not a jump.
    pub off: bool,
}

/// The multiples of a number lie above or below the curve of the other x.
#[derive(Clone, Debug, PartialEq)]
pub struct Multiples {
    pub of: f64,
    /// By how much, at each of [`Findings::points`], as a share of the curve without them; 0 at other x.
    pub shares: Vec<f64>,
    /// The median of the shares of the multiples.
    pub relative: f64,
    /// As for a jump.
    pub p_value: f64,
}

/// A jump after `after`: at the next x the curve leaves the trend that held up to `after`.
#[derive(Clone, Debug, PartialEq)]
pub struct Jump {
    /// The most likely place.
    pub after: f64,
    /// The jump is after one of the x from `after_low` to `after_high`; both are `after` if the data determine the
    /// place exactly.
    pub after_low: f64,
    pub after_high: f64,
    /// Signed departure at the next x from the trend up to `after`, in the unit of y.
    pub size: f64,
    pub low: f64,
    pub high: f64,
    /// `size` divided by the fit at `after`; where x grows by factors, perhaps by the trend at the next x (by logarithms).
    pub relative: f64,
    /// The p-value, corrected for looking at every boundary of the series. It holds if the curve between jumps is one of the smooth shapes of the model.
    pub p_value: f64,
    /// The same of straight lines through up to sixteen points on each side, whatever the curve does elsewhere; `None` near an end.
    pub nearby_p_value: Option<f64>,
    /// `None` if neither clock nor waits were read with the steps, so that nothing can be said.
    pub verdict: Option<Verdict>,
}

impl Jump {
    /// "up" or "down".
    pub fn direction(&self) -> &'static str {
        if self.size < 0.0 { "down" } else { "up" }
    }

    /// A jump with a certain place and size, for tests of other things.
    #[doc(hidden)]
    pub fn planted(after: f64, size: f64, relative: f64) -> Self {
        let (low, high, verdict) = (size, size, Some(Verdict::Work));
        let nearby_p_value = Some(0.01);
        Self {
            after,
            after_low: after,
            after_high: after,
            size,
            low,
            high,
            relative,
            p_value: 0.001,
            nearby_p_value,
            verdict,
        }
    }
}

/// A change of slope at `at` without a gap. The slopes, in units of y per unit of x, are those of the fitted curve with
/// all its terms except steps and bad points, over up to sixteen points on each side.
#[derive(Clone, Debug, PartialEq)]
pub struct Kink {
    /// One of the x, or a place between two of them.
    pub at: f64,
    pub slope_before: f64,
    pub slope_after: f64,
    pub p_value: f64,
}

impl Kink {
    /// The change of the slope, as a share of the steeper one.
    pub(crate) fn share(&self) -> f64 {
        let steeper = self.slope_before.abs().max(self.slope_after.abs());
        (self.slope_after - self.slope_before).abs() / steeper
    }
}

/// More jumps are at multiples of `value` than expected by chance.
#[derive(Clone, Debug, PartialEq)]
pub struct Period {
    pub value: f64,
    pub p_value: f64,
    /// The `after` of the jumps that the period explains.
    pub explains: Vec<f64>,
    /// Its other places, where the neighbouring points do not show a jump: it is missing there, or too small to be
    /// seen.
    pub unconfirmed: Vec<f64>,
}

/// A boundary that was tested and not accepted.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    pub after: f64,
    pub size: f64,
    pub p_value: f64,
    pub reason: Rejection,
}

impl Candidate {
    /// A jump that is none after all.
    pub fn rejected(jump: &Jump, reason: Rejection) -> Self {
        Self { after: jump.after, size: jump.size, p_value: jump.p_value, reason }
    }
}

/// Whether the device did more work, or the same work at a slower clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verdict {
    /// The jump is there in seconds and in cycles; where those were not counted, in processor time.
    Work,
    /// The jump is there in seconds, but clearly absent in cycles.
    Clock,
    /// Neither of the two can be shown; the default.
    #[default]
    Ambiguous,
}

impl Verdict {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Work => "work",
            Self::Clock => "clock",
            Self::Ambiguous => "ambiguous",
        }
    }

    /// Whether the device did more, in words for people.
    pub fn more_work(self) -> &'static str {
        match self {
            Self::Work => "yes",
            Self::Clock => "no, the clock",
            Self::Ambiguous => "not known",
        }
    }
}

/// A remark on the data or the method that affects the result.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Note {
    /// Values that were not finite or not above zero.
    Dropped { count: usize },
    /// Too few distinct x to judge a jump.
    TooFewPoints { count: usize },
    /// More distinct x than the method can handle.
    TooManyPoints { count: usize, most: usize },
    /// The x, or else the values, span too many orders of magnitude to be one curve.
    TooWide { sizes: bool },
    /// There is one value for each x, so the noise is estimated from neighbours.
    NoRepetitions,
    /// The share of the steps that other programs interrupted, those programs and the most processes of each at a time. At `sizes` x
    /// nearly every step was interrupted, so all steps count there, and the times of all x are without the waits for a processor.
    Interrupted { share: f64, sizes: usize, programs: Vec<(String, usize)> },
    /// Visits from times in which the machine was slow were left out.
    Slow(SlowTimes),
    /// Steps are disturbed upward, so the fastest step represents a visit, and perhaps the fastest visits a batch size.
    ByFastest(Fastest),
    /// A factor common to all x was subtracted; relative to its mean it went from `low` to `high` during the run. A
    /// step of a fixed reference with each visit would be worthwhile if it cost less than the share `reference` of a
    /// visit.
    CommonFactor { low: f64, high: f64, reference: f64 },
    /// One of the few values at each x was left out. It is `times` the others, and the curve without it is far smoother than the values' scatter would
    /// make it: such is a first repetition.
    OneLeftOut { times: f64 },
    /// Several machines measured it. What each adds to all x, from `low` to `high` relative to their middle, was
    /// subtracted; `apart` has those that stand out.
    Nodes { count: usize, low: f64, high: f64, apart: Vec<Difference> },
    /// x and the order of measurement cannot be separated (the order follows x, or each x had one visit), so drift
    /// looks like a property of x.
    OrderConfounded,
    /// Each of the passes measured x one after another.
    MeasuredInTurn { passes: usize },
    /// Neither order nor block is known.
    OrderUnknown,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dropped { count } => {
                let values = if *count == 1 { "value was" } else { "values were" };
                write!(f, "{count} {values} left out: not finite, or not above zero")
            }
            Self::TooFewPoints { count } => {
                write!(f, "only {count} distinct x: at least {} are needed to judge a jump", FEWEST_POINTS)
            }
            Self::TooManyPoints { count, most } => {
                write!(f, "{count} distinct x, and this method takes at most {most}: nothing was searched")
            }
            Self::TooWide { sizes } => {
                let what = if *sizes { "sizes" } else { "values" };
                write!(f, "the {what} span too many orders of magnitude to be one curve: nothing was searched")
            }
            Self::OneLeftOut { times } => write!(
                f,
                "one of the values at each size is left out: it is about {times:.2} times the others, as a first repetition is, and without it the \
                 curve is smooth"
            ),
            Self::NoRepetitions => f.write_str("no repetitions: the noise is estimated from neighbouring points"),
            Self::Interrupted { share, sizes, programs } => {
                write!(
                    f,
                    "another program runs on these processors: {:.0} % of the steps were interrupted{}",
                    100.0 * share,
                    if *sizes == 0 { " and do not count" } else { "" }
                )?;
                let named = |(name, processes): &(String, usize)| match processes {
                    1 => format!("`{name}`"),
                    _ => format!("`{name}`, {processes} processes"),
                };
                let named: Vec<String> = programs.iter().map(named).collect();
                if !named.is_empty() {
                    write!(f, " ({})", named.join("; "))?;
                }
                let of_sizes = match sizes {
                    0 => return Ok(()),
                    1 => "1 batch size".to_owned(),
                    _ => format!("{sizes} batch sizes"),
                };
                write!(
                    f,
                    "; at {of_sizes} hardly any were not, so all times here are without the waits for a processor. As root, \
                     `chrt --rr 1 batchstep run ...` goes before other programs"
                )
            }
            Self::Slow(SlowTimes { visits, of, times }) => write!(
                f,
                "in {visits} of {of} visits the machine was slow, by a factor of about {times:.1}, as when another program takes a core: they do \
                 not count, since that does not slow all batch sizes alike"
            ),
            Self::ByFastest(Fastest { share, scatter, of_middles }) => {
                match share {
                    None => f.write_str("some steps of a visit take longer than others, so its fastest counts")?,
                    Some(share) => write!(
                        f,
                        "the machine was slower at many visits than at others, so the level of each batch size is that of the fastest {:.0} % of its visits",
                        100.0 * share
                    )?,
                }
                write!(f, ": these scatter by {:.1} %, the middles of the visits by {:.1} %", 100.0 * scatter, 100.0 * of_middles)
            }
            Self::CommonFactor { low, high, reference } => write!(
                f,
                "what all batch sizes share over the run ({:+.1} to {:+.1} %) was subtracted; a fixed reference step beside each visit would know \
                 more only if it took less than {:.0} % of the visit",
                100.0 * low,
                100.0 * high,
                100.0 * reference
            ),
            Self::Nodes { count, low, high, apart } => {
                write!(
                    f,
                    "{count} machines measured it; what each adds to all batch sizes ({:+.1} to {:+.1} %) was subtracted",
                    100.0 * low,
                    100.0 * high
                )?;
                let named: Vec<String> = apart.iter().take(3).map(ToString::to_string).collect();
                match (named.is_empty(), apart.len()) {
                    (true, _) => Ok(()),
                    (false, 4..) => write!(f, "; {} of them stand out: {}, ...", apart.len(), named.join(", ")),
                    (false, _) => write!(f, "; {}", named.join(", ")),
                }
            }
            Self::OrderConfounded => f.write_str(
                "each size was measured at its own time in the run: drift over the run cannot be distinguished from the curve; measure the sizes in \
                 random order, several times",
            ),
            Self::MeasuredInTurn { passes } => write!(
                f,
                "each of {passes} passes measured the sizes one after another, so what the machine does meanwhile looks like a property of the \
                 sizes: a jump or kink counts only if it stands out from what the passes differ by; measure in random order"
            ),
            Self::OrderUnknown => {
                f.write_str("neither order nor block is known: drift over the run cannot be excluded")
            }
        }
    }
}
