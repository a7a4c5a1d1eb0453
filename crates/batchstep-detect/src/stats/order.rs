//! The error of a median, and an interval that depends only on the values' order.

use super::distribution::binomial_upper;

/// With too few values, how far the interval extends beyond the smallest and the largest, in ranges. The range of five
/// values holds the median in 15 of 16 cases; by simulation with normal noise and with Student's t of 3 degrees of
/// freedom, with a twentieth more on either side this becomes 95.3 and 95.8 % (100,000 samples each, NumPy).
const BEYOND: f64 = 0.05;

/// An interval that holds the median with probability `confidence` (0 to 1), whatever the distribution: between the k-th
/// smallest and the k-th largest value with the largest k for which this holds, and from there towards the next values
/// by the interpolation of Hettmansperger & Sheather (1986, Confidence intervals based on interpolated order
/// statistics, Statistics & Probability Letters 4, 75-79). If even the smallest and the largest value do not suffice,
/// as with five values at 95 %, it extends a little beyond them.
///
/// Sorts the values; NaN where there are none. O(n log n).
pub fn median_interval(values: &mut [f64], confidence: f64) -> (f64, f64) {
    values.sort_unstable_by(f64::total_cmp);
    let (Some(&smallest), Some(&largest)) = (values.first(), values.last()) else { return (f64::NAN, f64::NAN) };
    let n = values.len();
    let Some((k, share)) = depth(n, confidence) else {
        let beyond = BEYOND * (largest - smallest);
        return (smallest - beyond, largest + beyond);
    };
    let between = |outer: f64, inner: f64| outer + share * (inner - outer);
    (between(values[k - 1], values[k]), between(values[n - k], values[n - k - 1]))
}

/// The standard deviation of the median over all resamples of the values, exactly (Efron 1979; Maritz & Jarrett 1978 for an odd number).
///
/// With the values in order, the r-th smallest value of a resample is at most the i-th value if at least r of the n draws are among the first i
/// values: a binomial probability. For an even n the median is the middle of two such order statistics. Its square is half of the sum of their
/// squares, less a quarter of the square of their distance; the expectation of that is the sum, over all pairs of gaps between neighbouring
/// values, of the product of the gaps times the probability that one order statistic is below both and the other above.
///
/// Sorts the values; 0 where there are none. O(n log n).
pub fn deviation_of_median(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let n = values.len();
    let Some(&origin) = values.get(n / 2) else { return 0.0 };
    // The ranks of the two order statistics, from 1; for an odd n both are the same.
    let (low, high) = (n.div_ceil(2), n / 2 + 1);
    let share = |count: usize| count as f64 / n as f64;
    let (mut mean, mut square, mut distance) = (0.0, 0.0, 0.0);
    // The sum of the gaps before, each times the probability that the lower one is below it, divided by that probability for the next gap.
    let mut gaps = 0.0;
    let mut below = [0.0; 2];
    for count in 1..=n {
        let value = values[count - 1] - origin;
        let until = [low, high].map(|rank| binomial_upper(rank, n, share(count)));
        for (until, below) in until.iter().zip(&below) {
            mean += 0.5 * (until - below) * value;
            square += 0.5 * (until - below) * value * value;
        }
        if low < high && count < n {
            let gap = values[count] - values[count - 1];
            distance += gap * (until[0] - until[1]) * (gap + 2.0 * gaps);
            gaps = (gaps + gap) * (share(count) / share(count + 1)).powf(low as f64);
        }
        below = until;
    }
    (square - 0.25 * distance - mean * mean).max(0.0).sqrt()
}

/// k, from 1, and the fraction of the way from the k-th value to the next; `None` where even k = 1 does not suffice.
fn depth(n: usize, confidence: f64) -> Option<(usize, f64)> {
    // The k-th values from either end hold the median between them unless fewer than k values lie on one side of it: each
    // does with probability 1/2.
    let mut log_term = -(n as f64) * std::f64::consts::LN_2;
    let mut sure = 1.0 - 2.0 * log_term.exp();
    if sure < confidence {
        return None;
    }
    for k in 1..=n / 2 {
        log_term += (((n - k + 1) as f64) / k as f64).ln();
        let next = sure - 2.0 * log_term.exp();
        if next < confidence {
            let share = (sure - confidence) / (sure - next);
            let (outer, inner) = (k as f64, (n - k) as f64);
            return Some((k, inner * share / (outer + (inner - outer) * share)));
        }
        sure = next;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Rng;
    use crate::stats::quantile::median;

    /// Every resample of up to six values, counted.
    #[test]
    fn the_deviation_of_a_median_agrees_with_counting() {
        let values = [3.0, 1.0, 4.5, 1.5, 9.0, 2.5];
        for n in 1..=values.len() {
            let resample = |number: usize| {
                let mut drawn: Vec<f64> = (0..n).map(|i| values[number / n.pow(i as u32) % n]).collect();
                median(&mut drawn)
            };
            let medians: Vec<f64> = (0..n.pow(n as u32)).map(resample).collect();
            let count = medians.len() as f64;
            let mean = medians.iter().sum::<f64>() / count;
            let counted = (medians.iter().map(|m| (m - mean).powi(2)).sum::<f64>() / count).sqrt();
            let found = deviation_of_median(&mut values[..n].to_vec());
            assert!((found - counted).abs() < 1e-9, "{n}: {found} for {counted}");
        }
    }

    /// For normal values and large n it is 1.2533 / sqrt(n): the efficiency of the median is 2 / pi.
    #[test]
    fn the_deviation_of_a_median_of_many_is_that_of_the_theory() {
        let mut rng = Rng::new(5);
        for n in [1_000, 1_001] {
            let mean = (0..40)
                .map(|_| deviation_of_median(&mut (0..n).map(|_| rng.normal()).collect::<Vec<_>>()))
                .sum::<f64>()
                / 40.0;
            let expected = 1.253_314 / (n as f64).sqrt();
            assert!((mean / expected - 1.0).abs() < 0.08, "{n}: {mean} for {expected}");
        }
    }

    /// By hand for n = 6: 1 - 2/64 = 0.96875 with k = 1 and 1 - 14/64 = 0.78125 with k = 2, so 0.01875 of 0.1875 must
    /// be given up, which is 5 x 0.1 / (1 + 4 x 0.1) = 0.357143 of the way to the next value.
    #[test]
    fn the_interpolation_agrees_with_counting_by_hand() {
        let mut values = [6.0, 2.0, 4.0, 1.0, 5.0, 3.0];
        let (low, high) = median_interval(&mut values, 0.95);
        assert!((low - 1.357_143).abs() < 1e-6 && (high - 5.642_857).abs() < 1e-6, "{low} {high}");
    }

    /// `k = scipy.stats.binom.ppf(0.025, n, 0.5)` and the formula of the paper in Python.
    #[test]
    fn depths_agree_with_scipy() {
        let expected = [
            (7, 1, 0.7333333333),
            (8, 1, 0.9356435644),
            (10, 2, 0.6576576577),
            (30, 10, 0.2287114987),
            (2000, 956, 0.6886220938),
        ];
        for (n, k, share) in expected {
            let (found, by) = depth(n, 0.95).expect("enough values");
            assert_eq!(found, k, "{n}");
            assert!((by - share).abs() < 1e-9, "{n}: {by}");
        }
        assert_eq!(depth(5, 0.95), None);
    }

    #[test]
    fn five_values_and_fewer_reach_beyond_their_ends() {
        let (low, high) = median_interval(&mut [3.0, 1.0, 2.0, 5.0, 4.0], 0.95);
        assert!((low - 0.8).abs() < 1e-12 && (high - 5.2).abs() < 1e-12, "{low} {high}");
        assert_eq!(median_interval(&mut [7.0], 0.95), (7.0, 7.0));
        assert!(median_interval(&mut [], 0.95).0.is_nan());
    }

    /// 4,000 samples each; three standard errors about 95 % are 94.0 to 96.0 %.
    #[test]
    fn it_holds_the_median_in_95_of_100_cases() {
        for n in [5, 6, 7, 8, 9, 12, 25] {
            let mut random = Rng::new(n as u64);
            let covered = (0..4000)
                .filter(|_| {
                    let mut values: Vec<f64> = (0..n).map(|_| random.normal()).collect();
                    let (low, high) = median_interval(&mut values, 0.95);
                    low <= 0.0 && 0.0 <= high
                })
                .count();
            assert!((3760..=3848).contains(&covered), "{n} values: {covered} of 4000");
        }
    }
}
