//! Labels for values that stand apart. A label is an opinion: nothing is dropped here.

use super::{quantile::of_sorted, robust};

/// Tukey's fences: values outside `[q1 - 1.5 iqr, q3 + 1.5 iqr]` are outlying (Tukey 1977).
///
/// Returns (lower fence, upper fence); `NaN` where there are no values.
pub fn fences(values: &[f64]) -> (f64, f64) {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let (q1, q3) = (of_sorted(&sorted, 0.25), of_sorted(&sorted, 0.75));
    (q1 - 1.5 * (q3 - q1), q3 + 1.5 * (q3 - q1))
}

/// True for each value whose modified z-score exceeds 3.5 (Iglewicz & Hoaglin 1993), the rule that hyperfine uses.
///
/// Where half of the values are equal the scale is zero and nothing is called outlying.
pub fn flags(values: &[f64]) -> Vec<bool> {
    let center = super::quantile::median(&mut values.to_vec());
    let scale = robust::MAD_TO_SIGMA * robust::mad(values, center);
    values.iter().map(|v| scale > 0.0 && (v - center).abs() > 3.5 * scale).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fences_agree_with_a_hand_calculation() {
        // 1..=9: q1 = 3, q3 = 7 (type 7), so the fences are 3 - 6 and 7 + 6
        let values: Vec<f64> = (1..=9).map(f64::from).collect();
        assert_eq!(fences(&values), (-3.0, 13.0));
    }

    #[test]
    fn one_spike_among_ten_is_flagged_and_nothing_else() {
        let values = [10.0, 10.1, 9.9, 10.05, 9.95, 10.0, 10.1, 9.9, 30.0, 10.02];
        let flagged = flags(&values);
        assert_eq!(flagged.iter().filter(|f| **f).count(), 1);
        assert!(flagged[8]);
    }

    #[test]
    fn equal_values_have_no_outlier() {
        assert!(!flags(&[1.0, 1.0, 1.0, 1.0, 5.0]).contains(&true));
    }
}
