//! Reduces repetitions to one value and one error for each x.
//!
//! The location is Tukey's biweight of ln y, so that spikes and a share of slow repetitions have no influence. Its scale
//! comes from the repetitions of the x *and its neighbours*: noise changes slowly along x, and a scale from ten values is
//! too coarse to weigh with (its own standard deviation is about a quarter of it).

use std::ops::Range;

use crate::stats::halves::{LowLevel, low_levels};
use crate::stats::{quantile::median, robust};

/// Neighbours on each side that share their scale.
const REACH: usize = 7;
/// Standard deviation of the biweight divided by that of the mean, for normal data: 1 / sqrt(0.95).
pub(super) const BIWEIGHT_LOSS: f64 = 1.026;
/// The lower bound on relative errors: clocks have a resolution, and a fit must not depend on one point.
pub(super) const FLOOR: f64 = 5e-5;

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
            tick: of(&self.tick),
            share: self.share,
            shares: self.shares.get(x.clone()).map(<[_]>::to_vec).unwrap_or_default(),
        }
    }
}

/// Standard deviation of the rounding error, as a share of the unit.
pub(crate) const ROUNDING: f64 = 0.288_675;

/// What values were rounded to.
struct Units {
    /// One unit for all; 0 if none is detected.
    unit: f64,
    /// With so many significant digits that this is the unit of values from 1 to 10; 0 if they are not.
    of_ones: f64,
}

impl Units {
    /// Those of the values `log`, of which `groups` are those at each x.
    fn of(groups: &[Range<usize>], log: &[f64], medians: &[f64]) -> Self {
        let mut values: Vec<f64> = log.iter().map(|log| log.exp()).collect();
        values.sort_by(f64::total_cmp);
        values.dedup_by(|b, a| *b - *a <= 2.0 * FLOOR * *b);
        // The levels of a staircase without noise are multiples of its height without any clock.
        let low = values[values.len() / 10];
        let is_known =
            |unit: &f64| *unit < COARSEST * low || *unit == ones(unit.ln()) || flickers(groups, log, medians, *unit);
        let unit = quantum(log, &values, medians).map(|unit| as_printed(&values, unit)).filter(is_known);
        Self { unit: unit.unwrap_or(0.0), of_ones: of_ones(&values, medians).unwrap_or(0.0) }
    }

    /// The unit of a value.
    fn at(&self, log: f64) -> f64 {
        self.unit.max(self.of_ones * ones(log))
    }

    /// The unit of a value, as a share of it.
    fn share(&self, log: f64) -> f64 {
        self.at(log) / log.exp()
    }

    /// A value in whole or half units, and at least half a unit: no value is zero.
    fn snapped(&self, log: f64) -> f64 {
        let unit = self.at(log);
        if unit > 0.0 { (unit * ((2.0 * log.exp() / unit).round() / 2.0).max(0.5)).ln() } else { log }
    }
}

/// The power of ten near `unit`, if all values are its multiples, as printed numbers are; else `unit`.
fn as_printed(values: &[f64], unit: f64) -> f64 {
    let printed = ones((1.2 * unit).ln());
    let is_whole = |value: &f64| (value / printed - (value / printed).round()).abs() < EXACT;
    if unit < 1.2 * printed && values.iter().all(is_whole) { printed } else { unit }
}

/// Whether values change from one unit to the next as those of a clock do: at one x, to and fro between neighbours, or at every few x.
fn flickers(groups: &[Range<usize>], log: &[f64], medians: &[f64], unit: f64) -> bool {
    let units = |a: f64, b: f64| ((b.exp() - a.exp()) / unit).round();
    let differ = |g: &&Range<usize>| log[(*g).clone()].iter().any(|own| units(*own, log[g.start]) != 0.0);
    let to_and_fro = |w: &&[f64]| units(w[0], w[1]) * units(w[1], w[2]) == -1.0;
    let changes = medians.windows(2).filter(|w| units(w[0], w[1]) != 0.0).count();
    let flickering = groups.iter().filter(differ).count() + medians.windows(3).filter(to_and_fro).count();
    flickering >= FLICKERS || changes * SHORT > medians.len()
}

/// The power of ten at or below a value.
fn ones(log: f64) -> f64 {
    10f64.powf((log * std::f64::consts::LOG10_E + 1e-9).floor())
}

/// The unit of values from 1 to 10, if all ascending `values` have two or three significant digits: with each power of ten the unit is ten times
/// as large. `None` also where `medians` beyond the first power of ten are mostly on a line without any rounding.
fn of_ones(values: &[f64], medians: &[f64]) -> Option<f64> {
    let first = ones(values[0].ln());
    let beyond = |log: &f64| log.exp() >= 9.99 * first;
    if values.len() < FEWEST_VALUES || !values.iter().any(|value| beyond(&value.ln())) {
        return None;
    }
    let is_whole = |value: f64, of_ones: f64| {
        let units = value / (of_ones * ones(value.ln()));
        (units - units.round()).abs() < EXACT
    };
    let found = [0.1, 0.01].into_iter().find(|of_ones| values.iter().all(|value| is_whole(*value, *of_ones)))?;
    let windows = || medians.windows(3).filter(|w| w.iter().all(beyond));
    let is_straight = |w: &&[f64]| (w[0].exp() - 2.0 * w[1].exp() + w[2].exp()).abs() < STRAIGHT * found * ones(w[1]);
    (windows().filter(is_straight).count() * 4 < windows().count() * 3).then_some(found)
}

/// A unit of a larger share of the level must be a power of ten, or values must be seen to change between units: at so many places, or after fewer x than this. A jump of a tenth of the level is
/// then more than rounding.
const COARSEST: f64 = 0.04;
const FLICKERS: usize = 3;
const SHORT: usize = 4;
/// The fewest different values that show a number of digits, and how near whole units they are.
const FEWEST_VALUES: usize = 8;
const EXACT: f64 = 0.05;

/// The unit of which the values in `log` are whole multiples apart, such as the tick of a clock, also where they were rounded once more when printed;
/// `None` if no unit matters, or if `medians` are mostly on lines whose slope is a multiple of it.
///
/// Neighbours among the sorted values are few units apart, so a coarse search over units finds those that most of these distances are
/// multiples of. The distances from the smallest value, in ascending order, refine a unit, each as a larger number of units. The largest unit
/// to which the values then are improbably near counts. Distances below the least error count as none, so that a jitter below all noise
/// changes nothing.
fn quantum(log: &[f64], values: &[f64], medians: &[f64]) -> Option<f64> {
    let distances: Vec<f64> = values.windows(2).map(|w| w[1] - w[0]).collect();
    let smallest = distances.iter().copied().min_by(f64::total_cmp)?;
    let finest = (smallest / PARTS).max(FINEST * values[values.len() - 1]);
    let units = (0..).map(|i| smallest * LARGEST * FINER.powi(i)).take_while(|unit| *unit > finest);
    let mut unit = units.filter(|unit| agree(&distances, *unit)).find_map(|unit| refined(values, unit))?;
    // The values of a line whose slope is the unit are on its multiples without any clock.
    let bend = |w: &[f64]| w[0].exp() - 2.0 * w[1].exp() + w[2].exp();
    let changing =
        || medians.windows(3).filter(|w| w.iter().any(|log| (log.exp() - w[1].exp()).abs() > STRAIGHT * unit));
    let straight = changing().filter(|w| bend(w).abs() < STRAIGHT * unit).count();
    if straight * 4 >= changing().count() * 3 {
        return None;
    }
    // A median of an even number of values may lie between two ticks: a few such values do not halve the unit.
    let is_whole = |value: &&f64| (value.exp() / unit * 0.5 - (value.exp() / unit * 0.5).round()).abs() < 0.25;
    let whole = log.iter().filter(is_whole).count();
    if whole * MOSTLY.1 > log.len() * MOSTLY.0 {
        unit *= 2.0;
    }
    Some(unit)
}

/// The share of values on whole units, above which those on halves do not count.
const MOSTLY: (usize, usize) = (4, 5);

/// Whether most of the `distances` of a few units are near multiples of `unit`.
fn agree(distances: &[f64], unit: f64) -> bool {
    let few = distances.iter().map(|distance| distance / unit).filter(|units| *units < FEW);
    let (count, sum) =
        few.fold((0, 0.0), |(count, sum), units| (count + 1, sum + (std::f64::consts::TAU * units).cos()));
    sum > NEAR_COSINE * f64::from(count)
}

/// The unit near `unit` of which the ascending `values` are multiples apart, by a line through the values over their numbers of units.
fn refined(values: &[f64], first: f64) -> Option<f64> {
    let (mut n, mut counts, mut sum, mut squares, mut products) = (0.0, 0.0, 0.0, 0.0, 0.0);
    let (mut unit, mut start) = (first, 0.0);
    for span in values.iter().map(|value| value - values[0]) {
        let count = ((span - start) / unit).round();
        if ((span - start) / unit - count).abs() > NEAR {
            continue;
        }
        n += 1.0;
        counts += count;
        sum += span;
        squares += count * count;
        products += count * span;
        // The line leans on the first estimate until the values reach further than it is exact.
        unit = (FIRST * first + products - counts * sum / n) / (FIRST + squares - counts * counts / n);
        start = (sum - unit * counts) / n;
    }
    let spread = squares - counts * counts / n;
    unit = (products - counts * sum / n) / spread;
    start = (sum - unit * counts) / n;
    let off = |value: &f64| (value - values[0] - start) / unit;
    let square: f64 = values.iter().map(off).map(|units| (units - units.round()).powi(2)).sum();
    let n = values.len() as f64;
    // The values themselves are multiples too, as far as the unit is known well enough to count them.
    let whole = (values[0] + start) / unit;
    let allowed = WHOLE + 3.0 * (square / (n * spread)).sqrt() * whole;
    (square < MULTIPLES * n && (whole - whole.round()).abs() < allowed).then_some(unit)
}

/// Second differences below this share of the unit are those of a line.
const STRAIGHT: f64 = 0.25;
/// The finest unit that matters, as a share of a value.
const FINEST: f64 = 10.0 * FLOOR;
/// The units that are tried: from [`LARGEST`] of the smallest distance down to a [`PARTS`]th of it, each [`FINER`] than the one before, held
/// against distances of up to [`FEW`] of them.
const LARGEST: f64 = 1.5;
const PARTS: f64 = 5.0;
const FINER: f64 = 0.98;
const FEW: f64 = 8.0;
/// The mean cosine of the distances from which a unit is refined, and the distance from a whole number of units up to which a span refines it.
const NEAR_COSINE: f64 = 0.5;
const NEAR: f64 = 0.3;
/// The weight of the first estimate of a unit, which is good to 1 %, where values are off by a seventh of a unit.
const FIRST: f64 = 225.0;
/// The mean squared distance of the values from multiples of a unit up to which it counts; 1/12 for any values.
const MULTIPLES: f64 = 0.02;
/// The distance of the first value from a multiple of an exact unit.
const WHOLE: f64 = 0.1;

/// Reduces `log`, whose entries `groups[i]` belong to the i-th x, to the quantile `share` of those, or to their biweight.
pub(crate) fn reduce(groups: &[Range<usize>], log: &[f64], share: Option<f64>) -> Reduced {
    let mut scratch = Vec::new();
    let mut medians: Vec<f64> = groups
        .iter()
        .map(|g| {
            scratch.clear();
            scratch.extend_from_slice(&log[g.clone()]);
            median(&mut scratch)
        })
        .collect();
    let units = Units::of(groups, log, &medians);
    // The error that rounding adds to one value.
    let rounded = |log: f64| ROUNDING * units.share(log);
    let tick = |center: &[f64]| center.iter().map(|log| units.share(*log)).collect();
    let repeated = groups.iter().filter(|g| g.len() > 1).count() * 2 > groups.len();
    if !repeated {
        // What is off a tick is arithmetic, or a jitter below all noise.
        medians.iter_mut().for_each(|log| *log = units.snapped(*log));
        let sigma = from_neighbours(&medians);
        // The differences include the rounding error too, unless rounding makes most of them zero.
        let error: Vec<f64> =
            medians.iter().zip(sigma).map(|(&log, sigma)| sigma.max(rounded(log)).max(FLOOR)).collect();
        let (scale, freedom) = (error.clone(), vec![f64::INFINITY; error.len()]);
        let tick = tick(&medians);
        return Reduced { center: medians, scale, error, freedom, repeated, tick, share: None, shares: Vec::new() };
    }
    let freedom = vec![f64::INFINITY; groups.len()];
    if let Some(share) = share {
        let cells: Vec<&[f64]> = groups.iter().map(|g| &log[g.clone()]).collect();
        let levels: Vec<LowLevel> = low_levels(&cells, share).into_iter().flatten().collect();
        let error = |(low, own): (&LowLevel, &&[f64])| {
            (low.scale / (own.len() as f64).sqrt()).hypot(rounded(low.value)).max(FLOOR)
        };
        let center: Vec<f64> = levels.iter().map(|low| low.value).collect();
        return Reduced {
            tick: tick(&center),
            center,
            error: levels.iter().zip(&cells).map(error).collect(),
            scale: levels.iter().map(|low| low.scale.max(FLOOR)).collect(),
            freedom,
            repeated,
            share: Some(share),
            shares: Vec::new(),
        };
    }
    let scale = pooled_scale(groups, log, &medians);
    let (mut center, mut error) = (Vec::with_capacity(groups.len()), Vec::with_capacity(groups.len()));
    for (i, g) in groups.iter().enumerate() {
        let location = robust::biweight(&log[g.clone()], medians[i], scale[i]);
        center.push(location.value);
        // The weights of clean normal data sum to about 0.92 of their number at this tuning.
        let carried = (location.weight / 0.92).clamp(1.0, g.len() as f64);
        // Repetitions share the same rounding error.
        error.push((BIWEIGHT_LOSS * scale[i] / carried.sqrt()).hypot(rounded(location.value)).max(FLOOR));
    }
    Reduced { tick: tick(&center), center, error, freedom, scale, repeated, share: None, shares: Vec::new() }
}

/// The standard deviation of one repetition at each x, as the median of the variances within reach.
fn pooled_scale(groups: &[Range<usize>], log: &[f64], medians: &[f64]) -> Vec<f64> {
    let own: Vec<Option<f64>> =
        groups.iter().zip(medians).map(|(g, &m)| (g.len() > 1).then(|| variance(&log[g.clone()], m))).collect();
    let mut near = Vec::new();
    (0..groups.len())
        .map(|i| {
            // With few repetitions in total, or gaps without any, the reach grows until some are found.
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

/// The noise of single values along x: second differences cancel level and slope, and their median absolute value is
/// not affected by a minority of jumps and kinks. var(a - 2b + c) = 6 var. If it grows along x, the growth is taken to
/// be exponential.
pub(super) fn from_neighbours(center: &[f64]) -> Vec<f64> {
    let bends: Vec<f64> = center.windows(3).map(|w| (w[0] - 2.0 * w[1] + w[2]).abs()).collect();
    let growth = growth(&bends);
    // The middle of the i-th triple, from -1/2 to 1/2.
    let middle = |i: usize| i as f64 / (bends.len() - 1).max(1) as f64 - 0.5;
    let mut even: Vec<f64> = bends.iter().enumerate().map(|(i, bend)| bend / (growth * middle(i)).exp()).collect();
    let sigma = robust::MAD_TO_SIGMA * median(&mut even) / 6f64.sqrt();
    (0..center.len()).map(|i| sigma * (growth * middle(i.clamp(1, bends.len()) - 1)).exp()).collect()
}

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

    /// The unit of single values.
    fn unit(log: &[f64]) -> Option<f64> {
        let groups: Vec<Range<usize>> = (0..log.len()).map(|i| i..i + 1).collect();
        Some(Units::of(&groups, log, log).unit).filter(|unit| *unit > 0.0)
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
        assert!((unit(&log).expect("a unit") - 0.1).abs() < 1e-4);
        let groups: Vec<Range<usize>> = (0..30).map(|i| i..i + 1).collect();
        let error = reduce(&groups, &log, None).error[0];
        assert!(error >= 0.1 / 12f64.sqrt() / 12.3 * 0.999, "{error}");
        let noise = noisy(40, 1, 0.01).1;
        assert_eq!(unit(&noise), None);
    }

    /// A counter of 24 MHz, 41.667 ns a tick, printed in whole ns; and sixtieths of a second in ms of float32.
    #[test]
    fn ticks_are_found_where_they_are_rounded_again() {
        for (rise, printed) in [(0.13, 1.0), (0.8, 1.0), (2.3, 1.0), (0.13, 10.0)] {
            let log: Vec<f64> = (0..60)
                .map(|i| 1e9 / 24e6 * (500.0 + rise * f64::from(i)).round())
                .map(|ns| ((ns / printed).round() * printed).ln())
                .collect();
            let unit = unit(&log).expect("a unit");
            assert!((unit * 24e6 / 1e9 - 1.0).abs() < 0.01, "{rise}, {printed}: {unit}");
        }
        let log: Vec<f64> = (0..60).map(|i| f64::from((f64::from(30 + i / 4) * 1000.0 / 60.0) as f32).ln()).collect();
        assert!((unit(&log).expect("a unit") * 60.0 / 1000.0 - 1.0).abs() < 1e-3);
    }

    /// 15, 25, 35, ... and 4 more beyond 16: whole numbers, and no ticks.
    #[test]
    fn exact_lines_have_no_ticks() {
        let log: Vec<f64> = (1..=40).map(|x| f64::from(5 + 10 * x + if x > 16 { 4 } else { 0 }).ln()).collect();
        assert_eq!(unit(&log), None);
        // Two levels 0.5 apart, of which neither is a multiple of 0.5: all that fits is 0.1.
        let log: Vec<f64> = (1..=16).map(|x| if x > 8 { 0.9f64.ln() } else { 0.4f64.ln() }).collect();
        assert!(unit(&log).is_none_or(|unit| unit < 0.101));
    }

    /// 3, 6, 9, ... for 16 points each: the steps of a staircase, and no clock. With noise between the ticks of a coarse clock it is one.
    #[test]
    fn exact_levels_have_no_ticks() {
        let of = |level: &dyn Fn(u32) -> f64| unit(&(0..96).map(|x| level(x).ln()).collect::<Vec<f64>>());
        assert_eq!(of(&|x| 3.0 * f64::from(1 + x / 16)), None);
        assert_eq!(of(&|x| [5.0, 5.8, 6.8][x as usize / 32]), None);
        assert!((of(&|x| 3.0 * f64::from(6 + x / 16 + x % 2)).expect("a unit") - 3.0).abs() < 1e-3);
    }

    /// Of 9.87 the last digit is 0.01, of 12.3 it is 0.1.
    #[test]
    fn the_unit_of_three_digits_grows_with_each_power_of_ten() {
        let mut rng = Rng::new(4);
        let times: Vec<f64> = (0..80).map(|i| (4.5 + 0.16 * f64::from(i)) * (1.0 + 0.002 * rng.normal())).collect();
        let digits =
            |time: f64| if time < 9.995 { (100.0 * time).round() / 100.0 } else { (10.0 * time).round() / 10.0 };
        let log: Vec<f64> = times.iter().map(|time| digits(*time).ln()).collect();
        let groups: Vec<Range<usize>> = (0..80).map(|i| i..i + 1).collect();
        let units = Units::of(&groups, &log, &log);
        assert!((units.at(5.0f64.ln()) - 0.01).abs() < 1e-4 && (units.at(12.0f64.ln()) - 0.1).abs() < 1e-3);
        // Two decimals throughout.
        let log: Vec<f64> = times.iter().map(|time| ((100.0 * time).round() / 100.0).ln()).collect();
        assert!(Units::of(&groups, &log, &log).at(12.0f64.ln()) < 0.0101);
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
