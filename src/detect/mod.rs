//! Jumps in a measured curve. (Method: to be described here.)

mod boundary;
mod dictionary;
mod drift;
mod explain;
mod findings;
mod interval;
mod model;
mod period;
mod reduce;
mod refine;
pub mod score;
mod search;
mod segment;
mod series;
mod stairs;
mod verdict;

pub use findings::{Candidate, Findings, Jump, Kink, Note, Period, Point, Verdict};

/// Fewest distinct x on which a jump is judged.
pub const FEWEST_POINTS: usize = 8;

/// One measured step. `y` is in seconds, or any other unit: the method does not depend on it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observation {
    pub x: f64,
    pub y: f64,
    /// Position in the run.
    pub order: Option<f64>,
    /// Pass over all x in which it was measured.
    pub block: Option<u32>,
    /// Clock while it was measured.
    pub clock_hz: Option<f64>,
}

impl Observation {
    /// A value of which nothing more is known.
    pub fn new(x: f64, y: f64) -> Self {
        Self { x, y, order: None, block: None, clock_hz: None }
    }
}

/// How a detection is run.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Chance that a series without a jump gets one.
    pub false_positive_rate: f64,
    /// Of all intervals.
    pub confidence: f64,
    /// Bootstrap resamples.
    pub resamples: usize,
    pub seed: u64,
    /// Jumps smaller than this share of the level are not reported.
    pub smallest_jump: f64,
}

impl Default for Settings {
    fn default() -> Self {
        Self { false_positive_rate: 0.01, confidence: 0.95, resamples: 1000, seed: 1, smallest_jump: 0.003 }
    }
}

/// Finds the jumps, kinks and the period of one series. Never panics; what could not be used is said in the notes.
pub fn detect(observations: &[Observation], settings: &Settings) -> Findings {
    let series = series::Series::new(observations);
    let mut findings = Findings { false_positive_rate: settings.false_positive_rate, ..Findings::default() };
    if series.dropped > 0 {
        findings.notes.push(Note::Dropped { count: series.dropped });
    }
    if series.x.len() < FEWEST_POINTS {
        findings.notes.push(Note::TooFewPoints { count: series.x.len() });
        return findings;
    }
    let (log, note) = drift::without(&series);
    findings.notes.extend(note);
    let reduced = reduce::reduce(&series.groups, &log);
    if !reduced.repeated {
        findings.notes.push(Note::NoRepetitions);
    }
    if too_wide(&series.x, &reduced.center) {
        findings.notes.push(Note::TooWide);
        return findings;
    }
    explain::explain(&series, &reduced, settings, &mut findings);
    verdict::judge(&series, &mut findings.jumps);
    findings
}

/// Whether x or ln y span more than double precision can tell apart in one fit.
fn too_wide(x: &[f64], log: &[f64]) -> bool {
    let span = x[x.len() - 1] - x[0];
    let closest = x.windows(2).map(|w| w[1] - w[0]).fold(f64::INFINITY, f64::min);
    let (low, high) = log.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(*v), b.max(*v)));
    !span.is_finite() || closest < 1e-9 * span || high - low > WIDEST
}

/// Largest ln of the ratio of two step times in one series.
const WIDEST: f64 = 16.0;

#[cfg(test)]
mod tests;
