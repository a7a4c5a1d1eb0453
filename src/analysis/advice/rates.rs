//! From the steps of a series to the level of each size: the logarithm of its work per second, what each visit departs from it, and its
//! error.

use std::collections::{BTreeMap, BTreeSet};

use super::{RateConversion, Silence, because};
use crate::analysis::Series;
use crate::detect::{FactorPoint, Observation, by_visit, every_visit};
use crate::stats::quantile::median;
use crate::stats::robust::{mad, sigma};

/// Sizes, beyond which comparing each with all others takes too long.
const MOST_SIZES: usize = 2_000;

/// Visits of a size below which it is left out.
pub(super) const FEWEST_VISITS: usize = 4;
/// Departures are cut off at this many standard deviations (Huber 1964).
const CLIP: f64 = 1.5;
/// How many visits' worth of evidence the scatter of all sizes is for that of one.
const PRIOR: f64 = 4.0;
/// Visits further from the middle one of their size than this many standard deviations are in a second state if they are at least this share of all,
/// and if their distances from it scatter by less than this share of their median.
const STATE: (f64, f64, f64) = (3.0, 0.125, 1.0 / 3.0);
/// Least standard deviation of a visit, relative.
const LEAST: f64 = 1e-6;
/// Passes in which levels of blocks and of sizes are fitted in turn.
const PASSES: usize = 3;

/// The sizes of a series, ascending.
pub(super) struct Rates {
    pub x: Vec<f64>,
    /// ln of the work per second.
    pub level: Vec<f64>,
    pub visits: Vec<usize>,
    /// The variance of the level within blocks.
    pub variance: Vec<f64>,
    /// The variance of the level that all sizes of a block share.
    pub between_blocks: f64,
    /// For each block, the sizes that were visited in it, each with the amount by which the visit moves the level of its size, times the number of visits.
    pub influence: Vec<Vec<(usize, f64)>>,
    /// Sizes with fewer than [`FEWEST_VISITS`].
    pub too_few: Vec<f64>,
    pub blocks: bool,
}

/// A visit: its size, its block and ln of its work per second.
struct VisitRate {
    size: usize,
    block: usize,
    value: f64,
}

impl Rates {
    /// The levels less `factor`, the common factor that the detector found in the series: the fitted curve is without it, too.
    ///
    /// # Errors
    /// [`Silence`] where there are too few visits, too many sizes, or repetitions that do not differ.
    pub fn of(series: &Series, factor: &[FactorPoint], work: &RateConversion) -> Result<Self, Silence> {
        let mut seen = by_visit(times(series, work)).observations;
        let mut found = by_size(&seen, &[], work);
        // If slow times do not count, too few visits may be left.
        if found.kept.len() <= found.few.len() {
            seen = every_visit(times(series, work)).observations;
            found = by_size(&seen, &[], work);
        }
        let BySize { kept, few, blocks } = found;
        match kept.len() {
            0 | 1 => return Err(Silence::Visits),
            2..=MOST_SIZES => {}
            _ => return because(format!("more than {MOST_SIZES} sizes are too many to compare with each other")),
        }
        let x: Vec<f64> = kept.iter().map(|(x, _)| f64::from_bits(*x)).collect();
        let mut rates = Self::fitted(x, visits(&by_size(&seen, factor, work).kept))?;
        // A step of another hour has that hour's factor: what blocks share stays in the error of a step's time.
        rates.between_blocks = of_blocks(&subtract_blocks(&mut visits(&kept), rates.x.len()));
        rates.too_few = few.into_iter().map(|(x, _)| f64::from_bits(x)).collect();
        rates.blocks = blocks;
        Ok(rates)
    }

    fn fitted(x: Vec<f64>, mut visits: Vec<VisitRate>) -> Result<Self, Silence> {
        let blocks = subtract_blocks(&mut visits, x.len()).len();
        visits.sort_by_key(|visit| visit.size);
        let own: Vec<&[VisitRate]> = visits.chunk_by(|a, b| a.size == b.size).collect();
        let values: Vec<Vec<f64>> = own.iter().map(|own| own.iter().map(|visit| visit.value).collect()).collect();
        let Some(scales) = scales(&values) else {
            return because("the repetitions of a size do not differ, so that no error can be estimated");
        };
        let mut influence = vec![Vec::new(); blocks];
        let mut level = Vec::new();
        let mut squares = Vec::new();
        for (size, (values, scale)) in values.iter().zip(&scales).enumerate() {
            let (center, departures) = huber(values, *scale);
            level.push(center);
            let sum: f64 = departures.iter().map(|departure| departure * departure).sum();
            squares.push(sum / (values.len() - 1) as f64);
            let departures = own[size].iter().zip(departures);
            departures.for_each(|(visit, departure)| influence[visit.block].push((size, departure)));
        }
        let count: Vec<usize> = values.iter().map(Vec::len).collect();
        let variance = shrunken(&squares, &count);
        Ok(Self { x, level, variance, between_blocks: 0.0, visits: count, influence, too_few: vec![], blocks: true })
    }
}

/// The visits to a size: their block, and ln of their work per second.
type BlockRates = Vec<(Option<(u32, u32)>, f64)>;

/// The visits of a series by the bits of their size.
struct BySize {
    kept: Vec<(u64, BlockRates)>,
    few: Vec<(u64, BlockRates)>,
    blocks: bool,
}

/// With the rates less `factor`.
fn by_size(observations: &[Observation], factor: &[FactorPoint], work: &RateConversion) -> BySize {
    let disturbed = |seen: &Observation| {
        let place = seen.order.or(seen.block.map(f64::from)).unwrap_or(0.0);
        let at = factor.partition_point(|point| point.order < place).min(factor.len().saturating_sub(1));
        factor.get(at).map_or(0.0, |point| if work.inverse { -point.relative.ln_1p() } else { point.relative.ln_1p() })
    };
    let blocks = observations.iter().all(|seen| seen.block.is_some());
    let mut values: BTreeMap<u64, BlockRates> = BTreeMap::new();
    for seen in observations {
        let value = work.rate(seen.x, seen.y) + disturbed(seen);
        if value.is_finite() {
            let block = seen.block.filter(|_| blocks).map(|block| (seen.node.unwrap_or(0), block));
            // Positive numbers are in the order of their bits.
            values.entry(seen.x.to_bits()).or_default().push((block, value));
        }
    }
    let (kept, few) = values.into_iter().partition(|(_, seen)| is_enough(seen));
    BySize { kept, few, blocks }
}

/// The steps with positive sizes and values, as times: in a disturbed visit the fastest step counts, which for a rate is the largest value.
fn times(series: &Series, work: &RateConversion) -> Vec<Observation> {
    let usable = |seen: &Observation| seen.x > 0.0 && seen.y > 0.0 && seen.x.is_finite() && seen.y.is_finite();
    let as_time = |seen: Observation| if work.inverse { Observation { y: seen.y.recip(), ..seen } } else { seen };
    series.observations().into_iter().filter(usable).map(as_time).collect()
}

/// Whether a size has enough visits, in different blocks where these are known.
fn is_enough(seen: &BlockRates) -> bool {
    let blocks: BTreeSet<(u32, u32)> = seen.iter().filter_map(|(block, _)| *block).collect();
    let independent = if blocks.is_empty() { seen.len() } else { blocks.len() };
    independent >= FEWEST_VISITS
}

/// Visits with their blocks numbered from 0; the r-th repetitions of all sizes are a block where blocks are not known. Several visits to a
/// size in one block are their median.
fn visits(sizes: &[(u64, BlockRates)]) -> Vec<VisitRate> {
    let mut numbers: BTreeMap<(u32, u32), Vec<(usize, f64)>> = BTreeMap::new();
    for (size, (_, seen)) in sizes.iter().enumerate() {
        for (repetition, (block, value)) in seen.iter().enumerate() {
            numbers.entry(block.unwrap_or((0, repetition as u32))).or_default().push((size, *value));
        }
    }
    let mut visits = Vec::new();
    for (block, seen) in numbers.into_values().enumerate() {
        for same in seen.chunk_by(|a, b| a.0 == b.0) {
            let value = median(&mut same.iter().map(|(_, value)| *value).collect::<Vec<_>>());
            visits.push(VisitRate { size: same[0].0, block, value });
        }
    }
    visits
}

/// Takes the level that all sizes of a block share out of its visits (Tukey's median polish); gives these levels.
fn subtract_blocks(visits: &mut [VisitRate], sizes: usize) -> Vec<f64> {
    let blocks = visits.iter().map(|visit| visit.block + 1).max().unwrap_or(0);
    let mut shared = vec![0.0; blocks];
    for _ in 0..PASSES {
        let mut own = vec![Vec::new(); sizes];
        visits.iter().for_each(|visit| own[visit.size].push(visit.value));
        let own: Vec<f64> = own.iter_mut().map(|values| median(values)).collect();
        let mut away = vec![Vec::new(); blocks];
        visits.iter().for_each(|visit| away[visit.block].push(visit.value - own[visit.size]));
        let away: Vec<f64> = away.iter_mut().map(|values| median(values)).collect();
        visits.iter_mut().for_each(|visit| visit.value -= away[visit.block]);
        shared.iter_mut().zip(&away).for_each(|(shared, away)| *shared += away);
    }
    shared
}

/// The variance of a level that comes from the blocks' shared values.
fn of_blocks(shared: &[f64]) -> f64 {
    let n = shared.len() as f64;
    let mean = shared.iter().sum::<f64>() / n;
    shared.iter().map(|level| (level - mean).powi(2)).sum::<f64>() / (n * (n - 1.0).max(1.0))
}

/// The standard deviation of a visit to each size, drawn towards that of all sizes; `None` where most sizes do not scatter.
fn scales(values: &[Vec<f64>]) -> Option<Vec<f64>> {
    let own = |values: &Vec<f64>| {
        let center = median(&mut values.clone());
        let robust = sigma(values, center);
        // Rounded times may be alike in more than half of the visits.
        if mad(values, center) > 0.0 { robust } else { values.iter().map(|v| (v - center).abs()).fold(0.0, f64::max) }
    };
    let own: Vec<f64> = values.iter().map(own).collect();
    let usual = median(&mut own.clone());
    let least = second_state(values, usual).max(LEAST);
    let towards = |(own, values): (&f64, &Vec<f64>)| {
        let freedom = (values.len() - 1) as f64;
        ((PRIOR * usual * usual + freedom * own * own) / (PRIOR + freedom)).sqrt()
    };
    (usual > 0.0).then(|| own.iter().zip(values).map(towards).map(|scale| scale.max(least)).collect())
}

/// How far a second state of the machine is from the usual one; 0 where there is none. Which state most visits of a size are in is chance. A location
/// that follows most of them jumps between the two, and its error does not show it: departures of this size count in full.
fn second_state(values: &[Vec<f64>], usual: f64) -> f64 {
    let mut all: Vec<f64> = Vec::new();
    for values in values {
        // One of the visits, as the median of an even number may be in neither state.
        let mut ordered = values.clone();
        ordered.sort_by(f64::total_cmp);
        let center = ordered[values.len() / 2];
        all.extend(values.iter().map(|value| (value - center).abs()));
    }
    let far: Vec<f64> = all.iter().copied().filter(|away| *away > STATE.0 * usual).collect();
    let distance = median(&mut far.clone());
    let is_one = far.len() as f64 >= STATE.1 * all.len() as f64 && sigma(&far, distance) < STATE.2 * distance;
    if is_one { distance } else { 0.0 }
}

/// Huber's location by two steps from the median, and what each value adds to it times their number, with mean 0.
fn huber(values: &[f64], scale: f64) -> (f64, Vec<f64>) {
    let (n, limit) = (values.len() as f64, CLIP * scale);
    let clipped = |center: f64| values.iter().map(move |value| (value - center).clamp(-limit, limit));
    let mut center = median(&mut values.to_vec());
    for _ in 0..2 {
        center += clipped(center).sum::<f64>() / n;
    }
    let inside = values.iter().filter(|value| (**value - center).abs() < limit).count() as f64 / n;
    let mut departures: Vec<f64> = clipped(center).map(|departure| departure / inside.max(0.5)).collect();
    let mean = departures.iter().sum::<f64>() / n;
    departures.iter_mut().for_each(|departure| *departure -= mean);
    (center, departures)
}

/// Variances of levels: each size's own variance of a visit drawn towards the median of all, over its visits.
pub(super) fn shrunken(squares: &[f64], visits: &[usize]) -> Vec<f64> {
    let usual = median(&mut squares.to_vec());
    let one = |(own, visits): (&f64, &usize)| {
        let freedom = visits.saturating_sub(1) as f64;
        let variance = (PRIOR * usual + freedom * own) / (PRIOR + freedom);
        variance.max(LEAST * LEAST) / *visits as f64
    };
    squares.iter().zip(visits).map(one).collect()
}
