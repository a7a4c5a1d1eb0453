//! First differences with a robust threshold: the simplest method.

use super::medians::{Found, Medians};
use crate::detect::input::Settings;
use crate::stats::distribution;

/// The places whose difference deviates from the median by more robust standard deviations than the level allows,
/// corrected for the number of differences (Bonferroni).
pub(super) fn jumps(curve: &Medians, settings: &Settings) -> Vec<Found> {
    let count = curve.differences.len();
    let tail = 0.5 * settings.false_positive_rate.clamp(1e-12, 1.0) / count as f64;
    let limit = distribution::normal_upper_quantile(tail);
    (0..count).filter(|&k| curve.z(k).abs() > limit).map(|k| Found { k, p_value: None }).collect()
}
