//! Resampling with replacement (Efron & Tibshirani 1993, *An Introduction to the Bootstrap*).

use super::quantile::quantile;
use crate::random::Rng;

/// The percentile interval of `statistic` at `confidence` (0 to 1) over `resamples` resamples of `values`.
///
/// Returns (low, high); `NaN` without values. Cost: `resamples` calls of `statistic`.
pub fn interval(
    values: &[f64],
    statistic: impl Fn(&mut [f64]) -> f64,
    resamples: usize,
    confidence: f64,
    rng: &mut Rng,
) -> (f64, f64) {
    if values.is_empty() {
        return (f64::NAN, f64::NAN);
    }
    let mut sample = values.to_vec();
    let mut found: Vec<f64> = (0..resamples.max(1))
        .map(|_| {
            for slot in &mut sample {
                *slot = values[rng.below(values.len())];
            }
            statistic(&mut sample)
        })
        .collect();
    percentiles(&mut found, confidence)
}

/// The central `confidence` share of `values`: (low, high); reorders them. O(n).
pub fn percentiles(values: &mut [f64], confidence: f64) -> (f64, f64) {
    let tail = 0.5 * (1.0 - confidence);
    (quantile(values, tail), quantile(values, 1.0 - tail))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::quantile::median;

    #[test]
    fn the_interval_of_the_mean_is_near_the_normal_one() {
        let mut rng = Rng::new(11);
        let values: Vec<f64> = (0..400).map(|_| rng.normal()).collect();
        let mean = |v: &mut [f64]| v.iter().sum::<f64>() / v.len() as f64;
        let center = mean(&mut values.clone());
        let (low, high) = interval(&values, mean, 2000, 0.95, &mut rng);
        assert!((high - center - 0.098).abs() < 0.015, "1.96 / sqrt(400) = 0.098, found {}", high - center);
        assert!((center - low - 0.098).abs() < 0.015);
    }

    #[test]
    fn intervals_of_the_median_cover_it() {
        let covered = (0..200)
            .filter(|&seed| {
                let mut rng = Rng::new(seed);
                let values: Vec<f64> = (0..30).map(|_| rng.normal()).collect();
                let (low, high) = interval(&values, median, 300, 0.95, &mut rng);
                low <= 0.0 && 0.0 <= high
            })
            .count();
        assert!(covered >= 180, "{covered} of 200");
    }
}
