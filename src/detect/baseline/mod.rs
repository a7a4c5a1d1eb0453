//! What others do, for honest comparison: first differences, PELT and E-divisive on the medians of the repetitions.
//!
//! They look for outlying differences or for another level, and know of no curve, drift or single bad point. Each is given
//! what helps it: medians, a robust spread relative to the level, values on which a straight line is no change, and the least
//! relative size that counts. None of them
//! finds kinks or periods. Sizes, which they do not define, are the same for all: the first difference less the median one,
//! with an interval from the robust spread of all differences. So is the p-value, except that E-divisive has its own.
//!
//! ```
//! use batchstep::detect::{Observation, Settings, baseline::{self, Baseline}};
//! let wobble = |x: u32| 1e-6 * f64::from(x * 7 % 5);
//! let steps: Vec<Observation> = (1..=40u32)
//!     .map(|x| Observation::new(f64::from(x), 5e-3 + 1e-4 * f64::from(x) + wobble(x) + if x > 16 { 5e-4 } else { 0.0 }))
//!     .collect();
//! let findings = baseline::detect(Baseline::Differences, &steps, &Settings::default());
//! assert_eq!(findings.jumps[0].after, 16.0);
//! ```

mod differences;
mod e_divisive;
mod pelt;

use super::series::Series;
use super::{FEWEST_POINTS, Findings, Jump, Note, Observation, Settings, Verdict, boundary, plain};
use crate::stats::{distribution, quantile::median, robust};

/// A method that others use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Baseline {
    /// First differences that stand out of all by their median absolute deviation.
    Differences,
    /// Mean-shift PELT on the first differences: a stretch of one difference is a jump, a longer one another slope.
    Pelt,
    /// E-divisive on the medians less a straight line with the median slope over an eighth of the points.
    EDivisive,
}

impl Baseline {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Differences, Self::Pelt, Self::EDivisive];

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Differences => "differences",
            Self::Pelt => "pelt",
            Self::EDivisive => "e-divisive",
        }
    }
}

/// Finds the jumps of one series by a method of others. Never panics; what could not be used is said in the notes.
///
/// Cost with n points: O(n log n) for differences, about O(n) for PELT, O(p n^2) for E-divisive with p permutations, which is
/// refused above 1,000 points.
pub fn detect(baseline: Baseline, observations: &[Observation], settings: &Settings) -> Findings {
    let series = Series::new(observations);
    // None of them keeps a rate of false alarms on curves that are not straight.
    let mut findings = Findings { false_positive_rate: f64::NAN, ..Findings::default() };
    if series.dropped > 0 {
        findings.notes.push(Note::Dropped { count: series.dropped });
    }
    findings.points = plain::points(&series, settings);
    if series.x.len() < FEWEST_POINTS {
        findings.notes.push(Note::TooFewPoints { count: series.x.len() });
        return findings;
    }
    let curve = Medians::new(&findings.points.iter().map(|p| (p.x, p.center)).collect::<Vec<_>>());
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

/// A jump after position `k`, with the p-value of the method where it has one.
struct Found {
    k: usize,
    p_value: Option<f64>,
}

/// The medians of a series and their first differences.
struct Medians {
    x: Vec<f64>,
    y: Vec<f64>,
    /// y at k + 1 less y at k, over the distance of x times the median distance: a line has equal ones.
    differences: Vec<f64>,
    /// Median of the differences, and their robust standard deviation as a share of the level: noise grows with it.
    typical: f64,
    sigma: f64,
}

impl Medians {
    fn new(points: &[(f64, f64)]) -> Self {
        let (x, y): (Vec<f64>, Vec<f64>) = points.iter().copied().unzip();
        let gap = median(&mut x.windows(2).map(|w| w[1] - w[0]).collect::<Vec<_>>());
        let differences: Vec<f64> =
            x.windows(2).zip(y.windows(2)).map(|(x, y)| (y[1] - y[0]) / (x[1] - x[0]) * gap).collect();
        let typical = median(&mut differences.clone());
        let off: Vec<f64> = differences.iter().zip(&y).map(|(d, y)| (d - typical) / y).collect();
        let sigma = (robust::MAD_TO_SIGMA * robust::mad(&off, 0.0)).max(1e-12);
        Self { x, y, differences, typical, sigma }
    }

    /// Robust standard deviations by which the difference after `k` stands off.
    fn z(&self, k: usize) -> f64 {
        (self.differences[k] - self.typical) / (self.sigma * self.y[k])
    }

    fn jump(&self, found: Found, settings: &Settings) -> Jump {
        let Found { k, p_value } = found;
        let z = distribution::normal_upper_quantile(0.5 * (1.0 - settings.confidence.clamp(0.0, 0.9999)));
        let size = self.differences[k] - self.typical;
        Jump {
            after: self.x[k],
            size,
            low: size - z * self.sigma * self.y[k],
            high: size + z * self.sigma * self.y[k],
            relative: size / self.y[k],
            p_value: p_value
                .unwrap_or_else(|| boundary::p_value(self.z(k).abs(), f64::INFINITY, self.differences.len())),
            verdict: Verdict::Ambiguous,
        }
    }
}

#[cfg(test)]
mod tests;
