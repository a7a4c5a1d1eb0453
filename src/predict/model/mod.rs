//! Predicted step times, computed from measured ones. Each has an interval that comes from its errors on left-out data.
//!
//! - [`curve`]: other batch sizes of a network that was measured on the device.
//! - [`layers`]: another network on a measured device, from the layers of those that were measured there.
//! - [`trees`]: how the layers' times deviate from their work.
//! - [`rates`]: a device without measured steps, from the rates of the devices and kernels that others measured. Rough.
//! - [`cost`]: epochs, hours, energy and money; the batch size to take.
//! - [`conformal`]: the intervals.
//!
//! Pure functions of numbers: no files here, no Parquet, no command.

pub mod conformal;
pub mod cost;
pub mod curve;
pub mod layers;
pub mod rates;
pub mod repeats;
pub mod trees;

use crate::stats::nonnegative::least_squares;

/// A step time with the interval that should hold one more measurement with probability [`conformal::COVERAGE`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    pub seconds: f64,
    pub low: f64,
    pub high: f64,
}

impl Estimate {
    /// An interval that is symmetric in the logarithm; `radius` may be infinite if nothing is known.
    pub fn around(seconds: f64, radius: f64) -> Self {
        Self { seconds, low: seconds * (-radius).exp(), high: seconds * radius.exp() }
    }

    pub fn holds(&self, seconds: f64) -> bool {
        (self.low..=self.high).contains(&seconds)
    }

    /// Half of the interval's width in the logarithm; for narrow intervals this is a share of the time.
    pub fn radius(&self) -> f64 {
        0.5 * (self.high / self.low).ln()
    }

    pub fn times(&self, factor: f64) -> Self {
        Self { seconds: self.seconds * factor, low: self.low * factor, high: self.high * factor }
    }
}

/// The factors >= 0 of a time that is a sum of terms, by the relative errors of measured times: each row has the terms as shares of its time, so that the target is 1.
pub fn fitted<const N: usize>(shares: &[[f64; N]]) -> [f64; N] {
    least_squares(shares, &vec![1.0; shares.len()])
}

/// A sum of terms, each with its factor.
pub fn sum<const N: usize>(terms: &[f64; N], factors: &[f64; N]) -> f64 {
    terms.iter().zip(factors).map(|(term, factor)| term * factor).sum()
}
