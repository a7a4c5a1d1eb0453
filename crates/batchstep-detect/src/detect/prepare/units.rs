//! The unit to which values were rounded: the tick of a clock, or the last digit of printed numbers.

use std::ops::Range;

/// The lower bound on relative errors: clocks have a resolution, and a fit must not depend on one point.
pub(super) const FLOOR: f64 = 5e-5;
/// Standard deviation of the rounding error, as a share of the unit.
pub(crate) const ROUNDING: f64 = 0.288_675;

/// What values were rounded to.
pub(super) struct Units {
    /// One unit for all; 0 if none is detected.
    unit: f64,
    /// The unit of values from 1 to 10, where all values have the same number of significant digits; else 0.
    of_ones: f64,
}

impl Units {
    /// Those of the values `log`, of which `groups` are those at each x.
    pub fn of(groups: &[Range<usize>], log: &[f64], medians: &[f64]) -> Self {
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
    pub fn at(&self, log: f64) -> f64 {
        self.unit.max(self.of_ones * ones(log))
    }

    /// The unit of a value, as a share of it.
    pub fn share(&self, log: f64) -> f64 {
        self.at(log) / log.exp()
    }

    /// A value in whole or half units, and at least half a unit: no value is zero.
    pub fn snapped(&self, log: f64) -> f64 {
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

/// The largest power of ten that all values are multiples of, down to a millionth of the largest; 0 if there is none.
fn printed_unit(values: &[f64]) -> f64 {
    let largest = ones(values[values.len() - 1].ln());
    let is_unit = |unit: &f64| values.iter().all(|value| (value / unit - (value / unit).round()).abs() < 1e-3);
    (0..=6).map(|digits| largest * 10f64.powi(-digits)).find(is_unit).unwrap_or(0.0)
}

/// Whether values change from one unit to the next as those of a clock do: at one x, to and fro between neighbours, at every few x, or at
/// distances that are about the same and not all equal, as a line does that is rounded.
fn flickers(groups: &[Range<usize>], log: &[f64], medians: &[f64], unit: f64) -> bool {
    let units = |a: f64, b: f64| ((b.exp() - a.exp()) / unit).round();
    let differ = |g: &&Range<usize>| log[(*g).clone()].iter().any(|own| units(*own, log[g.start]) != 0.0);
    let to_and_fro = |w: &&[f64]| units(w[0], w[1]) * units(w[1], w[2]) == -1.0;
    let flickering = groups.iter().filter(differ).count() + medians.windows(3).filter(to_and_fro).count();
    let places: Vec<usize> = (1..medians.len()).filter(|&i| units(medians[i - 1], medians[i]) != 0.0).collect();
    let lengths: Vec<usize> = places.windows(2).map(|w| w[1] - w[0]).collect();
    let (shortest, longest) = lengths.iter().fold((usize::MAX, 0), |(low, high), n| (low.min(*n), high.max(*n)));
    let is_line = longest > shortest && longest - shortest <= 1 + shortest / 2;
    flickering >= FLICKERS || places.len() * SHORT > medians.len() || is_line
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

/// A unit of a larger share of the level must be a power of ten, or values must be seen to change between units: at [`FLICKERS`] places, after fewer than [`SHORT`] x, or as a rounded line. A
/// jump of a tenth of the level is then more than rounding.
const COARSEST: f64 = 0.1;
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
    // The values of a line whose slope is the unit are on its multiples without any clock. Where most of what leaves such a line is one unit, it is
    // rounded: a slope of 1.1 units has one more at every tenth x.
    let bend = |w: &[f64]| (w[0].exp() - 2.0 * w[1].exp() + w[2].exp()).abs() / unit;
    let is_changing = |w: &&[f64]| w.iter().any(|log| (log.exp() - w[1].exp()).abs() > STRAIGHT * unit);
    let bends: Vec<f64> = medians.windows(3).filter(is_changing).map(bend).collect();
    let straight = bends.iter().filter(|bend| **bend < STRAIGHT).count();
    let single = bends.iter().filter(|bend| (**bend - 1.0).abs() < WHOLE).count();
    if straight * 4 >= bends.len() * 3 && single * 2 <= bends.len() - straight {
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
    let printed = Some(ROUNDING * printed_unit(values) / unit).filter(|share| *share < PRINTED).unwrap_or(0.0);
    let n = values.len() as f64;
    // The values themselves are multiples too, as far as the unit is known well enough to count them.
    let whole = (values[0] + start) / unit;
    let error = (square / n).sqrt().max(printed) / spread.sqrt();
    let allowed = WHOLE + 3.0 * error * whole;
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
/// The share of a unit up to which rounding when printed may have moved a value; of a coarser digit no other unit is seen.
const PRINTED: f64 = 0.02;
/// The distance of the first value from a multiple of an exact unit, and of a bend from one unit.
const WHOLE: f64 = 0.1;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Rng;

    /// The unit of single values.
    fn unit(log: &[f64]) -> Option<f64> {
        let groups: Vec<Range<usize>> = (0..log.len()).map(|i| i..i + 1).collect();
        Some(Units::of(&groups, log, log).unit).filter(|unit| *unit > 0.0)
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

    /// Lines in units of which neighbours differ by one unit or none at all, and now and then by one more: that is rounding.
    #[test]
    fn rounded_lines_have_ticks() {
        for (start, slope) in [(300.5, 1.1), (276.2, 0.07), (112.9, 1.95), (17.6, 0.113), (20.3, 0.095)] {
            for tick in [1e9 / 24e6, 1e3 / 60.0] {
                let of = |x: u32| ((start + slope * f64::from(x)).round() * tick * 1000.0).round() / 1000.0;
                let log: Vec<f64> = (1..=70).map(|x| of(x).ln()).collect();
                let found = unit(&log).unwrap_or(0.0);
                assert!((found / tick - 1.0).abs() < 0.01, "{start} + {slope} x, {tick}: {found}");
            }
        }
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

    /// The last digit of 9.87 is 0.01, that of 12.3 is 0.1.
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
}
