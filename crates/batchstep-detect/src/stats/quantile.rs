//! Quantiles, linear between order statistics.
//!
//! [`quantile`] has the definition that NumPy, R (type 7) and Excel share; Hyndman & Fan 1996, *Sample quantiles in statistical packages*,
//! definition 7.

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

/// The `level` quantile by Hyndman & Fan's definition 8, which few and many values of one distribution share in the median; sorts `values`. Below
/// 2 / (3 level) - 1/3 values, and as many above, it is the smallest or largest value and no longer that. `NaN` where there are none.
pub fn median_unbiased(values: &mut [f64], level: f64) -> f64 {
    let Some(last) = values.len().checked_sub(1) else {
        return f64::NAN;
    };
    values.sort_unstable_by(f64::total_cmp);
    let place = ((last as f64 + 4.0 / 3.0) * level - 2.0 / 3.0).clamp(0.0, last as f64);
    let (below, above) = (values[place as usize], values[(place as usize + 1).min(last)]);
    below + place.fract() * (above - below)
}

/// The mean of the middle half, values that lie across a quarter counting in part; the median of five values and fewer, whose quarters an outlier
/// reaches. Sorts `values`; `NaN` where there are none.
///
/// As robust as a quartile, and smoother than the median of many: if a share of the values is larger by one amount, as steps that an interrupt
/// falls into are, the median moves by all of it where that share passes one half.
pub fn middle_half(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let n = values.len() as f64;
    let from = if n < 6.0 { 0.5 * (n - 1.0) } else { 0.25 * n };
    let to = n - from;
    let weight = |place: usize| ((place as f64 + 1.0).min(to) - (place as f64).max(from)).max(0.0);
    let (sum, total) =
        (0..values.len()).fold((0.0, 0.0), |(sum, total), i| (sum + weight(i) * values[i], total + weight(i)));
    sum / total
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
    fn median_unbiased_quantiles_agree_with_numpy() {
        // numpy.quantile([3, 1, 4, 1, 5, 9, 2, 6], ..., method="median_unbiased")
        let values = [3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0];
        for (level, expected) in [(0.1, 1.0), (0.25, 1.0 + 5.0 / 12.0), (0.5, 3.5), (0.9, 8.5), (1.0, 9.0)] {
            assert!((median_unbiased(&mut values.clone(), level) - expected).abs() < 1e-12, "{level}");
        }
    }

    #[test]
    fn the_middle_half_of_hand_worked_lists() {
        // Half of the third of ten values, the fourth to the seventh, and half of the eighth.
        let ten = [9.0, 1.0, 2.0, 4.0, 3.0, 5.0, 6.0, 7.0, 8.0, 100.0];
        assert!((middle_half(&mut ten.clone()) - (0.5 * 3.0 + 4.0 + 5.0 + 6.0 + 7.0 + 0.5 * 8.0) / 5.0).abs() < 1e-12);
        for n in 1..6 {
            assert_eq!(middle_half(&mut ten[..n].to_vec()), median(&mut ten[..n].to_vec()), "{n}");
        }
        assert!(middle_half(&mut []).is_nan());
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
