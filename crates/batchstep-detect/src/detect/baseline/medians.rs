//! The data of the baselines: medians, their first differences, and the jump that is reported for each place found.

use crate::detect::findings::{Jump, Point};
use crate::detect::input::Settings;
use crate::detect::verify::threshold;
use crate::stats::{distribution, quantile::median, robust};

/// A jump after position `k`, with the p-value of the method where it has one.
pub(super) struct Found {
    pub k: usize,
    pub p_value: Option<f64>,
}

/// The medians of a series and their first differences.
pub(super) struct Medians {
    pub x: Vec<f64>,
    pub y: Vec<f64>,
    /// y at k + 1 minus y at k, divided by the distance of x and multiplied by the median distance: for a line all are
    /// equal.
    pub differences: Vec<f64>,
    /// Median of the differences, and their robust standard deviation as a share of the level, with which noise grows.
    pub typical: f64,
    pub sigma: f64,
}

impl Medians {
    pub fn new(points: &[Point]) -> Self {
        let (x, y): (Vec<f64>, Vec<f64>) = points.iter().map(|point| (point.x, point.center)).unzip();
        let gap = median(&mut x.windows(2).map(|w| w[1] - w[0]).collect::<Vec<_>>());
        let differences: Vec<f64> =
            x.windows(2).zip(y.windows(2)).map(|(x, y)| (y[1] - y[0]) / (x[1] - x[0]) * gap).collect();
        let typical = median(&mut differences.clone());
        let off: Vec<f64> = differences.iter().zip(&y).map(|(d, y)| (d - typical) / y).collect();
        let sigma = robust::scale(&off).max(1e-12);
        Self { x, y, differences, typical, sigma }
    }

    /// The number of robust standard deviations by which the difference after `k` deviates.
    pub fn z(&self, k: usize) -> f64 {
        (self.differences[k] - self.typical) / (self.sigma * self.y[k])
    }

    pub fn jump(&self, found: Found, settings: &Settings) -> Jump {
        let Found { k, p_value } = found;
        let z = distribution::normal_upper_quantile(0.5 * (1.0 - settings.confidence.clamp(0.0, 0.9999)));
        let size = self.differences[k] - self.typical;
        Jump {
            after: self.x[k],
            after_low: self.x[k],
            after_high: self.x[k],
            size,
            low: size - z * self.sigma * self.y[k],
            high: size + z * self.sigma * self.y[k],
            relative: size / self.y[k],
            p_value: p_value
                .unwrap_or_else(|| threshold::p_value(self.z(k).abs(), f64::INFINITY, self.differences.len())),
            nearby_p_value: None,
            verdict: None,
        }
    }
}
