//! Repetitions to one value and one error for each x.
//!
//! The location is Tukey's biweight of ln y, so that spikes and a share of slow repetitions have no influence. Its scale
//! comes from the repetitions of the x *and its neighbours*: noise changes slowly along x, and a scale from ten values is
//! too coarse to weigh with (its own standard deviation is about a quarter of it).

use std::ops::Range;

use crate::stats::{quantile::median, robust};

/// Neighbours on each side that share their scale.
const REACH: usize = 7;
/// Standard deviation of the biweight over that of the mean, for normal data: 1 / sqrt(0.95).
const BIWEIGHT_LOSS: f64 = 1.026;
/// No relative error is believed below this: clocks tick, and a fit must not hang on one point.
const FLOOR: f64 = 5e-5;

/// One value and one error for each distinct x, in ln y.
#[derive(Clone, Debug)]
pub(crate) struct Reduced {
    pub center: Vec<f64>,
    /// Standard error of `center`: relative error of the step time.
    pub error: Vec<f64>,
    /// Standard deviation of one repetition.
    pub scale: Vec<f64>,
    /// False where there are no repetitions: `error` then comes from second differences along x.
    pub repeated: bool,
}

impl Reduced {
    /// Some of the distinct x.
    pub fn part(&self, x: &Range<usize>) -> Self {
        let of = |values: &[f64]| values[x.clone()].to_vec();
        Self { center: of(&self.center), error: of(&self.error), scale: of(&self.scale), repeated: self.repeated }
    }
}

/// Reduces `log`, whose entries `groups[i]` belong to the i-th x.
pub(crate) fn reduce(groups: &[Range<usize>], log: &[f64]) -> Reduced {
    let mut scratch = Vec::new();
    let medians: Vec<f64> = groups
        .iter()
        .map(|g| {
            scratch.clear();
            scratch.extend_from_slice(&log[g.clone()]);
            median(&mut scratch)
        })
        .collect();
    let repeated = groups.iter().filter(|g| g.len() > 1).count() * 2 > groups.len();
    if !repeated {
        let sigma = from_neighbours(&medians).max(FLOOR);
        let error = vec![sigma; groups.len()];
        return Reduced { center: medians, scale: error.clone(), error, repeated };
    }
    let scale = pooled_scale(groups, log, &medians);
    let (mut center, mut error) = (Vec::with_capacity(groups.len()), Vec::with_capacity(groups.len()));
    for (i, g) in groups.iter().enumerate() {
        let location = robust::biweight(&log[g.clone()], medians[i], scale[i]);
        center.push(location.value);
        // The weights of clean normal data sum to about 0.92 of their number at this tuning.
        let carried = (location.weight / 0.92).clamp(1.0, g.len() as f64);
        error.push((BIWEIGHT_LOSS * scale[i] / carried.sqrt()).max(FLOOR));
    }
    Reduced { center, error, scale, repeated }
}

/// The standard deviation of one repetition at each x, as the median of the variances within reach.
fn pooled_scale(groups: &[Range<usize>], log: &[f64], medians: &[f64]) -> Vec<f64> {
    let own: Vec<Option<f64>> =
        groups.iter().zip(medians).map(|(g, &m)| (g.len() > 1).then(|| variance(&log[g.clone()], m))).collect();
    let mut near = Vec::new();
    (0..groups.len())
        .map(|i| {
            // With few repetitions in all, or gaps without any, the reach grows until something is found.
            let mut reach = REACH;
            loop {
                near.clear();
                let (from, to) = (i.saturating_sub(reach), (i + reach + 1).min(groups.len()));
                near.extend(own[from..to].iter().flatten());
                if near.len() >= 3 || reach >= groups.len() {
                    break median(&mut near).sqrt().max(FLOOR);
                }
                reach *= 2;
            }
        })
        .collect()
}

/// A variance of one x whose median over many x estimates the true one: from the MAD for 5 and more values, else the
/// sample variance over the median of its chi-squared distribution (Wilson & Hilferty 1931).
fn variance(values: &[f64], center: f64) -> f64 {
    let n = values.len();
    if n >= 5 {
        return robust::sigma(values, center).powi(2);
    }
    let mean = values.iter().sum::<f64>() / n as f64;
    let df = (n - 1) as f64;
    let sample = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / df;
    sample / (1.0 - 2.0 / (9.0 * df)).powi(3)
}

/// The noise of single values along x: second differences cancel level and slope, and their median absolute value is
/// blind to a minority of jumps and kinks. var(a - 2b + c) = 6 var.
fn from_neighbours(center: &[f64]) -> f64 {
    let mut bends: Vec<f64> = center.windows(3).map(|w| (w[0] - 2.0 * w[1] + w[2]).abs()).collect();
    robust::MAD_TO_SIGMA * median(&mut bends) / 6f64.sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Rng;

    fn noisy(count: usize, reps: usize, sigma: f64) -> (Vec<Range<usize>>, Vec<f64>) {
        let mut rng = Rng::new(9);
        let groups = (0..count).map(|i| i * reps..(i + 1) * reps).collect();
        (groups, (0..count * reps).map(|_| sigma * rng.normal()).collect())
    }

    #[test]
    fn the_stated_error_is_the_spread_of_the_centers() {
        for reps in [2, 3, 10, 20] {
            let (groups, log) = noisy(2000, reps, 0.01);
            let reduced = reduce(&groups, &log);
            let spread = (reduced.center.iter().map(|c| c * c).sum::<f64>() / 2000.0).sqrt();
            let stated = reduced.error.iter().sum::<f64>() / 2000.0;
            assert!((stated / spread - 1.0).abs() < 0.12, "{reps} repetitions: stated {stated}, spread {spread}");
        }
    }

    #[test]
    fn slow_repetitions_have_no_say() {
        let (groups, mut log) = noisy(40, 20, 0.01);
        for r in 0..4 {
            log[17 * 20 + r] += 0.5;
        }
        assert!(reduce(&groups, &log).center[17].abs() < 0.01);
    }

    #[test]
    fn single_values_take_their_noise_from_second_differences() {
        let (groups, mut log) = noisy(3000, 1, 0.02);
        for (i, v) in log.iter_mut().enumerate() {
            *v += 0.001 * i as f64 + if i > 1000 { 0.4 } else { 0.0 };
        }
        let reduced = reduce(&groups, &log);
        assert!(!reduced.repeated);
        assert!((reduced.error[0] / 0.02 - 1.0).abs() < 0.06, "{}", reduced.error[0]);
    }
}
