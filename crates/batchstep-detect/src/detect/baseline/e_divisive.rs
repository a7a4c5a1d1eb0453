//! E-divisive (Matteson & James 2014, *A nonparametric approach for multiple change point analysis of multivariate data*):
//! bisection where the energy distance between neighbouring stretches is largest, as long as a permutation test finds
//! it significant.
//!
//! With distances |a - b| (alpha = 1), a stretch of m values before a place and one of n after it have the energy
//! `2 mean between - mean within the first - mean within the second` (means over pairs), and the statistic
//! `m n / (m + n) energy`, maximised over the place and the end of the second stretch.

use super::medians::{Found, Medians};
use crate::detect::input::Settings;
use crate::random::Rng;
use crate::stats::{permutation, quantile::median};

/// More points than this are refused: the distances of all pairs are kept.
pub(super) const MOST: usize = 1000;
/// Fewest values of a stretch.
const SHORTEST: usize = 3;
/// Permutations of each test: enough for a p-value of 0.005.
const PERMUTATIONS: usize = 199;

/// The places found, with their p-values.
pub(super) fn jumps(curve: &Medians, settings: &Settings) -> Vec<Found> {
    let values = straightened(&curve.x, &curve.y);
    let mut rng = Rng::new(settings.seed);
    let level = settings.false_positive_rate.max(1.0 / (PERMUTATIONS + 1) as f64);
    let mut found = Vec::new();
    let mut open = vec![(0, values.len())];
    while let Some((from, to)) = open.pop() {
        let Some((place, statistic)) = best(&values[from..to]) else { continue };
        let mut shuffled = values[from..to].to_vec();
        let exceeding = (0..PERMUTATIONS)
            .filter(|_| {
                rng.shuffle(&mut shuffled);
                best(&shuffled).is_some_and(|(_, other)| other >= statistic)
            })
            .count();
        let p_value = permutation::p_value(exceeding, PERMUTATIONS);
        if p_value <= level {
            found.push(Found { k: from + place - 1, p_value: Some(p_value) });
            open.extend([(from, from + place), (from + place, to)]);
        }
    }
    found.sort_by_key(|f| f.k);
    found
}

/// `y` minus the line whose slope is the median of the slopes over an eighth of the points. The median over all pairs
/// (Theil 1950, Sen 1968) would mistake a single jump for a slope, and the median over neighbours is mostly noise.
fn straightened(x: &[f64], y: &[f64]) -> Vec<f64> {
    let lag = (x.len() / 8).max(1);
    let slope = median(&mut (lag..x.len()).map(|i| (y[i] - y[i - lag]) / (x[i] - x[i - lag])).collect::<Vec<_>>());
    x.iter().zip(y).map(|(x, y)| y - slope * x).collect()
}

/// The best place to cut, as the length of the first stretch, and its statistic; `None` where nothing can be cut.
pub(super) fn best(values: &[f64]) -> Option<(usize, f64)> {
    let n = values.len();
    let within = within(values);
    let mut top: Option<(usize, f64)> = None;
    for end in 2 * SHORTEST..=n {
        // Sum of the distances of the pairs within ..end that the cut separates.
        for place in SHORTEST..=end - SHORTEST {
            let (first, second) = (within[0][place], within[place][end - place]);
            let between = within[0][end] - first - second;
            let (m, k) = (place as f64, (end - place) as f64);
            let energy = 2.0 * between / (m * k) - 2.0 * first / (m * (m - 1.0)) - 2.0 * second / (k * (k - 1.0));
            let statistic = m * k / (m + k) * energy;
            if top.is_none_or(|(_, best)| statistic > best) {
                top = Some((place, statistic));
            }
        }
    }
    top
}

/// Entry [i][l]: the sum of the distances of all pairs within the l values from i on.
fn within(values: &[f64]) -> Vec<Vec<f64>> {
    let n = values.len();
    let mut sums: Vec<Vec<f64>> = (0..n).map(|i| vec![0.0; n - i + 1]).collect();
    for i in (0..n).rev() {
        let mut from_i = 0.0;
        for j in i + 1..n {
            from_i += (values[i] - values[j]).abs();
            // Pairs within i..=j are those within i + 1..=j and those of i.
            sums[i][j - i + 1] = sums[i + 1][j - i] + from_i;
        }
    }
    sums
}
