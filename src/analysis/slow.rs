//! Sizes that are slow or fast by themselves: far off the curve that their neighbours make.

use std::ops::Range;

use super::TimeOrRate;
use super::size_class::{Class, Common, PROVEN, SlowSize, class, whole};
use crate::detect::{Findings, Point};
use crate::stats::quantile::median;
use crate::stats::robust;

#[derive(Clone, Debug, PartialEq)]
pub struct SlowSizes {
    /// Ascending.
    pub sizes: Vec<SlowSize>,
    /// What distinguishes them, where that is proven.
    pub class: Option<Class>,
}

/// Neighbours on each side that make the curve.
const NEIGHBOURS: usize = 3;
/// A size is off from here on, in standard deviations of all sizes, and as a share.
const FAR: (f64, f64) = (5.0, 0.05);
/// In standard deviations of the sizes nearby, where it belongs to a class that is nearly proven.
const FAR_OF_A_CLASS: f64 = 3.5;
/// Sizes on each side whose scatter counts, where it is more than that of all sizes.
const NEARBY: usize = 12;
/// The share of its distance by which the repetitions nearest to the curve must be off too.
const NEAREST: f64 = 0.5;
/// Where more of the sizes are off, they are the curve.
const MOST: f64 = 0.3;
/// Multiples that the detector finds off the curve are named from this share on.
const MULTIPLES: f64 = 0.01;
/// Below this one it is nearly proven.
const LIKELY: f64 = 0.05;
/// Units of rounded values by which a size must be off: as many as a jump needs.
const LEAST_UNITS: f64 = 2.5;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speed {
    Slow,
    Fast,
}

/// The slow or the fast sizes of a series; `None` where there are none.
pub fn sizes(findings: &Findings, kind: TimeOrRate, speed: Speed) -> Option<SlowSizes> {
    let points = &findings.points;
    if findings.early.is_some() || points.iter().any(|point| point.center <= 0.0) {
        return None;
    }
    let sign = if (kind == TimeOrRate::Rate) == (speed == Speed::Slow) { -1.0 } else { 1.0 };
    // What the detector finds at multiples is a class already; other sizes are judged without it, and without the jumps: beside one against the slope of the
    // curve, its neighbours would be off.
    let multiples = |at: usize| findings.multiples.iter().map(|multiples| multiples.shares[at].ln_1p()).sum::<f64>();
    let behind = |at: usize| findings.jumps.iter().filter(move |jump| jump.after < points[at].x);
    let risen = |at: usize| behind(at).map(|jump| jump.relative.max(-0.99).ln_1p()).sum::<f64>();
    let curve_of = |value: &dyn Fn(usize) -> f64| SizeCurve {
        x: points.iter().map(|point| point.x).collect(),
        y: (0..points.len()).map(|at| sign * (value(at).ln() - multiples(at) - risen(at))).collect(),
    };
    let curve = curve_of(&|at| points[at].center);
    let nearest = curve_of(&|at| {
        let extremes = findings.extremes.get(at).copied().unwrap_or([points[at].center; 2]);
        extremes[usize::from(sign < 0.0)]
    });
    let singles = || singles(points, &curve, &nearest, sign);
    let found = findings
        .multiples
        .iter()
        .filter(|multiples| sign * multiples.relative >= MULTIPLES && whole(multiples.of).is_some());
    if let Some(found) = found.max_by(|a, b| (sign * a.relative).total_cmp(&(sign * b.relative))) {
        let theirs = points.iter().zip(&found.shares).filter(|(point, _)| point.x.rem_euclid(found.of) == 0.0);
        let mut sizes: Vec<SlowSize> = theirs.map(|(point, share)| SlowSize { x: point.x, relative: *share }).collect();
        let (common, count) = (Common::MultiplesOf(found.of as u64), sizes.len());
        let class = Class { common, relative: found.relative, slow: count, of: count, p_value: found.p_value };
        sizes.extend(singles().into_iter().filter(|size| whole(size.x).is_none_or(|x| x % found.of as u64 != 0)));
        sizes.sort_by(|a, b| a.x.total_cmp(&b.x));
        return Some(SlowSizes { sizes, class: Some(class) });
    }
    // A point on the way of a jump is off the curve on both sides.
    let on_the_way = |x: f64| findings.jumps.iter().any(|jump| jump.after_low < x && x <= jump.after_high);
    let mut found = singles();
    found.retain(|size| !on_the_way(size.x));
    if found.is_empty() {
        return None;
    }
    let judged = (0..points.len()).filter(|&at| curve.off(at).is_some()).map(|at| points[at].x).collect::<Vec<_>>();
    Some(SlowSizes { class: class(&found, &judged, PROVEN.0), sizes: found })
}

/// The sizes that stand off the curve of their neighbours, each by itself. `nearest` has their repetitions nearest to it: of a few, most may be disturbed.
fn singles(points: &[Point], curve: &SizeCurve, nearest: &SizeCurve, sign: f64) -> Vec<SlowSize> {
    let offs: Vec<Option<f64>> = (0..points.len()).map(|at| curve.off(at)).collect();
    let between: Vec<f64> = offs.iter().flatten().copied().collect();
    let far = (FAR.0 * scatter(&between)).max(FAR.1.ln_1p());
    let unit = unit_of(points);
    let slow = |at: &usize| {
        let is_off = |off: f64| {
            off > far
                && off.exp_m1() * points[*at].center >= LEAST_UNITS * unit
                && nearest.off(*at).is_some_and(|nearest| nearest >= NEAREST * off)
        };
        offs[*at].is_some_and(is_off) && curve.above_both_sides(*at, 0.5 * far)
    };
    let mut found: Vec<usize> = (0..points.len()).filter(slow).collect();
    if found.len() as f64 > MOST * between.len() as f64 {
        return Vec::new();
    }
    let size = |&at: &usize| {
        let off = offs[at].unwrap_or(0.0);
        SlowSize { x: points[at].x, relative: (sign * off).exp_m1() }
    };
    // Where noise is larger than elsewhere, its largest values are far off for all sizes, but not for those beside them.
    let rest = curve.without(&found);
    let judged: Vec<f64> = (0..points.len()).filter(|&at| offs[at].is_some()).map(|at| points[at].x).collect();
    let class = class(&found.iter().map(size).collect::<Vec<_>>(), &judged, LIKELY);
    let belongs = |at: usize| class.as_ref().zip(whole(points[at].x)).is_some_and(|(class, x)| class.common.holds(x));
    found.retain(|&at| {
        let far = if belongs(at) { FAR_OF_A_CLASS } else { FAR.0 };
        offs[at].is_some_and(|off| off > far * rest.scatter_beside(curve.x[at]))
    });
    found.iter().map(size).collect()
}

/// The standard deviation of most of some distances.
fn scatter(distances: &[f64]) -> f64 {
    robust::sigma(distances, median(&mut distances.to_vec()))
}

/// The unit to which the values are rounded, or more: the smallest difference of any two of them.
fn unit_of(points: &[Point]) -> f64 {
    let mut values: Vec<f64> = points.iter().map(|point| point.center).collect();
    values.sort_by(f64::total_cmp);
    let apart = values.windows(2).map(|pair| pair[1] - pair[0]).filter(|apart| *apart > 1e-9 * values[0]);
    apart.reduce(f64::min).unwrap_or(0.0)
}

/// Logarithms over x; the sizes that are looked for lie above it.
struct SizeCurve {
    x: Vec<f64>,
    y: Vec<f64>,
}

impl SizeCurve {
    /// How far a point lies above the curve between its neighbours: the median over all pairs of one on each side, so that a slow neighbour does
    /// not hide it. `None` at the ends, which have no curve on one side.
    fn off(&self, at: usize) -> Option<f64> {
        let Self { x, y } = self;
        let before = at.saturating_sub(NEIGHBOURS)..at;
        let behind = at + 1..(at + 1 + NEIGHBOURS).min(x.len());
        let between = |(a, b): (usize, usize)| {
            let share = (x[at] - x[a]) / (x[b] - x[a]);
            y[at] - (y[a] + share * (y[b] - y[a]))
        };
        if before.len().min(behind.len()) < 2 {
            return None;
        }
        let mut all: Vec<f64> = before.flat_map(|a| behind.clone().map(move |b| (a, b))).map(between).collect();
        Some(median(&mut all))
    }

    /// Whether a point stands above most of its neighbours on either side.
    fn above_both_sides(&self, at: usize, by: f64) -> bool {
        let y = &self.y;
        let above = |side: &[f64]| median(&mut side.iter().map(|other| y[at] - other).collect::<Vec<_>>()) > by;
        above(&y[at.saturating_sub(NEIGHBOURS)..at]) && above(&y[at + 1..(at + 1 + NEIGHBOURS).min(y.len())])
    }

    /// The curve of the other points.
    fn without(&self, left_out: &[usize]) -> Self {
        let kept = || (0..self.x.len()).filter(|at| !left_out.contains(at));
        Self { x: kept().map(|at| self.x[at]).collect(), y: kept().map(|at| self.y[at]).collect() }
    }

    /// The scatter of the points before x or of those behind it, whichever is larger; 0 where there are few.
    fn scatter_beside(&self, x: f64) -> f64 {
        let at = self.x.partition_point(|other| *other < x);
        let of = |places: Range<usize>| {
            let near: Vec<f64> = places.filter_map(|at| self.off(at)).collect();
            if near.len() > NEIGHBOURS { scatter(&near) } else { 0.0 }
        };
        of(at.saturating_sub(NEARBY)..at).max(of(at..(at + NEARBY).min(self.x.len())))
    }
}

impl SlowSizes {
    /// Whether the class holds a size.
    pub fn is_explained(&self, size: &SlowSize) -> bool {
        let class = self.class.as_ref().zip(whole(size.x));
        class.is_some_and(|(class, x)| class.common.holds(x))
    }
}

#[cfg(test)]
mod tests {
    use super::super::size_class::is_prime;
    use super::*;
    use crate::detect::{Observation, Settings, detect};
    use crate::random::Rng;

    /// The slow sizes.
    fn found(
        x: impl Iterator<Item = u32>,
        kind: TimeOrRate,
        value: impl Fn(u32) -> f64,
        noise: f64,
    ) -> Option<SlowSizes> {
        sizes(&noisy(x, value, noise), kind, Speed::Slow)
    }

    fn noisy(x: impl Iterator<Item = u32>, value: impl Fn(u32) -> f64, noise: f64) -> Findings {
        let mut random = Rng::new(5);
        let point = |x: u32| point(x, value(x) * (1.0 + noise * random.normal()));
        Findings { points: x.map(point).collect(), ..Findings::default() }
    }

    fn point(x: u32, center: f64) -> Point {
        Point { x: f64::from(x), count: 1, center, low: center, high: center, fit: center, off: false }
    }

    fn line(x: u32) -> f64 {
        3.0 + 0.01 * f64::from(x)
    }

    #[test]
    fn multiples_that_are_slow_are_named_with_their_divisor() {
        let slow = |x: u32| line(x) * if x.is_multiple_of(48) { 1.4 } else { 1.0 };
        let found = found((1..=80).map(|i| 6 * i), TimeOrRate::Time, slow, 0.004).expect("slow sizes");
        let class = found.class.expect("a class");
        assert_eq!((class.common, class.slow, class.of), (Common::MultiplesOf(48), 9, 9));
        assert!((class.relative - 0.4).abs() < 0.02 && class.p_value < 1e-6, "{class:?}");
        assert_eq!(found.sizes[0].x, 48.0);
    }

    /// A rate that rises with the size and falls after 16: no size is off the curve.
    #[test]
    fn sizes_beside_a_jump_against_the_slope_are_not_off_the_curve() {
        let rate = |x: f64| x / (0.1 + 0.01 * x + if x > 16.0 { 0.08 } else { 0.0 });
        let steps: Vec<Observation> = (1..=40).map(f64::from).map(|x| Observation::new(x, rate(x))).collect();
        let findings = detect(&steps, &Settings::default());
        assert_eq!(findings.jumps.iter().map(|jump| jump.after).collect::<Vec<_>>(), [16.0]);
        for speed in [Speed::Slow, Speed::Fast] {
            assert_eq!(sizes(&findings, TimeOrRate::Rate, speed), None, "{speed:?}");
        }
    }

    /// From 24 on a standard deviation of 2 % in place of 0.1 %, or one that grows: in 40 series each, nothing is slow. Where one scatter counts for
    /// all sizes, 12 of these 80 have a slow size.
    #[test]
    fn sizes_that_scatter_more_are_not_slow() {
        let step = |x: f64| if x < 24.0 { 0.001 } else { 0.02 };
        for noise in [step as fn(f64) -> f64, |x| 0.0005 * x] {
            let is_named = |seed: &u64| {
                let mut random = Rng::new(*seed);
                let mut center = |x: u32| line(10 * x) * (noise(f64::from(x)) * random.normal()).exp();
                let points = (1..=48).map(|x| point(x, center(x))).collect();
                sizes(&Findings { points, ..Findings::default() }, TimeOrRate::Time, Speed::Slow).is_some()
            };
            assert!((0..40).filter(is_named).count() <= 1);
        }
    }

    /// One value in ten takes 20 to 200 % more, and so two of a size's three may: only 24, whose three take 30 % more, is slow.
    #[test]
    fn a_size_whose_fastest_repetition_is_on_the_curve_is_not_slow() {
        let alone = |seed: &u64| {
            let mut random = Rng::new(*seed);
            let mut steps = Vec::new();
            for (block, x) in (0..3).flat_map(|block| (1..=48).map(move |x| (block, x))) {
                let slow = if x == 24 { 1.3 } else { 1.0 };
                let disturbed = if random.uniform() < 0.1 { 1.2 + 1.8 * random.uniform() } else { 1.0 };
                let y = line(10 * x) * slow * disturbed * (1.0 + 0.005 * random.normal());
                steps.push(Observation { block: Some(block), ..Observation::new(f64::from(x), y) });
            }
            let found = sizes(&detect(&steps, &Settings::default()), TimeOrRate::Time, Speed::Slow);
            found.is_some_and(|found| found.sizes.iter().map(|size| size.x).eq([24.0]))
        };
        assert!((0..20).filter(alone).count() >= 18);
    }

    #[test]
    fn of_a_rate_the_slow_sizes_are_the_low_ones() {
        let rate = |x: u32| 90.0 * if x.is_multiple_of(128) { 0.7 } else { 1.0 };
        let dips = found((2..=48).map(|i| 16 * i), TimeOrRate::Rate, rate, 0.01).expect("slow sizes");
        let class = dips.class.expect("a class");
        assert_eq!(class.common, Common::MultiplesOf(128));
        assert!((class.relative + 0.3).abs() < 0.03, "{class:?}");
        // What is fast by itself is not slow.
        assert_eq!(found((2..=48).map(|i| 16 * i), TimeOrRate::Time, rate, 0.01), None);
    }

    /// Matrix products of 32, 48, ..., 576 in WebAssembly, in gflops (results.csv of strax/wasm-gemm-benchmarks): multiples of 32 are a little slower too, so that the sizes beside a dip scatter.
    #[test]
    fn dips_beside_smaller_dips_are_a_class() {
        const RATES: [f64; 35] = [
            0.74304, 0.72926, 0.7374, 0.72087, 0.73805, 0.73031, 0.72, 0.74118, 0.73836, 0.73524, 0.69471, 0.72561,
            0.7001, 0.72173, 0.47921, 0.68398, 0.70807, 0.7084, 0.64798, 0.71235, 0.66361, 0.71711, 0.50384, 0.7154,
            0.65071, 0.6581, 0.58067, 0.70628, 0.62382, 0.6635, 0.46171, 0.69855, 0.6846, 0.68884, 0.51862,
        ];
        let points = RATES.iter().zip(2..).map(|(rate, i)| point(16 * i, *rate)).collect();
        let findings = Findings { points, ..Findings::default() };
        let class = sizes(&findings, TimeOrRate::Rate, Speed::Slow).and_then(|found| found.class).expect("a class");
        assert_eq!((class.common, class.slow, class.of), (Common::MultiplesOf(128), 3, 4));
        assert!((class.relative + 0.31).abs() < 0.01 && class.p_value < 0.01, "{class:?}");
    }

    #[test]
    fn sizes_that_are_fast_by_themselves_are_named_too() {
        let dips = |x: u32| 29.0 * if x.is_multiple_of(8) { 0.1 } else { 1.0 };
        let fast = sizes(&noisy(17..=70, dips, 0.02), TimeOrRate::Time, Speed::Fast).expect("fast sizes");
        let class = fast.class.expect("a class");
        assert_eq!((class.common, class.slow, class.of), (Common::MultiplesOf(8), 6, 6));
        assert!((class.relative + 0.9).abs() < 0.02, "{class:?}");
        assert_eq!(found(17..=70, TimeOrRate::Time, dips, 0.02), None);
    }

    #[test]
    fn multiples_that_the_detector_finds_are_a_class_however_many() {
        let mut random = Rng::new(8);
        let fast = |x: u32| line(x) * if x.is_multiple_of(2) { 0.97 } else { 1.0 } * if x == 41 { 1.5 } else { 1.0 };
        let step = |x: u32| Observation::new(f64::from(x), fast(x) * (1.0 + 0.002 * random.normal()));
        let findings = detect(&(1..=70).map(step).collect::<Vec<_>>(), &Settings::default());
        assert!(findings.jumps.is_empty());
        let found = sizes(&findings, TimeOrRate::Time, Speed::Fast).expect("fast sizes");
        let class = found.class.as_ref().expect("a class");
        assert_eq!((class.common, class.slow, class.of), (Common::MultiplesOf(2), 35, 35));
        assert!((class.relative + 0.03).abs() < 0.002 && class.p_value < 1e-4, "{class:?}");
        let slow = sizes(&findings, TimeOrRate::Time, Speed::Slow).expect("slow sizes");
        assert!(slow.class.is_none() && slow.sizes.len() == 1 && slow.sizes[0].x == 41.0, "{slow:?}");
        assert_eq!(sizes(&findings, TimeOrRate::Rate, Speed::Fast), Some(slow));
    }

    #[test]
    fn primes_are_a_class_too() {
        let slow = |x: u32| line(x) * if is_prime(u64::from(x)) { 2.0 } else { 1.0 };
        let class = found(400..=460, TimeOrRate::Time, slow, 0.01).and_then(|found| found.class).expect("a class");
        assert_eq!(class.common, Common::Primes);
    }

    #[test]
    fn jumps_slopes_noise_and_single_sizes_are_no_class() {
        let sizes = || (1..=60).map(|i| 4 * i);
        assert_eq!(found(sizes(), TimeOrRate::Time, line, 0.01), None);
        assert_eq!(found(sizes(), TimeOrRate::Time, |x| line(x) * if x > 128 { 1.5 } else { 1.0 }, 0.002), None);
        assert_eq!(found((4..20).map(|i| 1 << i), TimeOrRate::Time, f64::from, 0.01), None);
        let one = found(sizes(), TimeOrRate::Time, |x| line(x) * if x == 100 { 1.3 } else { 1.0 }, 0.004).expect("one");
        assert!(one.class.is_none() && one.sizes.len() == 1 && (one.sizes[0].relative - 0.3).abs() < 0.03, "{one:?}");
    }
}
