//! Each cell's level from the visits so far.

use crate::stats::common_factor::{self, Visit};
use crate::stats::disturbance::{Counting, counted};
use crate::stats::halves::{LowLevel, low_levels};
use crate::stats::quantile::median;
use crate::stats::robust::{MIDDLE_SQUARE, REACH, near, scale};
use crate::stats::slow_times::VisitTimes;

/// Degrees of freedom of a visit's deviation.
const TAILS: f64 = 4.0;
/// Rounds of reweighting.
const ROUNDS: usize = 20;
/// No relative error is believed below this.
const LEAST: f64 = 5e-5;

/// A cell's level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Level {
    /// ln of the step time.
    pub log: f64,
    /// The variance of `log`.
    pub variance: f64,
    /// The roughness of the curve: the variance of a level about a smooth curve through its neighbours, beyond `variance`.
    pub roughness: f64,
}

/// The levels of all cells from the visits so far.
#[derive(Clone, Debug)]
pub(super) struct Levels {
    /// `None` for a cell without visits.
    pub known: Vec<Option<Level>>,
    /// Whether the visits share a factor.
    pub factor: bool,
    /// Cells to visit again: they were only in times in which the machine was slow.
    pub lacking: Vec<usize>,
    /// Whether the roughness is the curve's own: the earlier and the later visits bend it the same way.
    pub rough_again: bool,
}

/// A visit less the factor that the others predict, and the variance that this prediction adds.
struct Difference {
    cell: usize,
    value: f64,
    added: f64,
}

/// The level of each of `cells` cells, from visits in the order of the run.
///
/// Levels are M-estimates for Student's t with 4 degrees of freedom. Their variance is the sandwich estimate
/// `mean(w psi^2) / mean(psi')^2 / sum(1 / var)` (Huber 1981, 6.6), pooled over neighbouring cells, with the degrees of freedom that the
/// levels take up.
pub(super) fn levels(visits: &[VisitTimes], cells: usize) -> Levels {
    let Counting { visits: counted, fastest, lacking, .. } = counted(visits, cells, true);
    let visit = |value: f64, place: usize| Visit { cell: visits[place].cell, value, together: false, anew: false };
    let undisturbed = fastest.is_some_and(|fastest| fastest.is_undisturbed());
    let visits = counted.iter().map(|one| visit(one.value, one.place)).collect();
    let differences = differences(visits, cells, undisturbed);
    let factor = differences.iter().any(|difference| difference.added > 0.0);
    let mut own: Vec<Vec<&Difference>> = vec![Vec::new(); cells];
    differences.iter().for_each(|difference| own[difference.cell].push(difference));
    let rough_again = bends_again(&own);
    if let Some(share) = fastest.and_then(|fastest| fastest.share) {
        return Levels { known: with_roughness(low(&own, share)), factor, lacking, rough_again };
    }
    let centers: Vec<f64> = own
        .iter()
        .map(|own| if own.is_empty() { f64::NAN } else { median(&mut own.iter().map(|d| d.value).collect::<Vec<_>>()) })
        .collect();
    let base = own_variance(&differences, &centers);
    let mut found: Vec<Option<Level>> =
        own.iter().zip(&centers).map(|(own, &center)| (!own.is_empty()).then(|| location(own, center, base))).collect();
    let stretch = stretches(&own, &found, base);
    for (level, stretch) in found.iter_mut().zip(stretch) {
        if let Some(level) = level {
            level.variance = (level.variance * stretch).max(LEAST * LEAST);
        }
    }
    Levels { known: with_roughness(found), factor, lacking, rough_again }
}

/// The quantile `share` of the visits to each cell.
fn low(own: &[Vec<&Difference>], share: f64) -> Vec<Option<Level>> {
    let values: Vec<Vec<f64>> = own.iter().map(|own| own.iter().map(|d| d.value).collect()).collect();
    let cells: Vec<&[f64]> = values.iter().map(Vec::as_slice).collect();
    let level = |(low, own): (Option<LowLevel>, &&[f64])| {
        let variance = |low: &LowLevel| (low.scale.powi(2) / own.len() as f64).max(LEAST * LEAST);
        low.map(|low| Level { log: low.value, variance: variance(&low), roughness: 0.0 })
    };
    low_levels(&cells, share).into_iter().zip(&cells).map(level).collect()
}

fn with_roughness(mut levels: Vec<Option<Level>>) -> Vec<Option<Level>> {
    let roughness = roughness(&levels.iter().flatten().copied().collect::<Vec<_>>());
    levels.iter_mut().flatten().for_each(|level| level.roughness = roughness);
    levels
}

/// Nothing is subtracted from `undisturbed` visits.
fn differences(visits: Vec<Visit>, cells: usize, undisturbed: bool) -> Vec<Difference> {
    let medians = common_factor::medians(&visits, cells);
    let residuals: Vec<f64> = visits.iter().map(|visit| visit.value - medians[visit.cell]).collect();
    let spread = scale(&residuals);
    let standard: Vec<f64> = residuals.iter().map(|r| r / spread).collect();
    let is_there = !undisturbed && spread > 0.0 && common_factor::is_there(&standard);
    let factor = is_there.then(|| common_factor::fit(&visits, cells)).flatten();
    let difference = |(v, visit): (usize, &Visit)| {
        let others = factor.as_ref().map(|factor| factor.others[v]).unwrap_or_default();
        Difference { cell: visit.cell, value: visit.value - others.value, added: others.sd * others.sd }
    };
    visits.iter().enumerate().map(difference).collect()
}

/// The variance of a visit's own deviation, on the scale of the t distribution: the middle of squared deviations less
/// what the factor adds.
fn own_variance(differences: &[Difference], centers: &[f64]) -> f64 {
    // The median of the square of Student's t with 4 degrees of freedom: scipy.stats.f.ppf(0.5, 1, 4).
    const MIDDLE: f64 = 0.548_632;
    let mut squares: Vec<f64> = differences.iter().map(|d| (d.value - centers[d.cell]).powi(2)).collect();
    let mut added: Vec<f64> = differences.iter().map(|d| d.added).collect();
    (median(&mut squares) / MIDDLE - median(&mut added)).max(LEAST * LEAST)
}

/// The M-estimate, with the variance that it would have if psi had the variance and slope 1.
fn location(own: &[&Difference], start: f64, base: f64) -> Level {
    let mut log = start;
    for _ in 0..ROUNDS {
        let (mut sum, mut total) = (0.0, 0.0);
        for difference in own {
            let variance = base + difference.added;
            let weight = (TAILS + 1.0) / (TAILS + (difference.value - log).powi(2) / variance) / variance;
            sum += weight * (difference.value - log);
            total += weight;
        }
        log += sum / total;
    }
    let precision: f64 = own.iter().map(|d| 1.0 / (base + d.added)).sum();
    Level { log, variance: 1.0 / precision, roughness: 0.0 }
}

/// For each cell what its variance is multiplied by.
fn stretches(own: &[Vec<&Difference>], found: &[Option<Level>], base: f64) -> Vec<f64> {
    let sums: Vec<[f64; 3]> = own
        .iter()
        .zip(found)
        .map(|(own, level)| {
            let Some(level) = level else { return [0.0; 3] };
            own.iter().fold([0.0; 3], |[psi, slope, count], difference| {
                let square = (difference.value - level.log).powi(2) / (base + difference.added);
                let below = TAILS + square;
                let weight = (TAILS + 1.0) / below;
                let steep = (TAILS + 1.0) * (TAILS - square) / (below * below);
                [psi + weight * weight * square, slope + steep, count + 1.0]
            })
        })
        .collect();
    let stretch = |i: usize| {
        let near = near(i, REACH, sums.len());
        let cells = sums[near.clone()].iter().filter(|sum| sum[2] > 0.0).count() as f64;
        let [psi, slope, count] = sums[near].iter().fold([0.0; 3], |a, b| [a[0] + b[0], a[1] + b[1], a[2] + b[2]]);
        if count <= cells {
            return 1.0;
        }
        let (psi, slope) = (psi / (count - cells), (slope / count).max(0.2));
        psi / (slope * slope)
    };
    (0..own.len()).map(stretch).collect()
}

/// Whether the levels of the earlier visits and those of the later visits bend the same way at most cells. A disturbance of some visits also makes a
/// curve rough, and rougher than the variances suggest if a cell has few visits, but it does not repeat.
fn bends_again(own: &[Vec<&Difference>]) -> bool {
    /// The share of bends that agree if the roughness is more than twice the variance of half of the visits: 1/2 + asin(rho) / pi with rho = 0.7.
    const MOST: f64 = 0.75;
    let halves: Vec<[f64; 2]> = own
        .iter()
        .filter(|own| own.len() > 1)
        .map(|own| {
            let (early, late) = own.split_at(own.len() / 2);
            [early, late].map(|half| median(&mut half.iter().map(|d| d.value).collect::<Vec<_>>()))
        })
        .collect();
    let bends = halves.windows(3).map(|w| [0, 1].map(|half| w[0][half] - 2.0 * w[1][half] + w[2][half]));
    let same = bends.map(|[early, late]| f64::from(early * late > 0.0));
    same.sum::<f64>() > MOST * halves.len().saturating_sub(2) as f64
}

/// The variance of levels about the line through their two neighbours, beyond their own; 0 where it is not clear.
fn roughness(levels: &[Level]) -> f64 {
    /// Second differences count as rough above this multiple of their expected size: the ratio has a standard deviation of a quarter.
    const CLEAR: f64 = 1.75;
    let mut ratios: Vec<f64> = levels
        .windows(3)
        .map(|w| {
            let bend = w[0].log - 2.0 * w[1].log + w[2].log;
            bend * bend / (w[0].variance + 4.0 * w[1].variance + w[2].variance)
        })
        .collect();
    if ratios.len() < 6 {
        return 0.0;
    }
    let ratio = median(&mut ratios) / MIDDLE_SQUARE;
    let variance = median(&mut levels.iter().map(|level| level.variance).collect::<Vec<_>>());
    if ratio > CLEAR { (ratio - 1.0) * variance } else { 0.0 }
}
