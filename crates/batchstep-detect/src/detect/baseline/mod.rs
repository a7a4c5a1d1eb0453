//! Methods of others, for comparison: first differences, PELT and E-divisive on the medians of the repetitions.
//!
//! They look for outlying differences or for a change of level, and do not model curves, drift or single bad points.
//! Each gets the input that helps it: medians, a robust spread relative to the level, values on which a straight line
//! is no change, and the least relative size that counts. None of them finds kinks or periods. Sizes, which they do not
//! define, are the same for all: the first difference minus the median one, with an interval from the robust spread of
//! all differences. The p-value is also the same for all, except that E-divisive has its own.
//!
//! ```
//! use batchstep_detect::detect::{Observation, Settings, baseline::{self, Baseline}};
//! let wobble = |x: u32| 1e-6 * f64::from(x * 7 % 5);
//! let steps: Vec<Observation> = (1..=40u32)
//!     .map(|x| Observation::new(f64::from(x), 5e-3 + 1e-4 * f64::from(x) + wobble(x) + if x > 16 { 5e-4 } else { 0.0 }))
//!     .collect();
//! let findings = baseline::detect(Baseline::Differences, &steps, &Settings::default());
//! assert_eq!(findings.jumps[0].after, 16.0);
//! ```

mod differences;
mod e_divisive;
mod medians;
mod pelt;

use super::findings::{Findings, Note};
use super::input::{FEWEST_POINTS, Observation, Settings};
use super::prepare::prepared::Prepared;
use super::prepare::unfitted;
use medians::Medians;

/// A method of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Baseline {
    /// First differences that stand out, measured by the median absolute deviation.
    Differences,
    /// Mean-shift PELT on the first differences: a stretch of one difference is a jump, a longer stretch is another slope.
    Pelt,
    /// E-divisive on the medians minus a straight line with the median slope over an eighth of the points.
    EDivisive,
}

impl Baseline {
    /// All baselines.
    pub const ALL: [Self; 3] = [Self::Differences, Self::Pelt, Self::EDivisive];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Differences => "differences",
            Self::Pelt => "pelt",
            Self::EDivisive => "e-divisive",
        }
    }
}

/// Finds the jumps of one series by a method of others. Never panics; the notes say what could not be used.
///
/// Cost with n points: O(n log n) for differences, about O(n) for PELT, O(p n^2) for E-divisive with p permutations, which is
/// refused above 1,000 points.
pub fn detect(baseline: Baseline, observations: &[Observation], settings: &Settings) -> Findings {
    let series = Prepared::new(observations);
    // No baseline keeps a rate of false alarms on curves that are not straight.
    let mut findings = Findings { false_positive_rate: f64::NAN, ..Findings::default() };
    findings.notes.extend(series.notes.iter().filter(|note| matches!(note, Note::Dropped { .. })).cloned());
    findings.points = unfitted::points(&series, settings);
    if series.x.len() < FEWEST_POINTS {
        findings.notes.push(Note::TooFewPoints { count: series.x.len() });
        return findings;
    }
    let curve = Medians::new(&findings.points);
    let found = match baseline {
        Baseline::Differences => differences::jumps(&curve, settings),
        Baseline::Pelt => pelt::jumps(&curve),
        Baseline::EDivisive if curve.x.len() > e_divisive::MOST => {
            findings.notes.push(Note::TooManyPoints { count: curve.x.len(), most: e_divisive::MOST });
            return findings;
        }
        Baseline::EDivisive => e_divisive::jumps(&curve, settings),
    };
    let jumps = found.into_iter().map(|found| curve.jump(found, settings));
    findings.jumps = jumps.filter(|jump| jump.relative.abs() >= settings.smallest_jump).collect();
    findings
}

#[cfg(test)]
mod tests;
