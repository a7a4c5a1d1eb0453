//! The step time of a measured network at batch sizes that were not measured: from the levels at the measured ones,
//! broken where the detector found jumps, bent where it found kinks, and continued beyond the last level with the
//! period that it proved.

use std::ops::Range;

use super::conformal::{Z, radius};
use super::{Estimate, fitted, sum};
use crate::stats::quantile::median;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    pub batch: f64,
    pub seconds: f64,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Breaks {
    /// The batch sizes after which the time jumps.
    pub jumps: Vec<f64>,
    pub kinks: Vec<f64>,
    pub period: Option<f64>,
}

/// A curve through levels, with the known size of its errors.
#[derive(Clone, Debug)]
pub struct Curve {
    pieces: Pieces,
    stairs: Option<Stairs>,
    /// The number of measured neighbours on each side from which a value is computed.
    neighbours: usize,
    inside_radius: f64,
    beyond: Continuation,
    /// The radius of `|ln(truth / prediction)| / (distance + NEAR)`.
    beyond_radius: f64,
    /// Relative standard deviation between whole runs.
    between_runs: f64,
}

/// Levels in ascending order, in pieces without a jump and without a kink; a kink belongs to both of its pieces.
#[derive(Clone, Debug)]
struct Pieces {
    levels: Vec<Level>,
    ranges: Vec<Range<usize>>,
}

/// How the curve continues beyond its last level.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Continuation {
    /// The line through this share of the levels, counted from the last.
    Line(f64),
    /// A line with equal steps after the places of the period.
    Staircase(Stairs),
}

/// The batch sizes after which a proven period has its jumps: `offset`, `offset + period`, `offset + 2 period`, ...
#[derive(Clone, Copy, Debug, PartialEq)]
struct Stairs {
    period: f64,
    /// At least 0 and less than the period.
    offset: f64,
}

impl Stairs {
    /// `None` without a period. The offset is the remainder of the jumps with which most of them agree; 0 if several do equally well.
    fn new(levels: &[Level], breaks: &Breaks) -> Option<Self> {
        let period = breaks.period?;
        let agreeing = |stairs: &Self| breaks.jumps.iter().filter(|&&after| stairs.explain(levels, after)).count();
        let remainders = breaks.jumps.iter().rev().map(|after| after % period);
        remainders.chain([0.0]).map(|offset| Self { period, offset }).max_by_key(agreeing)
    }

    /// Whether a jump may be at one of the places: it is after `after`, or after one of the batch sizes up to the next level, which were not
    /// measured.
    fn explain(self, levels: &[Level], after: f64) -> bool {
        let next = levels.get(levels.partition_point(|level| level.batch <= after));
        self.first_from(after) < next.map_or(after + 1.0, |level| level.batch)
    }

    /// The first place that is not less than a batch size.
    fn first_from(self, batch: f64) -> f64 {
        self.offset + ((batch - self.offset) / self.period).ceil() * self.period
    }

    fn has(self, batch: f64) -> bool {
        batch % self.period == self.offset
    }

    /// The steps between batch size 1 and this one. A step after `k` counts from `k + 1` on.
    fn steps(self, batch: f64) -> f64 {
        let below = |x: f64| ((x - 1.0 - self.offset) / self.period).floor();
        below(batch) - below(1.0)
    }
}

/// Numbers of neighbours to choose from.
const NEIGHBOURS: [usize; 4] = [1, 2, 3, 5];
/// Shares of the levels, for lines beyond the last.
const SHARES: [f64; 3] = [0.25, 0.5, 1.0];
/// Where the curve is cut off to test how well it continues, as shares of the levels.
const CUTS: [f64; 5] = [0.5, 0.6, 0.7, 0.8, 0.9];
/// Fewest levels before such a cut.
const FEWEST: usize = 5;
/// A proven period is continued unless a line was better by more than this factor: errors say little about steps that
/// are small compared with the noise.
const PATIENCE: f64 = 1.25;
/// The part of the error that does not vanish at the last level, in units of the distance from it divided by its batch
/// size.
const NEAR: f64 = 0.1;

impl Curve {
    /// The curve through `levels`, which have distinct batch sizes in ascending order; `between_runs` is the relative
    /// standard deviation of repeated runs. `None` with fewer than three levels.
    pub fn new(levels: Vec<Level>, breaks: Breaks, between_runs: f64) -> Option<Self> {
        if levels.len() < 3 {
            return None;
        }
        let stairs = Stairs::new(&levels, &breaks);
        let scored = NEIGHBOURS.map(|neighbours| left_out(&levels, &breaks, stairs, neighbours));
        let neighbours = NEIGHBOURS[best(&scored, |_| true)];
        // The error of a level counts with the number of neighbours that the others choose, or the errors would be too small.
        let mut errors: Vec<f64> = (0..scored[0].len()).map(|out| scored[chosen_without(out, &scored)][out]).collect();
        let (beyond, beyond_radius) = way(&levels, stairs);
        let pieces = Pieces::new(levels, &breaks);
        let inside_radius = radius(&mut errors);
        Some(Self { pieces, stairs, neighbours, inside_radius, beyond, beyond_radius, between_runs })
    }

    pub fn is_inside(&self, batch: f64) -> bool {
        let levels = &self.pieces.levels;
        (levels[0].batch..=levels[levels.len() - 1].batch).contains(&batch)
    }

    /// Whether a batch size lies between two measured ones with a jump between them.
    pub fn is_at_a_jump(&self, batch: f64) -> bool {
        self.is_inside(batch) && self.pieces.around(batch).is_none()
    }

    /// Whether a jump is expected after a batch size beyond the measured ones: one of the steps with which the curve is
    /// continued.
    pub fn goes_on_with_a_jump_after(&self, batch: f64) -> bool {
        let levels = &self.pieces.levels;
        matches!(self.beyond, Continuation::Staircase(stairs) if batch >= levels[levels.len() - 1].batch && stairs.has(batch))
    }

    /// The step time at a batch size, with the interval for one more measurement in one more run.
    pub fn at(&self, batch: f64) -> Estimate {
        let levels = &self.pieces.levels;
        let (first, last) = (levels[0].batch, levels[levels.len() - 1].batch);
        let repeated = Z * self.between_runs;
        if self.is_inside(batch) {
            let Value { seconds, spread } = self.pieces.value(batch, self.stairs, self.neighbours);
            return Estimate::around(seconds, self.inside_radius.hypot(repeated) + spread);
        }
        let (seconds, distance) = if batch < first {
            (self.pieces.value(batch, self.stairs, self.neighbours.max(2)).seconds, (first - batch) / first)
        } else {
            (continued(levels, self.beyond, batch), (batch - last) / last)
        };
        Estimate::around(seconds, (self.beyond_radius * (distance + NEAR)).hypot(repeated))
    }
}

/// A value between levels, and how far it may move (`|ln|`) because the exact place of a jump is unknown.
#[derive(Clone, Copy, Debug)]
struct Value {
    seconds: f64,
    spread: f64,
}

impl Pieces {
    fn new(levels: Vec<Level>, breaks: &Breaks) -> Self {
        let mut starts = vec![0];
        let behind = |x: f64| levels.partition_point(|level| level.batch <= x);
        starts.extend(breaks.jumps.iter().map(|&after| behind(after)));
        starts.retain(|&start| start < levels.len());
        starts.sort_unstable();
        starts.dedup();
        let mut ranges = Vec::new();
        for (place, &start) in starts.iter().enumerate() {
            let end = starts.get(place + 1).copied().unwrap_or(levels.len());
            let mut from = start;
            for &kink in &breaks.kinks {
                let at = levels.partition_point(|level| level.batch < kink);
                // A kink needs at least two levels on each side.
                if at > from && at + 1 < end {
                    ranges.push(from..at + 1);
                    from = at;
                }
            }
            ranges.push(from..end);
        }
        Self { levels, ranges }
    }

    fn first(&self, range: &Range<usize>) -> f64 {
        self.levels[range.start].batch
    }

    fn last(&self, range: &Range<usize>) -> f64 {
        self.levels[range.end - 1].batch
    }

    /// The piece whose levels enclose a batch size; between two pieces, where the time jumps, there is none.
    fn around(&self, batch: f64) -> Option<&Range<usize>> {
        self.ranges.iter().find(|range| (self.first(range)..=self.last(range)).contains(&batch))
    }

    fn value(&self, batch: f64, stairs: Option<Stairs>, neighbours: usize) -> Value {
        let exact = |range: &Range<usize>| Value { seconds: self.line(range, batch, neighbours), spread: 0.0 };
        if let Some(range) = self.around(batch) {
            return exact(range);
        }
        let Some(right) = self.ranges.iter().position(|range| self.first(range) > batch) else {
            return exact(&self.ranges[self.ranges.len() - 1]);
        };
        if right == 0 {
            return exact(&self.ranges[0]);
        }
        let (before, behind) = (&self.ranges[right - 1], &self.ranges[right]);
        let (from, to) = (self.last(before), self.first(behind));
        let [left, right] = [before, behind].map(|range| self.line(range, batch, neighbours));
        let place = stairs.map(|stairs| stairs.first_from(from)).filter(|at| *at < to);
        if let Some(at) = place {
            return Value { seconds: if batch <= at { left } else { right }, spread: 0.0 };
        }
        // The jump is after one of the batch sizes from `from` to the one before `to`; which one was not measured.
        let jumped = (batch - from) / (to - from);
        Value { seconds: if jumped >= 0.5 { right } else { left }, spread: (right / left).ln().abs() }
    }

    /// The line through the nearest levels of a piece, at `batch`; the nearer a level, the more it counts.
    fn line(&self, range: &Range<usize>, batch: f64, neighbours: usize) -> f64 {
        let levels = &self.levels[range.clone()];
        let split = levels.partition_point(|level| level.batch <= batch);
        let from = split.saturating_sub(neighbours).min(levels.len().saturating_sub(neighbours + 1));
        let to = (split + neighbours).min(levels.len()).max(neighbours + 1).min(levels.len());
        let near = &levels[from..to.max(from + 1)];
        let farthest = near.iter().map(|level| (level.batch - batch).abs()).fold(0.0, f64::max) * 1.01 + 1e-9;
        let weight = |level: &Level| {
            let share: f64 = (level.batch - batch).abs() / farthest;
            (1.0 - share.powi(3)).powi(3) / (level.seconds * level.seconds)
        };
        let value = weighted_line(near, weight, batch);
        let bounds = near
            .iter()
            .map(|level| level.seconds)
            .fold((f64::INFINITY, 0.0), |(low, high): (f64, f64), y| (low.min(y), high.max(y)));
        // A line through few noisy levels may fall to zero outside them.
        value.clamp(0.5 * bounds.0, 2.0 * bounds.1)
    }
}

fn weighted_line(levels: &[Level], weight: impl Fn(&Level) -> f64, at: f64) -> f64 {
    let x: Vec<f64> = levels.iter().map(|level| level.batch).collect();
    let y: Vec<f64> = levels.iter().map(|level| level.seconds).collect();
    let weights: Vec<f64> = levels.iter().map(weight).collect();
    let line = crate::stats::regression::line(&x, &y, &weights);
    line.intercept + line.slope * at
}

/// `|ln(truth / prediction)|` of each level except the first and the last, predicted from the others. If a level is
/// left out, the place of a jump after it is unknown. The breaks themselves were found with it: docs/prediction.md counts what that costs.
fn left_out(levels: &[Level], breaks: &Breaks, stairs: Option<Stairs>, neighbours: usize) -> Vec<f64> {
    let error = |out: usize| {
        let near = out.saturating_sub(12)..(out + 13).min(levels.len());
        let others: Vec<Level> = near.filter(|&i| i != out).map(|i| levels[i]).collect();
        let value = Pieces::new(others, breaks).value(levels[out].batch, stairs, neighbours);
        ((levels[out].seconds / value.seconds).ln().abs() - value.spread).max(0.0)
    };
    (1..levels.len() - 1).map(error).collect()
}

/// Which of the numbers of neighbours has the smallest middle error, of the levels that `counts`.
fn best(scored: &[Vec<f64>; NEIGHBOURS.len()], counts: impl Fn(usize) -> bool) -> usize {
    let middle = |errors: &[f64]| {
        let mut own: Vec<f64> =
            errors.iter().enumerate().filter(|(i, _)| counts(*i)).map(|(_, error)| *error).collect();
        if own.is_empty() { f64::INFINITY } else { median(&mut own) }
    };
    let middles = scored.each_ref().map(|errors| middle(errors));
    (1..middles.len()).fold(0, |found, one| if middles[one] < middles[found] { one } else { found })
}

/// The choice that does not use the level `out`: neither its error nor, where there are enough levels, those of levels that were predicted from it.
fn chosen_without(out: usize, scored: &[Vec<f64>; NEIGHBOURS.len()]) -> usize {
    const REACH: usize = 2 * NEIGHBOURS[NEIGHBOURS.len() - 1];
    let is_far = |i: usize| i.abs_diff(out) > REACH;
    let far = (0..scored[0].len()).filter(|i| is_far(*i)).count();
    best(scored, |i| if far >= FEWEST { is_far(i) } else { i != out })
}

/// The continuation that would have been best from earlier places of the same curve, and the radius of its errors there, by their root mean
/// square: the middle error forgives a line that leaves the curve soon. The steps of a proven period are preferred to a line if they are
/// about as good. The errors beyond one place are not independent: a line that leaves the curve is wrong at every level from there on. So
/// each place counts once, with the radius of its errors.
fn way(levels: &[Level], stairs: Option<Stairs>) -> (Continuation, f64) {
    let lines = SHARES.map(Continuation::Line).into_iter();
    let ways: Vec<Continuation> = lines.chain(stairs.map(Continuation::Staircase)).collect();
    let scored = ways.into_iter().map(|way| (way, continued_errors(levels, way)));
    let size = |(way, errors): &(Continuation, Vec<Vec<f64>>)| {
        let patience = if matches!(way, Continuation::Staircase(_)) { PATIENCE } else { 1.0 };
        let all = errors.concat();
        (all.iter().map(|error| error * error).sum::<f64>() / all.len() as f64).sqrt() / patience
    };
    let best = scored.filter(|(_, errors)| !errors.is_empty()).min_by(|a, b| size(a).total_cmp(&size(b)));
    best.map_or((Continuation::Line(0.5), f64::INFINITY), |(way, mut errors)| {
        let mut of_cuts: Vec<f64> = errors.iter_mut().map(|errors| radius(errors)).collect();
        (way, radius(&mut of_cuts))
    })
}

/// Errors beyond each cut, up to twice the batch size there, over the distance.
fn continued_errors(levels: &[Level], way: Continuation) -> Vec<Vec<f64>> {
    let mut of_cuts = Vec::new();
    for cut in CUTS {
        let known = (cut * levels.len() as f64).round() as usize;
        if known < FEWEST {
            continue;
        }
        let (known, unknown) = levels.split_at(known);
        let last = known[known.len() - 1].batch;
        let error = |level: &Level| {
            let distance = (level.batch - last) / last;
            (level.seconds / continued(known, way, level.batch)).ln().abs() / (distance + NEAR)
        };
        let errors: Vec<f64> = unknown.iter().filter(|level| level.batch <= 2.0 * last).map(error).collect();
        if !errors.is_empty() {
            of_cuts.push(errors);
        }
    }
    of_cuts
}

fn continued(levels: &[Level], way: Continuation, batch: f64) -> f64 {
    let smallest = levels[levels.len() - 1].seconds * 0.5;
    let relative = |level: &Level| level.seconds.powi(-2);
    let value = match way {
        Continuation::Line(share) => {
            let count = ((share * levels.len() as f64).ceil() as usize).max(FEWEST.min(levels.len()));
            weighted_line(&levels[levels.len() - count..], relative, batch)
        }
        Continuation::Staircase(stairs) => {
            let terms = |x: f64| [1.0, x, stairs.steps(x)];
            let rows: Vec<[f64; 3]> =
                levels.iter().map(|level| terms(level.batch).map(|term| term / level.seconds)).collect();
            sum(&terms(batch), &fitted(&rows))
        }
    };
    value.max(smallest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Rng;

    /// 10 ms and 1 ms for each example, 8 ms more after every multiple of 16.
    fn stairs(batch: f64) -> f64 {
        0.010 + 0.001 * batch + 0.008 * ((batch - 1.0) / 16.0).floor()
    }

    fn levels(batches: impl Iterator<Item = usize>, mut of: impl FnMut(f64) -> f64) -> Vec<Level> {
        batches.map(|b| Level { batch: b as f64, seconds: of(b as f64) }).collect()
    }

    fn breaks() -> Breaks {
        Breaks { jumps: vec![16.0, 32.0, 48.0], kinks: Vec::new(), period: Some(16.0) }
    }

    #[test]
    fn a_noiseless_staircase_is_met_between_and_beyond_its_levels() {
        // Every third batch size; 16 and 17 are not among them, 48 and 49 are.
        let curve = Curve::new(levels((1..=64).filter(|b| b % 3 == 0 || *b == 49), stairs), breaks(), 0.0).unwrap();
        for batch in [4.0, 16.0, 17.0, 32.0, 33.0, 47.0, 50.0, 64.0, 65.0, 80.0, 81.0, 96.0, 97.0] {
            let found = curve.at(batch);
            assert!((found.seconds / stairs(batch) - 1.0).abs() < 1e-3, "{batch}: {found:?} {}", stairs(batch));
        }
        assert_eq!(
            [64.0, 80.0, 81.0, 96.0].map(|batch| curve.goes_on_with_a_jump_after(batch)),
            [true, true, false, true]
        );
    }

    /// 10 ms and 1 ms for each example, 8 ms more after 5, 21, 37, 53, ...
    fn shifted(batch: f64) -> f64 {
        0.010 + 0.001 * batch + if batch > 5.0 { 0.008 * (1.0 + ((batch - 6.0) / 16.0).floor()) } else { 0.0 }
    }

    #[test]
    fn a_period_with_an_offset_goes_on_from_its_own_jumps() {
        let breaks = Breaks { jumps: vec![5.0, 21.0, 37.0, 53.0], kinks: Vec::new(), period: Some(16.0) };
        let curve = Curve::new(levels(1..=64, shifted), breaks, 0.0).unwrap();
        let jumps: Vec<u32> = (64..=96_u32).filter(|b| curve.goes_on_with_a_jump_after(f64::from(*b))).collect();
        assert_eq!(jumps, [69, 85]);
        // By hand: four steps lie below 69, five below 85, six below 86.
        for (batch, seconds) in [(65.0, 0.107), (69.0, 0.111), (70.0, 0.120), (85.0, 0.135), (86.0, 0.144)] {
            let found = curve.at(batch);
            assert!((found.seconds / seconds - 1.0).abs() < 1e-3, "{batch}: {found:?}");
        }
    }

    #[test]
    fn a_period_with_an_offset_has_its_jump_among_sizes_that_were_not_measured() {
        // 20 to 23 were not measured, so the jump after 21 was found after 19.
        let breaks = Breaks { jumps: vec![5.0, 19.0, 37.0, 53.0], kinks: Vec::new(), period: Some(16.0) };
        let measured = levels((1..=64).filter(|b| !(20..=23).contains(b)), shifted);
        let curve = Curve::new(measured, breaks, 0.0).unwrap();
        for (batch, seconds) in [(20.0, 0.038), (21.0, 0.039), (22.0, 0.048), (23.0, 0.049)] {
            let found = curve.at(batch);
            assert!((found.seconds / seconds - 1.0).abs() < 1e-3, "{batch}: {found:?}");
        }
    }

    // Among multiples of 10, jumps after 16, 32, 48, 64, 80 and 96 are found after 10, 30, 40, 60, 80 and 90. The most common remainder by 16
    // is 10, of two jumps; all six may be at multiples of 16.
    #[test]
    fn jumps_between_distant_sizes_do_not_hide_the_multiples() {
        let of = |jumps: Vec<f64>| {
            let breaks = Breaks { jumps, kinks: Vec::new(), period: Some(16.0) };
            Stairs::new(&levels((10..=100).step_by(10), stairs), &breaks).map(|found| found.offset)
        };
        assert_eq!(of(vec![10.0, 30.0, 40.0, 60.0, 80.0, 90.0]), Some(0.0));
        assert_eq!(of(Vec::new()), Some(0.0));
    }

    #[test]
    fn a_jump_at_an_unmeasured_place_widens_only_the_interval_there() {
        let truth = |b: f64| 0.010 + 0.001 * b + if b > 21.0 { 0.008 } else { 0.0 };
        let breaks = Breaks { jumps: vec![20.0], ..Breaks::default() };
        let curve = Curve::new(levels((1..=40).filter(|b| !(21..=23).contains(b)), truth), breaks, 0.0).unwrap();
        for batch in [21.0, 22.0, 23.0] {
            let Estimate { low, high, .. } = curve.at(batch);
            assert!(low <= truth(batch) * 1.001 && truth(batch) <= high * 1.001, "{batch}: {low} {high}");
            assert!(high / low > 1.4, "{batch}: {low} {high}");
        }
        let at_jump: Vec<u32> = (1..=50).filter(|batch| curve.is_at_a_jump(f64::from(*batch))).collect();
        assert_eq!(at_jump, [21, 22, 23]);
        let sure = curve.at(10.5);
        assert!(sure.high / sure.low < 1.01, "{sure:?}");
    }

    /// Levels with 2 % of noise: the interval of a batch size that was left out holds a new measurement in nine of ten cases.
    #[test]
    fn the_interval_has_the_coverage_that_it_promises() {
        let (mut within, mut all) = (0, 0);
        for seed in 0..60 {
            let mut rng = Rng::new(seed);
            let all_levels = levels(1..=64, |b| stairs(b) * (0.02 * rng.normal()).exp());
            let (out, kept): (Vec<Level>, Vec<Level>) =
                all_levels.into_iter().partition(|level| [7.0, 22.0, 29.0, 41.0, 55.0].contains(&level.batch));
            let curve = Curve::new(kept, breaks(), 0.0).unwrap();
            all += out.len();
            within += out.iter().filter(|level| curve.at(level.batch).holds(level.seconds)).count();
        }
        let share = f64::from(within as u32) / all as f64;
        assert!((0.85..=0.96).contains(&share), "{share}");
    }

    #[test]
    fn repeated_runs_that_differ_widen_every_interval() {
        let of = |sd: f64| Curve::new(levels(1..=30, |b| 0.01 + 0.001 * b), Breaks::default(), sd).unwrap().at(12.5);
        let (alone, repeated) = (of(0.0), of(0.05));
        assert!(alone.high / alone.low < 1.0001);
        // 1.645 * 5 % to each side, in logarithms.
        assert!(((repeated.high / repeated.low).ln() - 2.0 * 1.645 * 0.05).abs() < 1e-3);
    }

    #[test]
    fn fewer_than_three_levels_are_no_curve() {
        assert!(Curve::new(levels(1..=2, stairs), Breaks::default(), 0.0).is_none());
    }
}
