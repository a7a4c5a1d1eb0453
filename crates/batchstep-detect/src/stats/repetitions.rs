//! Repeated runs of the same thing, with the numbers that hyperfine reports: mean, sample standard deviation, extremes,
//! the ratio of two means with its error by propagation, and outliers by the modified z-score.

use super::distribution::t_upper_quantile;
use super::quantile::median;
use super::robust::mad;

/// The statistics of repeated runs, in the unit of the values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Repetitions {
    pub runs: usize,
    pub mean: f64,
    /// With n - 1 in the denominator; `None` for a single run.
    pub sd: Option<f64>,
    pub median: f64,
    pub min: f64,
    pub max: f64,
}

impl Repetitions {
    /// `None` without values.
    pub fn of(values: &[f64]) -> Option<Self> {
        let runs = values.len();
        if runs == 0 {
            return None;
        }
        let mean = values.iter().sum::<f64>() / runs as f64;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        Some(Self {
            runs,
            mean,
            sd: (runs > 1).then(|| (squares / (runs - 1) as f64).sqrt()),
            median: median(&mut values.to_vec()),
            min: values.iter().copied().fold(f64::INFINITY, f64::min),
            max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        })
    }

    /// The mean of `slower` over that of `self`, and the error of the ratio: relative errors of the two means add as squares. (The
    /// error is that of a single run, as hyperfine prints it, not of the mean.)
    pub fn times_faster_than(&self, slower: &Self) -> Ratio {
        let value = slower.mean / self.mean;
        let relative = |of: &Self| of.sd.map(|sd| sd / of.mean);
        let sd = relative(self).zip(relative(slower)).map(|(a, b)| value * a.hypot(b));
        Ratio { value, sd }
    }
}

/// A ratio of two means.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    pub value: f64,
    pub sd: Option<f64>,
}

/// An interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    pub low: f64,
    pub high: f64,
}

/// The interval at `confidence` of a ratio from pairs that were measured in the same block: Student's t on the
/// logarithms, so that anything that slows a whole block down cancels. `None` for fewer than two pairs.
pub fn paired_ratio(ratios: &[f64], confidence: f64) -> Option<Interval> {
    let logs: Vec<f64> = ratios.iter().map(|ratio| ratio.ln()).collect();
    let Repetitions { runs, mean, sd, .. } = Repetitions::of(&logs)?;
    let reach = t_upper_quantile(0.5 * (1.0 - confidence), (runs - 1) as f64) * sd? / (runs as f64).sqrt();
    Some(Interval { low: (mean - reach).exp(), high: (mean + reach).exp() })
}

/// Beyond this modified z-score a run is an outlier: hyperfine's limit, ten times the usual scale of the median absolute deviation.
const OUTLIER: f64 = 14.826;

/// Which of the runs are outliers.
pub fn outliers(values: &[f64]) -> Vec<bool> {
    let center = median(&mut values.to_vec());
    let spread = mad(values, center).max(f64::EPSILON);
    // 0.6745 makes the score of a normal sample a standard deviation (Iglewicz & Hoaglin 1993).
    values.iter().map(|value| (0.6745 * (value - center) / spread).abs() > OUTLIER).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUNS: [f64; 5] = [10.60, 10.71, 10.55, 10.92, 10.64];

    #[test]
    fn mean_and_deviation_are_numpys() {
        // numpy 2.4: v = [10.60, 10.71, 10.55, 10.92, 10.64]; v.mean() 10.684; v.std(ddof=1) 0.14432601983; median 10.64
        let found = Repetitions::of(&RUNS).expect("values");
        assert!(
            (found.mean - 10.684).abs() < 1e-12 && (found.sd.expect("five runs") - 0.14432601983).abs() < 1e-9,
            "{found:?}"
        );
        assert_eq!((found.runs, found.median, found.min, found.max), (5, 10.64, 10.55, 10.92));
        assert_eq!(Repetitions::of(&[2.0]).expect("a value").sd, None);
        assert_eq!(Repetitions::of(&[]), None);
    }

    #[test]
    fn a_ratio_has_the_propagated_error() {
        // By hand: 19.2 / 7.16 = 2.68156; relative errors 0.2 / 19.2 and 0.05 / 7.16, their root sum of squares 0.012538.
        let of = |mean, sd| Repetitions { runs: 10, mean, sd: Some(sd), median: mean, min: mean, max: mean };
        let Ratio { value, sd } = of(7.16, 0.05).times_faster_than(&of(19.2, 0.2));
        assert!((value - 2.68156).abs() < 1e-5 && (sd.expect("known") - 0.033621).abs() < 1e-5, "{value} {sd:?}");
    }

    #[test]
    fn pairs_cancel_the_shared_error_of_a_block() {
        // scipy.stats.t.ppf(0.975, 3) = 3.182446; numpy: logs of 2, 2.1, 1.9, 2 have mean 0.692521, sd 0.0408653.
        let Interval { low, high } = paired_ratio(&[2.0, 2.1, 1.9, 2.0], 0.95).expect("four pairs");
        let (center, reach) = (0.692521f64, 3.182446 * 0.0408653 / 2.0);
        assert!(
            (low - (center - reach).exp()).abs() < 1e-4 && (high - (center + reach).exp()).abs() < 1e-4,
            "{low} {high}"
        );
        assert_eq!(paired_ratio(&[2.0], 0.95), None);
    }

    #[test]
    fn an_outlier_is_far_beyond_the_usual_scatter() {
        assert_eq!(outliers(&[10.6, 10.7, 10.5, 10.9, 19.0]), [false, false, false, false, true]);
        assert_eq!(outliers(&RUNS), [false; 5]);
        assert_eq!(outliers(&[1.0, 1.0, 1.0]), [false; 3]);
    }
}
