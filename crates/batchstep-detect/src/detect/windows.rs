//! Explains long series in overlapping windows: the result at one x depends on its neighbours, not on points hundreds
//! away.
//!
//! Each window is explained separately ([`super::explain`]), at its share of the false-positive rate. Two neighbouring
//! windows are divided at a place in their overlap near which neither finds a jump; each supplies the results on its side.
//! Cost: proportional to the number of windows.

use std::ops::Range;
use std::panic::resume_unwind;
use std::thread::{self, ScopedJoinHandle};

use super::explain;
use super::findings::{Findings, Multiples};
use super::input::Settings;
use super::interpret::{period, verdict};
use super::prepare::factor::Undisturbed;
use super::prepare::prepared::Prepared;
use super::prepare::reduce::Reduced;
use crate::stats::quantile::median;

/// The most points of a series that is explained as a whole.
const LONGEST: usize = 200;
/// Window length and stride, in points: with these, each half window has 32 further points on each side.
const WINDOW: usize = 128;
const STRIDE: usize = 64;
/// Points on each side of the division between two windows that should have no jump.
const NEAR: usize = 6;

/// A window and its findings.
struct Window {
    range: Range<usize>,
    findings: Findings,
}

/// A series, and the data from which its windows are cut.
struct Source<'a> {
    series: &'a Prepared,
    undisturbed: &'a Undisturbed,
    cycles: Option<Reduced>,
    settings: &'a Settings,
}

/// Finds points, jumps, kinks, period and rejected candidates.
pub(super) fn explained(series: &Prepared, undisturbed: &Undisturbed, settings: &Settings) -> Findings {
    let source = Source { series, undisturbed, cycles: verdict::cycles(series), settings };
    let n = series.x.len();
    if n > LONGEST { source.in_windows() } else { source.explained(0..n, settings) }
}

impl Source<'_> {
    /// The findings among some of the distinct x.
    fn explained(&self, range: Range<usize>, settings: &Settings) -> Findings {
        let part = self.series.part(&range);
        let mut findings = explain::explain(&part, &self.undisturbed.part(self.series, &range), settings);
        if let Some(cycles) = &self.cycles {
            verdict::judge(&part.x, &cycles.part(&range), &mut findings.jumps);
        }
        findings
    }

    /// The findings among all x, if there are more than one window holds.
    fn in_windows(&self) -> Findings {
        let last = self.series.x.len() - WINDOW;
        let count = last.div_ceil(STRIDE) + 1;
        let own =
            Settings { false_positive_rate: self.settings.false_positive_rate / count as f64, ..self.settings.clone() };
        let window = |i: usize| {
            let start = i * last / (count - 1);
            let range = start..start + WINDOW;
            Window { findings: self.explained(range.clone(), &own), range }
        };
        let mut findings = joined(&self.series.x, in_threads(count, &window));
        findings.period = period::of_jumps(&self.series.x, &findings.jumps, self.settings);
        findings
    }
}

/// What `of` gives for 0 to `count`, computed by as many threads as there are processors.
fn in_threads<T: Send>(count: usize, of: &(impl Fn(usize) -> T + Sync)) -> Vec<T> {
    let threads = thread::available_parallelism().map_or(1, |threads| threads.get().min(count));
    let all: Vec<usize> = (0..count).collect();
    thread::scope(|scope| {
        let some = |own| scope.spawn(move || <[usize]>::iter(own).map(|&i| of(i)).collect::<Vec<T>>());
        let started: Vec<_> = all.chunks(count.div_ceil(threads)).map(some).collect();
        let finished = |own: ScopedJoinHandle<'_, Vec<T>>| own.join().unwrap_or_else(|panic| resume_unwind(panic));
        started.into_iter().flat_map(finished).collect()
    })
}

/// The findings of each window among those of `x` for which it is responsible.
fn joined(x: &[f64], windows: Vec<Window>) -> Findings {
    let mut findings = Findings::default();
    let count = windows.len() as f64;
    let corrected = |p: f64| -(count * (-p).ln_1p()).exp_m1();
    let middle = x.len() / 3..x.len() - x.len() / 3;
    let splits: Vec<usize> = windows.windows(2).map(|pair| split(x, &pair[0], &pair[1])).collect();
    for (i, Window { range, findings: own }) in windows.into_iter().enumerate() {
        let from = if i == 0 { 0 } else { splits[i - 1] };
        let to = splits.get(i).copied().unwrap_or(x.len());
        let here = |at: f64| (x[from]..=x[to - 1]).contains(&at);
        take_multiples(&mut findings.multiples, &own, findings.points.len(), here);
        findings.points.extend(own.points.into_iter().filter(|point| here(point.x)));
        findings.jumps.extend(own.jumps.into_iter().filter(|jump| here(jump.after)));
        findings.kinks.extend(own.kinks.into_iter().filter(|kink| here(kink.at)));
        findings.rejected.extend(own.rejected.into_iter().filter(|rejected| here(rejected.after)));
        findings.p_value = findings.p_value.into_iter().chain(own.p_value).reduce(f64::min);
        if range.start < middle.end && middle.start < range.end {
            findings.detectable = findings.detectable.into_iter().chain(own.detectable).reduce(f64::max);
        }
    }
    // A number that only some windows have is the pattern of no more than a stretch.
    findings.multiples.retain(|one| {
        let theirs = || one.shares.iter().zip(x).filter(|(_, x)| x.rem_euclid(one.of) == 0.0);
        2 * theirs().filter(|(share, _)| **share != 0.0).count() > theirs().count()
    });
    for one in &mut findings.multiples {
        one.relative = median(&mut one.shares.iter().copied().filter(|share| *share != 0.0).collect::<Vec<_>>());
        one.p_value = corrected(one.p_value);
    }
    findings.p_value = findings.p_value.map(corrected);
    for jump in &mut findings.jumps {
        (jump.p_value, jump.nearby_p_value) = (corrected(jump.p_value), jump.nearby_p_value.map(corrected));
    }
    findings.kinks.iter_mut().for_each(|kink| kink.p_value = corrected(kink.p_value));
    findings.rejected.iter_mut().for_each(|rejected| rejected.p_value = corrected(rejected.p_value));
    findings
}

/// Adds the multiples that a window found to `all`, whose shares reach up to the point number `from`.
fn take_multiples(all: &mut Vec<Multiples>, own: &Findings, from: usize, here: impl Fn(f64) -> bool) {
    let kept: Vec<usize> = (0..own.points.len()).filter(|&i| here(own.points[i].x)).collect();
    for one in &own.multiples {
        let shares = kept.iter().map(|&i| one.shares[i]);
        match all.iter_mut().find(|known| known.of == one.of) {
            Some(known) => {
                known.shares.extend(shares);
                known.p_value = known.p_value.min(one.p_value);
            }
            None => {
                let shares = std::iter::repeat_n(0.0, from).chain(shares).collect();
                all.push(Multiples { shares, ..one.clone() });
            }
        }
    }
    all.iter_mut().for_each(|known| known.shares.resize(from + kept.len(), 0.0));
}

/// The first position for which `second` is responsible: where neither has a jump near by, and as near as possible to the middle of their overlap.
fn split(x: &[f64], first: &Window, second: &Window) -> usize {
    let (from, to) = (second.range.start, first.range.end);
    let jumps = first.findings.jumps.iter().chain(&second.findings.jumps);
    let places: Vec<usize> = jumps.map(|jump| x.partition_point(|v| *v < jump.after)).collect();
    let close = |at: usize| places.iter().filter(|k| k.abs_diff(at) <= NEAR).count();
    let inner = from + STRIDE / 4..to - STRIDE / 4;
    inner.min_by_key(|&at| (close(at), at.abs_diff((from + to) / 2))).unwrap_or((from + to) / 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detect::input::Observation;
    use crate::detect::prepare::factor;
    use crate::random::Rng;

    /// A line over 180 x with jumps of 6 to 12 % of the level up and down, ten to thirty points apart, and a change of slope at each.
    fn sample(seed: u64, reps: usize) -> Vec<Observation> {
        let mut rng = Rng::new(seed);
        let (mut level, mut slope, mut next) = (1.0, 0.004, 12);
        let mut observations = Vec::new();
        for x in 1..=180 {
            if x == next {
                let sign = if rng.below(2) == 0 { 1.0 } else { -1.0 };
                level += sign * level * (0.06 + 0.06 * rng.uniform());
                slope = level * (0.008 * rng.uniform() - 0.002);
                next += 10 + rng.below(21);
            }
            level += slope;
            observations.extend((0..reps).map(|_| Observation::new(x as f64, level * (0.004 * rng.normal()).exp())));
        }
        observations
    }

    #[test]
    fn windows_find_what_the_whole_series_shows() {
        let (mut jumps, mut unlike) = (0, Vec::new());
        for seed in 0..24 {
            let series = Prepared::new(&sample(seed, [1, 4][seed as usize % 2]));
            let (undisturbed, settings) = (factor::without(&series), Settings::default());
            let source = Source { series: &series, undisturbed: &undisturbed, cycles: None, settings: &settings };
            let (whole, windows) = (source.explained(0..180, &settings), source.in_windows());
            let afters = |findings: &Findings| findings.jumps.iter().map(|jump| jump.after).collect::<Vec<_>>();
            let xs: Vec<f64> = windows.points.iter().map(|point| point.x).collect();
            assert_eq!(xs, series.x);
            jumps += whole.jumps.len();
            if afters(&whole) == afters(&windows) {
                for (a, b) in whole.jumps.iter().zip(&windows.jumps) {
                    assert!(a.low < b.high && b.low < a.high, "seed {seed}: {a:?} {b:?}");
                }
            } else {
                unlike.push((seed, afters(&whole), afters(&windows)));
            }
        }
        assert!(jumps > 150 && unlike.len() <= 2, "{jumps} jumps, {unlike:?}");
    }

    #[test]
    fn multiples_are_those_of_all_windows() {
        let mut rng = Rng::new(3);
        let mut value = |x: usize| {
            let slow = if x.is_multiple_of(6) { 1.08 } else { 1.0 };
            Observation::new(x as f64, (2.0 + 0.01 * x as f64) * slow * (0.004 * rng.normal()).exp())
        };
        let findings = crate::detect::detect(&(1..=400).map(&mut value).collect::<Vec<_>>(), &Settings::default());
        assert!(findings.jumps.is_empty());
        let [multiples] = &findings.multiples[..] else { panic!("{:?}", findings.multiples) };
        assert_eq!((multiples.of, multiples.shares.len()), (6.0, 400));
        assert!((multiples.relative - 0.08).abs() < 0.004 && multiples.p_value < 1e-6, "{}", multiples.relative);
        assert!((multiples.shares[395] - 0.08).abs() < 0.01 && multiples.shares[396] == 0.0, "396 is a multiple of 6");
    }

    /// The error of single values is their scatter over the whole series; in a window that is thirty times rougher it
    /// must not count twice.
    #[test]
    fn a_rough_stretch_of_single_values_does_not_hide_its_own_jumps() {
        let mut found = 0;
        for seed in 0..10 {
            let mut rng = Rng::new(seed);
            let mut value = |x: usize| {
                let noise = if (130..260).contains(&x) { 0.06 } else { 0.002 };
                let level = 1.0 + 0.002 * x as f64 + f64::from(x > 190);
                Observation::new(x as f64, level * (noise * rng.normal()).exp())
            };
            let observations: Vec<Observation> = (1..=512).map(&mut value).collect();
            let jumps = crate::detect::detect(&observations, &Settings::default()).jumps;
            found += usize::from(jumps.iter().any(|jump| jump.after == 190.0));
        }
        assert_eq!(found, 10);
    }
}
