//! Reduces repetitions to one value and one error for each x.
//!
//! The location is Tukey's biweight of ln y, so that spikes and a share of slow repetitions have no influence. Its scale
//! comes from the repetitions of the x *and its neighbours*: noise changes slowly along x, and a scale from ten values is
//! too coarse to weigh with (its own standard deviation is about a quarter of it).

use std::ops::Range;

use super::spikes;
use super::units::{FLOOR, ROUNDING, Units};
use crate::stats::halves::{LowLevel, low_levels};
use crate::stats::{quantile::median, robust};

/// One value and one error for each distinct x, in ln y.
#[derive(Clone, Debug)]
pub(crate) struct Reduced {
    pub center: Vec<f64>,
    /// Standard error of `center`: relative error of the step time.
    pub error: Vec<f64>,
    /// Degrees of freedom of `error`; infinite if it comes from repetitions, pooled over many x.
    pub freedom: Vec<f64>,
    /// Standard deviation of one repetition.
    pub scale: Vec<f64>,
    /// False where there are no repetitions: `error` then comes from second differences along x.
    pub repeated: bool,
    /// The places of [`spikes::spikes`] among single values.
    pub spikes: Vec<usize>,
    /// The unit to which a value was rounded, as a share of it; 0 if none is detected.
    pub tick: Vec<f64>,
    /// The quantile of the repetitions that `center` is; `None`: their biweight.
    pub share: Option<f64>,
    /// For each x, the contribution of each of several machines; empty if visits count regardless of the machine.
    pub shares: Vec<Vec<Share>>,
}

/// What one machine contributes to the level of an x.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Share {
    pub node: usize,
    pub weight: f64,
    /// The distance of its mean from the level.
    pub away: f64,
}

impl Reduced {
    /// The same of the reciprocals of y.
    pub fn reciprocal(&self) -> Self {
        let share = self.share.map(|share| 1.0 - share);
        let mut turned = Self { share, ..self.clone() };
        turned.center.iter_mut().for_each(|center| *center = -*center);
        turned.shares.iter_mut().flatten().for_each(|share| share.away = -share.away);
        turned
    }

    /// Some of the distinct x.
    pub fn part(&self, x: &Range<usize>) -> Self {
        let of = |values: &[f64]| values[x.clone()].to_vec();
        Self {
            center: of(&self.center),
            error: of(&self.error),
            freedom: of(&self.freedom),
            scale: of(&self.scale),
            repeated: self.repeated,
            spikes: self.spikes.iter().filter(|at| x.contains(at)).map(|at| at - x.start).collect(),
            tick: of(&self.tick),
            share: self.share,
            shares: self.shares.get(x.clone()).map(<[_]>::to_vec).unwrap_or_default(),
        }
    }
}

/// Reduces `log`, whose entries `groups[i]` belong to the i-th x, to the quantile `share` of those, or to their biweight.
pub(crate) fn reduce(groups: &[Range<usize>], log: &[f64], share: Option<f64>) -> Reduced {
    let mut medians: Vec<f64> = groups.iter().map(|g| median(&mut log[g.clone()].to_vec())).collect();
    let units = Units::of(groups, log, &medians);
    // The error that rounding adds to one value.
    let rounded = |log: f64| ROUNDING * units.share(log);
    let repeated = groups.iter().filter(|g| g.len() > 1).count() * 2 > groups.len();
    let reduced = |center: Vec<f64>, error, scale, share| Reduced {
        tick: center.iter().map(|log| units.share(*log)).collect(),
        freedom: vec![f64::INFINITY; center.len()],
        spikes: Vec::new(),
        center,
        error,
        scale,
        repeated,
        share,
        shares: Vec::new(),
    };
    if !repeated {
        // What is off a tick is arithmetic, or a jitter below all noise.
        medians.iter_mut().for_each(|log| *log = units.snapped(*log));
        let rounding = median(&mut medians.iter().map(|log| rounded(*log)).collect::<Vec<_>>());
        let spikes = spikes::spikes(&medians, rounding.max(FLOOR));
        let sigma = without(&spikes, &medians);
        // The differences include the rounding error too, unless rounding makes most of them zero.
        let error: Vec<f64> =
            medians.iter().zip(sigma).map(|(&log, sigma)| sigma.max(rounded(log)).max(FLOOR)).collect();
        return Reduced { spikes, ..reduced(medians, error.clone(), error, None) };
    }
    if let Some(share) = share {
        let cells: Vec<&[f64]> = groups.iter().map(|g| &log[g.clone()]).collect();
        let levels: Vec<LowLevel> = low_levels(&cells, share).into_iter().flatten().collect();
        let error = |(low, own): (&LowLevel, &&[f64])| {
            (low.scale / (own.len() as f64).sqrt()).hypot(rounded(low.value)).max(FLOOR)
        };
        let error = levels.iter().zip(&cells).map(error).collect();
        let scale = levels.iter().map(|low| low.scale.max(FLOOR)).collect();
        return reduced(levels.iter().map(|low| low.value).collect(), error, scale, Some(share));
    }
    let scale = pooled_scale(groups, log, &medians);
    let (mut center, mut error) = (Vec::with_capacity(groups.len()), Vec::with_capacity(groups.len()));
    for (i, g) in groups.iter().enumerate() {
        let location = robust::biweight(&log[g.clone()], medians[i], scale[i]);
        center.push(location.value);
        // Repetitions share the same rounding error.
        error.push(location.error.hypot(rounded(location.value)).max(FLOOR));
    }
    reduced(center, error, scale, None)
}

/// The standard deviation of one repetition at each x, as the median of the variances within reach.
fn pooled_scale(groups: &[Range<usize>], log: &[f64], medians: &[f64]) -> Vec<f64> {
    let own: Vec<Option<f64>> =
        groups.iter().zip(medians).map(|(g, &m)| (g.len() > 1).then(|| variance(&log[g.clone()], m))).collect();
    let mut near = Vec::new();
    (0..groups.len())
        .map(|i| {
            // With few repetitions in total, or gaps without any, the reach grows until some are found.
            let mut reach = robust::REACH;
            loop {
                near.clear();
                near.extend(own[robust::near(i, reach, groups.len())].iter().flatten());
                if near.len() >= 3 || reach >= groups.len() {
                    break median(&mut near).sqrt().max(FLOOR);
                }
                reach *= 2;
            }
        })
        .collect()
}

/// A variance of one x, scaled so that its median over many x estimates the true variance: from the MAD for 5 and more
/// values, else the sample variance over the median of its chi-squared distribution (Wilson & Hilferty 1931).
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

/// [`from_neighbours`] of the values that are no spikes; a spike has the noise of the value after it.
fn without(spikes: &[usize], center: &[f64]) -> Vec<f64> {
    let others: Vec<f64> = (0..center.len()).filter(|i| !spikes.contains(i)).map(|i| center[i]).collect();
    let noise = from_neighbours(&others);
    (0..center.len()).map(|i| noise[i - spikes.partition_point(|spike| *spike < i)]).collect()
}

/// The noise of single values along x: second differences cancel level and slope, and their median absolute value is
/// not affected by a minority of jumps and kinks. var(a - 2b + c) = 6 var. If it grows along x, the growth is taken to
/// be exponential; if it is uneven beyond that, the noise beside an x counts where it is larger than that of the whole curve.
pub(super) fn from_neighbours(center: &[f64]) -> Vec<f64> {
    let bends: Vec<f64> = center.windows(3).map(|w| (w[0] - 2.0 * w[1] + w[2]).abs()).collect();
    let growth = growth(&bends);
    // The middle of the i-th triple, from -1/2 to 1/2.
    let middle = |i: usize| i as f64 / (bends.len() - 1).max(1) as f64 - 0.5;
    let even: Vec<f64> = bends.iter().enumerate().map(|(i, bend)| bend / (growth * middle(i)).exp()).collect();
    let whole = robust::scale(&even);
    let local: Vec<f64> = (0..bends.len())
        .map(|i| {
            let from = i.saturating_sub(BESIDE).min(bends.len().saturating_sub(2 * BESIDE + 1));
            robust::scale(&even[from..(from + 2 * BESIDE + 1).min(bends.len())])
        })
        .collect();
    let [least, most] = [f64::min, f64::max].map(|of| local.iter().copied().reduce(of).unwrap_or(whole));
    let uneven = most > UNEVEN * least && least > 0.0;
    let scale = |i: usize| {
        let is_noise = uneven && (whole..BAD_POINTS * whole).contains(&local[i]);
        let local = if is_noise { local[i] } else { whole };
        local / 6f64.sqrt() * (growth * middle(i)).exp()
    };
    (0..center.len()).map(|i| scale(i.clamp(1, bends.len()) - 1)).collect()
}

/// The factor between the scales of two stretches from which on the noise is uneven. Of 900 simulated series with such noise and without a jump, 2.9 % have a false one with 2.8, 2.8 % with
/// 3.5 and 5.6 % without it; of their jumps of ten standard deviations 94.3, 93.8 and 91.8 % are found (`SPLIT.md`).
const UNEVEN: f64 = 2.8;
/// A stretch with this many times the scale of the whole curve has bad points, each of which is judged by itself.
const BAD_POINTS: f64 = 10.0;
/// Second differences on each side of an x that make a stretch.
const BESIDE: usize = 12;
/// Standard errors by which a growth of the noise must differ from none.
const GROWING: f64 = 3.0;
/// Variance of the logarithm of the absolute value of a normal variable, pi^2 / 8, times the factor for second
/// differences of neighbours, which are correlated and make a mean vary more: the sum of the squared correlations, 1 +
/// 2 (4/6)^2 + 2 (1/6)^2.
const LOG_VARIANCE: f64 = 1.233_701 * 1.944_444;

/// The logarithm of the factor by which the sizes of `bends` grow from the first to the last, by least squares on their logarithms; 0 where
/// it is not significant. A series that scatters more at its beginning has bends or bad points there, not more noise.
fn growth(bends: &[f64]) -> f64 {
    let least = 1e-3 * median(&mut bends.to_vec());
    let half = 0.5 * (bends.len() - 1) as f64;
    let (mut along, mut across) = (0.0, 0.0);
    for (i, bend) in bends.iter().enumerate() {
        let u = (i as f64 - half) / (2.0 * half).max(1.0);
        along += u * bend.max(least).max(f64::MIN_POSITIVE).ln();
        across += u * u;
    }
    let growth = along / across;
    if growth > GROWING * (LOG_VARIANCE / across).sqrt() { growth } else { 0.0 }
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
            let reduced = reduce(&groups, &log, None);
            let spread = (reduced.center.iter().map(|c| c * c).sum::<f64>() / 2000.0).sqrt();
            let stated = reduced.error.iter().sum::<f64>() / 2000.0;
            assert!((stated / spread - 1.0).abs() < 0.12, "{reps} repetitions: stated {stated}, spread {spread}");
        }
    }

    #[test]
    fn rounded_times_have_the_error_of_rounding() {
        // 12.3, 12.4, ... in steps of 0.1: a uniform error of 0.1 has the standard deviation 0.1 / sqrt(12)
        let times: Vec<f64> = (0..30).map(|i| 12.3 + 0.1 * f64::from(i / 3)).collect();
        let log: Vec<f64> = times.iter().map(|t| t.ln()).collect();
        let groups: Vec<Range<usize>> = (0..30).map(|i| i..i + 1).collect();
        assert!((Units::of(&groups, &log, &log).at(log[0]) - 0.1).abs() < 1e-4);
        let error = reduce(&groups, &log, None).error[0];
        assert!(error >= 0.1 / 12f64.sqrt() / 12.3 * 0.999, "{error}");
        let (groups, noise) = noisy(40, 1, 0.01);
        assert_eq!(Units::of(&groups, &noise, &noise).at(noise[0]), 0.0);
    }

    #[test]
    fn noise_that_grows_is_seen_to_grow() {
        let mut rng = Rng::new(10);
        let log: Vec<f64> = (0..400).map(|i| 0.002 * 8f64.powf(f64::from(i) / 399.0) * rng.normal()).collect();
        let groups: Vec<Range<usize>> = (0..400).map(|i| i..i + 1).collect();
        let error = reduce(&groups, &log, None).error;
        assert!((error[0] / 0.002 - 1.0).abs() < 0.3 && (error[399] / 0.016 - 1.0).abs() < 0.3, "{error:?}");
        let even = reduce(&groups, &noisy(400, 1, 0.01).1, None).error;
        assert_eq!(even[0], even[399]);
    }

    #[test]
    fn noise_that_is_larger_in_a_stretch_is_larger_there_only() {
        let mut rng = Rng::new(12);
        let of = |i: usize| if (40..80).contains(&i) { 0.06 } else { 0.01 };
        let log: Vec<f64> = (0..120).map(|i| of(i) * rng.normal()).collect();
        let groups: Vec<Range<usize>> = (0..120).map(|i| i..i + 1).collect();
        let error = reduce(&groups, &log, None).error;
        let share = |places: Range<usize>| places.map(|i| error[i] / of(i)).sum::<f64>();
        assert!((share(50..70) / 20.0 - 1.0).abs() < 0.4, "{error:?}");
        // Beside it the noise of the whole curve counts, which is more than that there.
        assert!(share(0..25) / 25.0 < 2.5 && share(0..25) / 25.0 >= 1.0, "{error:?}");
    }

    #[test]
    fn slow_repetitions_have_no_say() {
        let (groups, mut log) = noisy(40, 20, 0.01);
        for r in 0..4 {
            log[17 * 20 + r] += 0.5;
        }
        assert!(reduce(&groups, &log, None).center[17].abs() < 0.01);
    }

    #[test]
    fn single_values_take_their_noise_from_second_differences() {
        let (groups, mut log) = noisy(3000, 1, 0.02);
        for (i, v) in log.iter_mut().enumerate() {
            *v += 0.001 * i as f64 + if i > 1000 { 0.4 } else { 0.0 };
        }
        let reduced = reduce(&groups, &log, None);
        assert!(!reduced.repeated);
        assert!((reduced.error[0] / 0.02 - 1.0).abs() < 0.06, "{}", reduced.error[0]);
    }
}
