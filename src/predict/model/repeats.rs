//! Several runs of the same cells: one level for each batch size, and how far runs differ as a whole.

use std::collections::BTreeMap;

use super::curve::Level;
use crate::stats::quantile::median;

#[derive(Clone, Debug, PartialEq)]
pub struct Pooled {
    /// One for each batch size, ascending: the median over the runs, after each run was scaled to the runs' common
    /// height.
    pub levels: Vec<Level>,
    /// For each run: the logarithm of its height divided by the common one; they sum to about 0. `None` for a run that shares no batch size
    /// with another: its height cannot be told from the curve.
    pub heights: Vec<Option<f64>>,
    /// `|ln(a / b)|` of levels that two runs have of the same batch size: the error of a repeated measurement. No
    /// prediction can be better.
    pub repeated: Vec<f64>,
}

/// Pools runs; a batch size that occurs twice in a run counts once, with its first level.
pub fn pooled(runs: &[Vec<Level>]) -> Pooled {
    let mut by_batch: BTreeMap<u64, Vec<(usize, f64)>> = BTreeMap::new();
    for (run, levels) in runs.iter().enumerate() {
        for level in levels {
            let known = by_batch.entry(level.batch.to_bits()).or_default();
            if known.iter().all(|(other, _)| *other != run) {
                known.push((run, level.seconds));
            }
        }
    }
    let mut heights: Vec<Option<f64>> = vec![None; runs.len()];
    // Two rounds suffice: the first brings all runs to one height, the second corrects for batch sizes that only some of them have.
    for _ in 0..2 {
        let mut offsets: Vec<Vec<f64>> = vec![Vec::new(); runs.len()];
        for of_batch in by_batch.values().filter(|of_batch| of_batch.len() > 1) {
            let common = common(of_batch, &heights);
            of_batch.iter().for_each(|(run, seconds)| offsets[*run].push((seconds / common).ln()));
        }
        for (height, offsets) in heights.iter_mut().zip(&mut offsets) {
            *height = if offsets.is_empty() { None } else { Some(median(offsets)) };
        }
    }
    let mut repeated = Vec::new();
    let mut levels = Vec::new();
    for (bits, of_batch) in &by_batch {
        levels.push(Level { batch: f64::from_bits(*bits), seconds: common(of_batch, &heights) });
        repeated.extend(of_batch.windows(2).map(|pair| (pair[0].1 / pair[1].1).ln().abs()));
    }
    Pooled { levels, heights, repeated }
}

/// The median of one batch size over the runs, each at the common height.
fn common(of_batch: &[(usize, f64)], heights: &[Option<f64>]) -> f64 {
    let height = |run: usize| heights[run].unwrap_or(0.0);
    let mut values: Vec<f64> = of_batch.iter().map(|(run, seconds)| seconds.ln() - height(*run)).collect();
    median(&mut values).exp()
}

/// The standard deviation between runs, from the heights of all curves with two or more runs of the same batch sizes; `None` if there are none.
pub fn between_runs<'a>(curves: impl Iterator<Item = &'a Pooled>) -> Option<f64> {
    let (mut squares, mut freedom) = (0.0, 0.0);
    let known = |pooled: &Pooled| pooled.heights.iter().flatten().copied().collect::<Vec<f64>>();
    for heights in curves.map(known).filter(|heights| heights.len() > 1) {
        let mean = heights.iter().sum::<f64>() / heights.len() as f64;
        squares += heights.iter().map(|height| (height - mean).powi(2)).sum::<f64>();
        freedom += heights.len() as f64 - 1.0;
    }
    (freedom > 0.0).then(|| (squares / freedom).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(levels: &[(f64, f64)]) -> Vec<Level> {
        levels.iter().map(|&(batch, seconds)| Level { batch, seconds }).collect()
    }

    // The second run takes 21 % longer at both batch sizes: heights -ln(1.1) and ln(1.1), common levels 1.1 and 2.2 s. The variance of
    // two heights at a distance d is d^2 / 2.
    #[test]
    fn two_runs_of_different_speed_have_a_common_height() {
        let pooled = pooled(&[run(&[(1.0, 1.0), (2.0, 2.0)]), run(&[(1.0, 1.21), (2.0, 2.42), (3.0, 3.63)])]);
        let close = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-12;
        let heights: Vec<f64> = pooled.heights.iter().flatten().copied().collect();
        assert!(close(heights[1], 1.1f64.ln()) && close(-heights[0], 1.1f64.ln()), "{pooled:?}");
        let levels: Vec<f64> = pooled.levels.iter().map(|level| level.seconds).collect();
        assert!(close(levels[0], 1.1) && close(levels[1], 2.2) && close(levels[2], 3.3), "{levels:?}");
        assert!(pooled.repeated.len() == 2 && close(pooled.repeated[0], 1.21f64.ln()));
        let sd = between_runs([&pooled].into_iter()).unwrap();
        assert!(close(sd, 1.21f64.ln() / 2f64.sqrt()));
    }

    // A third run beside the first two, without a batch size of theirs, changes neither the squares nor their number.
    #[test]
    fn runs_without_a_common_batch_size_are_not_repeated() {
        let (low, high) = (run(&[(1.0, 1.0), (2.0, 2.0)]), run(&[(3.0, 3.3), (4.0, 4.4)]));
        let apart = pooled(&[low.clone(), high.clone()]);
        assert!(apart.heights.iter().all(Option::is_none) && apart.levels.len() == 4, "{apart:?}");
        assert_eq!(between_runs([&apart].into_iter()), None);
        let again = run(&[(1.0, 1.21), (2.0, 2.42)]);
        let three = pooled(&[low, again, high]);
        assert!(three.heights.len() == 3 && three.heights[2].is_none(), "{three:?}");
        let sd = between_runs([&three].into_iter()).unwrap();
        assert!((sd / (1.21f64.ln() / 2f64.sqrt()) - 1.0).abs() < 1e-12, "{sd}");
    }

    #[test]
    fn one_run_says_nothing_of_others() {
        assert_eq!(between_runs([&pooled(&[run(&[(1.0, 1.0)])])].into_iter()), None);
    }
}
