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

/// The `level` quantile (0 to 1, clamped) of values that are **sorted** already.
pub fn of_sorted(sorted: &[f64], level: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else {
        return f64::NAN;
    };
    let place = level.clamp(0.0, 1.0) * last as f64;
    let below = (place.floor() as usize).min(last);
    let above = (below + 1).min(last);
    sorted[below] + (place - below as f64) * (sorted[above] - sorted[below])
}

/// The `level` quantile of `values` in any order.
pub fn quantile(values: &[f64], level: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    of_sorted(&sorted, level)
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
            assert!((quantile(&values, level) - expected).abs() < 1e-12, "{level}");
        }
    }

    #[test]
    fn the_selected_median_equals_the_sorted_one() {
        let mut rng = crate::random::Rng::new(7);
        for n in 1..60 {
            let values: Vec<f64> = (0..n).map(|_| rng.normal()).collect();
            assert!((median(&mut values.clone()) - quantile(&values, 0.5)).abs() < 1e-15);
        }
    }
}
