//! Finds the x after which a measured curve jumps, and distinguishes jumps from bends, single bad points and drift.
//!
//! [`detect`] takes single measured steps (batch size, seconds, and where known the order, block and clock) and answers with
//! jumps, their sizes, intervals and p-values, kinks, a period, bad points, and notes on what it could not exclude. It knows
//! nothing of files or devices.
//!
//! A **jump after k** means: the value at the next x leaves the trend that held up to k. Its size is the signed departure at
//! the next x from that trend.
//!
//! ```
//! use batchstep::detect::{Observation, Settings, detect};
//! // Four repetitions at each batch size; half a millisecond more after 16.
//! let wobble = [1.001, 0.999, 1.0005, 0.9995];
//! let steps: Vec<Observation> = (1..=40)
//!     .flat_map(|b| wobble.map(|w| (f64::from(b), w * (5e-3 + 1e-4 * f64::from(b) + if b > 16 { 5e-4 } else { 0.0 }))))
//!     .map(|(x, y)| Observation::new(x, y))
//!     .collect();
//! let findings = detect(&steps, &Settings::default());
//! assert_eq!(findings.jumps.len(), 1);
//! assert_eq!(findings.jumps[0].after, 16.0);
//! assert!((findings.jumps[0].size - 5e-4).abs() < 2e-5);
//! ```
//!
//! # Rooms
//!
//! In the order in which they run; each uses only those above it (`tests/detect_order.rs`). The method, with its formulas,
//! references and calibration, is in `docs/method.md`.
//!
//! - `input`, `findings`: what a detection is given and what it answers.
//! - `prepare`: observations are grouped by x (`prepared`) and by visit (`visits`), what all x share over the run is subtracted (`factor`), repetitions become one
//!   value and one error (`reduce`) on a scale without units (`scaled`). `unfitted` serves series too short to search.
//! - `model`: all terms that a curve may consist of (`candidates`, from `shapes` and `grid`), the data and their likelihood
//!   (`problem`), the weighted fit of chosen terms (`fit`, over `basis`), what every change of one term would bring
//!   (`moves`), and the size of a step in the model and in its neighbourhood (`boundary`). `simd` has the wide loops.
//! - `search`: the terms of least description length, by single changes (`descent`) from exact segmentations (`segment`) and
//!   whole staircases (`staircase`), with doubtful parts replaced on trial (`refine`).
//! - `verify`: the threshold and p-value of a step (`threshold`), the p-value of a series (`p_value`, `gaps`), the alternative
//!   of correlated errors (`autoregressive`), and the smallest jump that would have been found (`power`).
//! - `size`: sizes averaged over designs (`sizes`, `design`, `effects`) and their bootstrap intervals (`interval`, `blocks`).
//! - `interpret`: the period, the numbers of the hardware it coincides with, and whether a jump is there in cycles.
//! - `baseline`: three methods of others. `score`: how well jumps were found. `explain`: all of the above in order.
//!
//! # Cost
//!
//! Products of a vector with all candidate terms follow from one pass of suffix sums, and the orthonormal basis prices every
//! addition, removal and exchange without a refit; exchanges and designs that a bound rules out are not computed. 70 points of
//! 10 to 24 repetitions take about 1 ms, 1,000 resamples included, 1,000 points with ten jumps some 10 ms, and 5,000
//! points 0.1 to 0.15 s (`cargo bench --bench detect`): above 200 points a change costs O(n m) with m terms.

pub mod baseline;
mod explain;
mod findings;
mod input;
mod interpret;
mod model;
mod prepare;
pub mod score;
mod search;
mod size;
mod verify;
mod windows;

pub use findings::{Candidate, FactorPoint, Findings, Jump, Kink, Note, Period, Point, Rejection, Verdict};
pub use input::{FEWEST_POINTS, HardwareNumbers, Observation, Settings};
pub use interpret::coincidence::coincidences;

use crate::stats::disturbance::Scatter;
use prepare::prepared::Prepared;
use prepare::{factor, unfitted};

/// Finds the jumps, kinks and the period of one series. Never panics; what could not be used is said in the notes.
pub fn detect(observations: &[Observation], settings: &Settings) -> Findings {
    let prepared = Prepared::new(observations);
    let mut findings = Findings { false_positive_rate: settings.false_positive_rate, ..Findings::default() };
    if prepared.dropped > 0 {
        findings.notes.push(Note::Dropped { count: prepared.dropped });
    }
    if let Some(Scatter { of_medians, of_fastest }) = prepared.one_sided {
        findings.notes.push(Note::Disturbed { of_medians, of_fastest });
    }
    if prepared.x.len() < FEWEST_POINTS {
        findings.notes.push(Note::TooFewPoints { count: prepared.x.len() });
        findings.points = unfitted::points(&prepared, settings);
        return findings;
    }
    let undisturbed = factor::without(&prepared);
    findings.notes.extend(undisturbed.note.clone());
    findings.factor = undisturbed.factor.clone();
    if !undisturbed.reduced.repeated {
        findings.notes.push(Note::NoRepetitions);
    }
    if too_wide(&prepared.x, &undisturbed.reduced.center) {
        findings.notes.push(Note::TooWide);
        findings.points = unfitted::points(&prepared, settings);
        return findings;
    }
    let explained = windows::explained(&prepared, &undisturbed, settings);
    findings.notes.extend(explained.notes);
    Findings {
        notes: findings.notes,
        factor: findings.factor,
        false_positive_rate: settings.false_positive_rate,
        ..explained
    }
}

/// Whether x or ln y span more than double precision can resolve in one fit.
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
