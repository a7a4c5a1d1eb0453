//! Quantiles, by the definition that NumPy, R (type 7) and Excel share: linear between order statistics.
//!
//! Hyndman & Fan 1996, *Sample quantiles in statistical packages*, definition 7.

/// The median; reorders `values`. `NaN` where there are none. Cost: O(n).
pub fn median(values: &mut [f64]) -> f64 {
    let n = values.len();
    if n == 0 {
        return f64::NAN;
    }
    let (below, middle, _) = values.select_nth_unstable_by(n / 2, f64::total_cmp);
    let upper = *middle;
    if n % 2 == 1 {
        return upper;
    }
    let lower = below.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    0.5 * (lower + upper)
}

/// The `level` quantile (0 to 1, clamped); reorders `values`. `NaN` where there are none. Cost: O(n).
pub fn quantile(values: &mut [f64], level: f64) -> f64 {
    let Some(last) = values.len().checked_sub(1) else {
        return f64::NAN;
    };
    let place = level.clamp(0.0, 1.0) * last as f64;
    let (_, below, above) = values.select_nth_unstable_by(place as usize, f64::total_cmp);
    let next = above.iter().copied().fold(f64::INFINITY, f64::min);
    if next.is_finite() { *below + place.fract() * (next - *below) } else { *below }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_count_is_the_mean_of_the_middle_two() {
        assert_eq!(median(&mut [4.0, 1.0, 3.0, 2.0]), 2.5);
        assert_eq!(median(&mut [9.0, 1.0, 5.0]), 5.0);
        assert!(median(&mut []).is_nan());
    }

    #[test]
    fn quantiles_agree_with_numpy() {
        // numpy.quantile([3, 1, 4, 1, 5, 9, 2, 6], [0.1, 0.25, 0.5, 0.9])
        let values = [3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0];
        for (level, expected) in [(0.1, 1.0), (0.25, 1.75), (0.5, 3.5), (0.9, 6.9), (0.0, 1.0), (1.0, 9.0)] {
            assert!((quantile(&mut values.clone(), level) - expected).abs() < 1e-12, "{level}");
        }
    }

    #[test]
    fn the_selected_median_equals_the_sorted_one() {
        let mut rng = crate::random::Rng::new(7);
        for n in 1..60 {
            let values: Vec<f64> = (0..n).map(|_| rng.normal()).collect();
            assert!((median(&mut values.clone()) - quantile(&mut values.clone(), 0.5)).abs() < 1e-15);
        }
    }
}
