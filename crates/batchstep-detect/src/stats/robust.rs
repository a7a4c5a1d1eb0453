//! Robust location and scale: the median absolute deviation and Tukey's biweight.
//!
//! Mosteller & Tukey 1977, *Data Analysis and Regression*; Croux & Rousseeuw 1992 for the small-sample factor.

use super::quantile::median;

/// Makes the median absolute deviation a standard deviation for normal data: `1 / qnorm(0.75)`.
pub const MAD_TO_SIGMA: f64 = 1.482_602_218_505_602;

/// Biweight tuning constant: 95 % efficiency on normal data (Mosteller & Tukey 1977).
pub const BIWEIGHT: f64 = 4.685;

/// The median absolute deviation from `center`, not scaled. `NaN` where there are no values.
pub fn mad(values: &[f64], center: f64) -> f64 {
    let mut away: Vec<f64> = values.iter().map(|v| (v - center).abs()).collect();
    median(&mut away)
}

/// The standard deviation of normal data, estimated by the MAD with the small-sample factor n / (n - 0.8).
pub fn sigma(values: &[f64], center: f64) -> f64 {
    let n = values.len() as f64;
    MAD_TO_SIGMA * mad(values, center) * n / (n - 0.8).max(0.2)
}

/// A robust standard deviation about zero.
pub fn scale(values: &[f64]) -> f64 {
    MAD_TO_SIGMA * mad(values, 0.0)
}

/// The median of chi-squared with one degree of freedom: scipy.stats.chi2.ppf(0.5, 1).
pub const MIDDLE_SQUARE: f64 = 0.454_936;

/// Neighbours on each side that share their scale: noise changes slowly along x, and few values are too coarse to tell it.
pub const REACH: usize = 7;

/// The places within `reach` of the i-th of `count`.
pub fn near(i: usize, reach: usize, count: usize) -> std::ops::Range<usize> {
    i.saturating_sub(reach)..(i + reach + 1).min(count)
}

/// Standard deviation of the biweight divided by that of the mean, for normal data: 1 / sqrt(0.95); and the mean weight of such data.
pub const BIWEIGHT_LOSS: f64 = 1.026;
pub const CLEAN: f64 = 0.92;

/// A robust location, and its standard error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Location {
    pub value: f64,
    pub error: f64,
}

/// Tukey's biweight M-estimate of location with a given `scale`, from `start`, by reweighting.
///
/// A value further than 4.685 `scale` from the center has no weight. If `scale` is not above zero, the answer is
/// `start`.
pub fn biweight(values: &[f64], start: f64, scale: f64) -> Location {
    let located = |value: f64, weights: f64| {
        let carried = (weights / CLEAN).clamp(1.0, values.len().max(1) as f64);
        Location { value, error: BIWEIGHT_LOSS * scale / carried.sqrt() }
    };
    let mut location = located(start, values.len() as f64);
    if scale.is_nan() || scale <= 0.0 {
        return location;
    }
    for _ in 0..30 {
        let (mut weights, mut sum) = (0.0, 0.0);
        for &value in values {
            let u = (value - location.value) / (BIWEIGHT * scale);
            let weight = if u.abs() < 1.0 { (1.0 - u * u).powi(2) } else { 0.0 };
            weights += weight;
            sum += weight * (value - location.value);
        }
        if weights <= 0.0 {
            return located(start, values.len() as f64);
        }
        let shift = sum / weights;
        location = located(location.value + shift, weights);
        if shift.abs() < 1e-7 * scale {
            break;
        }
    }
    location
}

/// psi and psi' of the biweight at a distance of `z` scales from the center: z (1 - u^2)^2 and (1 - u^2) (1 - 5 u^2), u = z / 4.685.
///
/// Their means give the influence function: one value at z moves the location by psi / (n mean psi') scales.
pub fn biweight_psi(z: f64) -> (f64, f64) {
    let u = (z / BIWEIGHT).powi(2);
    if u < 1.0 { (z * (1.0 - u).powi(2), (1.0 - u) * (1.0 - 5.0 * u)) } else { (0.0, 0.0) }
}

/// psi of a quantile, for a value at the distance `away` from it, in the unit that makes its mean square one: what lies above moves the quantile up.
pub fn quantile_psi(away: f64, share: f64) -> f64 {
    (share - f64::from(away < 0.0)) / (share * (1.0 - share)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn psi_has_its_own_slope() {
        // psi(4.685 / 2) = 2.3425 * 0.75^2, psi' = 0.75 * (1 - 5 / 4); beyond 4.685 both are 0
        let (psi, slope) = biweight_psi(0.5 * BIWEIGHT);
        assert!((psi - 2.3425 * 0.5625).abs() < 1e-12 && (slope + 0.1875).abs() < 1e-12);
        assert_eq!(biweight_psi(-5.0), (0.0, 0.0));
        let h = 1e-6;
        assert!(((biweight_psi(1.3 + h).0 - biweight_psi(1.3 - h).0) / (2.0 * h) - biweight_psi(1.3).1).abs() < 1e-8);
    }

    /// A quarter below: 0.25 * (-0.75)^2 + 0.75 * 0.25^2 = 0.1875, the product of both shares.
    #[test]
    fn psi_of_a_quantile_has_mean_zero_and_mean_square_one() {
        let all = [-1.0, 0.5, 1.0, 2.0].map(|away| quantile_psi(away, 0.25));
        assert!(all.iter().sum::<f64>().abs() < 1e-12);
        assert!((all.iter().map(|psi| psi * psi).sum::<f64>() / 4.0 - 1.0).abs() < 1e-12);
    }

    #[test]
    fn the_mad_of_a_hand_worked_list() {
        // center 2; distances 1 1 0 0 2 4 7, sorted 0 0 1 1 2 4 7, middle 1 (the example of Wikipedia's article on MAD)
        assert_eq!(mad(&[1.0, 1.0, 2.0, 2.0, 4.0, 6.0, 9.0], 2.0), 1.0);
    }

    #[test]
    fn the_biweight_of_symmetric_values_is_their_center_and_ignores_a_far_one() {
        let clean = [9.0, 10.0, 11.0];
        assert!((biweight(&clean, 10.4, 1.0).value - 10.0).abs() < 1e-6);
        let spoiled = [9.0, 10.0, 11.0, 1000.0];
        assert!((biweight(&spoiled, 10.4, 1.0).value - 10.0).abs() < 1e-6);
    }

    #[test]
    fn the_biweight_solves_its_equation() {
        // sum of psi((v - m) / s) must vanish: a check that needs no other program
        let values = [1.0, 1.2, 0.7, 1.9, 1.1, 4.0, 0.2];
        let found = biweight(&values, 1.1, 0.4).value;
        let psi = |v: f64| {
            let u = (v - found) / (BIWEIGHT * 0.4);
            if u.abs() < 1.0 { u * (1.0 - u * u).powi(2) } else { 0.0 }
        };
        assert!(values.iter().copied().map(psi).sum::<f64>().abs() < 1e-6);
    }

    #[test]
    fn the_scale_of_normal_noise_is_found_within_a_few_percent() {
        let mut rng = crate::random::Rng::new(3);
        let values: Vec<f64> = (0..20_000).map(|_| 2.0 * rng.normal()).collect();
        assert!((sigma(&values, 0.0) - 2.0).abs() < 0.06);
    }
}
