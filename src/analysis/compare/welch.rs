//! The standard error of a difference.

use crate::stats::distribution::{t_upper, t_upper_quantile};

/// Repetitions whose logarithms scatter by less are alike: what is left is of arithmetic.
const ALIKE: f64 = 1e-12;
/// More degrees of freedom make no difference.
const MANY: f64 = 1e6;

/// The standard error of an estimate, mostly of a difference, and its degrees of freedom.
#[derive(Clone, Copy)]
pub(super) struct Welch {
    pub(super) error: f64,
    pub(super) freedom: f64,
}

impl Welch {
    /// The error of the mean of `values`; infinite for a single one.
    pub(super) fn of_mean(values: &[f64]) -> Self {
        let n = values.len() as f64;
        let error = if values.len() > 1 { (squares(values) / (n - 1.0) / n).sqrt() } else { f64::INFINITY };
        Self { error, freedom: (n - 1.0).max(1.0) }
    }

    /// The error of a sum or difference of independent estimates (Satterthwaite 1946, Welch 1947).
    pub(super) fn and(self, other: Self) -> Self {
        let [va, vb] = [self, other].map(|one| one.error * one.error);
        let freedom = (va + vb) * (va + vb) / (va * va / self.freedom + vb * vb / other.freedom);
        // An infinite error (of one block), or none at all, leaves no number here.
        let freedom = if freedom.is_nan() { 1.0 } else { freedom.clamp(1.0, MANY) };
        Self { error: (va + vb).sqrt(), freedom }
    }

    /// Student's test (1908) of the mean difference between paired estimates: place i of one belongs to place i of the other. `None` without any.
    pub(super) fn paired(first: &[f64], second: &[f64]) -> Option<Self> {
        let differences: Vec<f64> = first.iter().zip(second).map(|(first, second)| second - first).collect();
        (!differences.is_empty()).then(|| Self::of_mean(&differences))
    }

    /// Repetitions that agree to the last digit are known to that digit.
    pub(super) fn or_rounded(self, rounding: f64) -> Self {
        if self.error > ALIKE { self } else { Self { error: rounding, freedom: MANY } }
    }

    /// The two-sided p-value of a difference. Without any spread (or with one block, whose error is infinite) nothing is
    /// proven.
    pub(super) fn two_sided(self, apart: f64) -> f64 {
        let Self { error, freedom } = self;
        if error.is_finite() && error > 0.0 { (2.0 * t_upper(apart.abs() / error, freedom)).min(1.0) } else { 1.0 }
    }

    /// Half of the interval of a difference that leaves out `tail` on either side.
    pub(super) fn half(self, tail: f64) -> f64 {
        t_upper_quantile(tail, self.freedom) * self.error
    }
}

pub(super) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The sum of the squared distances from the mean.
pub(super) fn squares(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|value| (value - mean).powi(2)).sum()
}
