//! Finds the x after which a measured curve jumps, and distinguishes jumps from bends, single bad points and drift.
//!
//! [`detect`] takes single measured steps (batch size, seconds, and if known the order, block and clock) and returns
//! jumps, their sizes, intervals and p-values, kinks, a period, bad points, and notes on what it could not exclude. It
//! uses no files and no devices.
//!
//! A **jump after k** means: the value at the next x leaves the trend that held up to k. Its size is the signed departure at
//! the next x from that trend.
//!
//! ```
//! use batchstep_detect::detect::{Observation, Settings, detect};
//! // Four repetitions at each batch size; steps take half a millisecond more after 16.
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
//! The rooms in the order in which they run; each uses only the rooms above it (`tests/order.rs`). For formulas,
//! references and calibration see `docs/method.md`, for pseudocode `docs/detector.md`.
//!
//! - `prepare`: observations are grouped by x and visit, freed of the factor that all x share over the run, and reduced
//!   to one value and one error for each x.
//! - `model`: the terms that a curve may consist of, their weighted fit, the gain of every change of one term, and what
//!   the points around a boundary show by themselves.
//! - `search`: finds the terms of least description length by single changes, starting from exact segmentations and
//!   whole staircases.
//! - `verify`: the conditions that a jump has to meet (`examination`), p-values, and the smallest jump that would have been found.
//! - `size`: sizes of jumps, and their intervals. `interpret`: periods, and jumps in cycles. `baseline`: other
//!   methods, for comparison.
//! - `explain`: all of the above in order. `windows`: the same for more than 200 points, in time proportional to their
//!   number.

pub mod baseline;
mod explain;
mod findings;
mod input;
mod interpret;
mod logarithms;
mod machines;
mod model;
mod passes;
mod prepare;
mod rates;
mod reciprocal;
mod rejection;
pub mod score;
mod search;
mod size;
mod unexplained;
mod verify;
mod windows;

pub use findings::{Candidate, Early, FactorPoint, Findings, Jump, Kink, Multiples, Note, Period, Point, Verdict};
pub use input::{FEWEST_POINTS, HardwareNumbers, Observation, Settings};
pub use interpret::coincidence::coincidences;
pub use interpret::verdict::absent;
pub use machines::{Difference, NodeEffect, differences};
pub use rates::{AlarmRate, Class, Repetitions};
pub use rejection::Rejection;
pub use unexplained::{Place as UnexplainedPlace, Unexplained, unexplained};

use crate::stats::quantile::median;
use passes::Passes;
use prepare::prepared::Prepared;
pub use prepare::visits::{by_visit, every_visit};
use prepare::{factor, nodes, unfitted};

/// Finds the jumps, kinks and the period of one series. Never panics; the notes say what could not be used.
pub fn detect(observations: &[Observation], settings: &Settings) -> Findings {
    let mut prepared = Prepared::new(observations);
    let mut findings = Findings { false_positive_rate: settings.false_positive_rate, ..Findings::default() };
    findings.notes.append(&mut prepared.notes);
    let nodes = nodes::subtract(&mut prepared, &settings.nodes);
    if let Some(nodes) = &nodes {
        findings.notes.push(nodes.note());
        findings.nodes = nodes.effects.clone();
    }
    if prepared.x.len() < FEWEST_POINTS {
        findings.notes.push(Note::TooFewPoints { count: prepared.x.len() });
        let levels = nodes.and_then(|nodes| nodes.levels(&prepared, &prepared.log));
        findings.points = match levels {
            Some(levels) => unfitted::of_machines(&prepared, &levels, settings),
            None => unfitted::points(&prepared, settings),
        };
        return findings;
    }
    let mut undisturbed = factor::without(&prepared);
    if let Some(nodes) = &nodes {
        nodes.reduce(&prepared, &undisturbed.log, &mut undisturbed.reduced);
        // For the intervals of sizes, the independent units are drawn with replacement: the machines.
        prepared.block = prepared.node.take();
    }
    findings.notes.extend(undisturbed.note.clone());
    findings.factor = undisturbed.factor.clone();
    if !undisturbed.reduced.repeated {
        findings.notes.push(Note::NoRepetitions);
    }
    if let Some(note) = unfitted::too_wide(&prepared.x, &undisturbed.reduced.center) {
        findings.notes.push(note);
        findings.points = unfitted::points(&prepared, settings);
        return findings;
    }
    // The rates were simulated in random order.
    let passes = Passes::of(observations);
    let in_turn = passes.is_some() || findings.notes.contains(&Note::OrderConfounded);
    let is_usual = !in_turn && settings.false_positive_rate == Settings::default().false_positive_rate;
    let mut findings = Findings {
        notes: findings.notes,
        factor: findings.factor,
        nodes: findings.nodes,
        extremes: prepared.extremes(&undisturbed.log),
        false_positive_rate: settings.false_positive_rate,
        alarm_rate: class_of(&prepared).alarm_rate().filter(|_| is_usual),
        ..windows::explained(&prepared, &undisturbed, settings)
    };
    if let Some(passes) = passes {
        passes.reject_unshared(settings.false_positive_rate, &mut findings);
    }
    reject_small_beside_large(&prepared, &mut findings);
    unexplained::reject_opposed(&mut findings);
    findings
}

/// A jump of less than the first number, as a share of the level, is not reported beside one that is larger by the second factor, if each x has one value and the order of the measurements is
/// not known: the state of the machine may change by as much from one minute to the next, and nothing shows it.
const SMALL_BESIDE: (f64, f64) = (0.01, 10.0);

fn reject_small_beside_large(series: &Prepared, findings: &mut Findings) {
    if series.order.is_some() || series.groups.iter().any(|group| group.len() > 1) {
        return;
    }
    let largest = findings.jumps.iter().map(|jump| jump.size.abs()).fold(0.0, f64::max);
    let is_small = |jump: &Jump| jump.relative.abs() < SMALL_BESIDE.0 && SMALL_BESIDE.1 * jump.size.abs() < largest;
    let (small, jumps): (Vec<Jump>, Vec<Jump>) = findings.jumps.drain(..).partition(is_small);
    findings.jumps = jumps;
    let reason = |jump: &Jump| Rejection::BelowSmallestJump { relative: jump.relative.abs() };
    findings.rejected.extend(small.iter().map(|jump| Candidate::rejected(jump, reason(jump))));
}

/// What a series is, as far as its rate of false alarms depends on it.
pub fn class(observations: &[Observation]) -> Class {
    class_of(&Prepared::new(observations))
}

fn class_of(series: &Prepared) -> Class {
    let mut values: Vec<f64> = series.groups.iter().map(|group| group.len() as f64).collect();
    Class::of(median(&mut values), series.order.is_some())
}

/// The points of a series with too little data for a search: nothing is searched in it.
pub fn unsearched(observations: &[Observation], settings: &Settings, early: Early) -> Findings {
    let prepared = Prepared::new(observations);
    Findings {
        points: unfitted::points(&prepared, settings),
        false_positive_rate: settings.false_positive_rate,
        early: Some(early),
        ..Findings::default()
    }
}

#[cfg(test)]
mod tests;
