//! How exact a level is, by the levels of two halves of its values: for estimates whose error has no formula that holds for unknown noise.
//!
//! The halves are every other value in the order of the run, so that both see the same slow changes of the machine.

use super::quantile::{median, median_unbiased};
use super::robust::{MIDDLE_SQUARE, REACH, near};

/// The two halves.
fn halves(values: &[f64]) -> [Vec<f64>; 2] {
    [0, 1].map(|from| values.iter().skip(from).step_by(2).copied().collect())
}

/// The variance V of one value by which a level of n values has the variance V / n.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Variance {
    /// By the mean over the cells.
    pub mean: f64,
    /// By their median: of most cells, whatever the others do.
    pub usual: f64,
    /// The number of cells.
    pub cells: usize,
}

/// V of those `cells` that have `least` values or more in each half. `None` if these are fewer than half of the cells with values.
pub fn variance(cells: &[&[f64]], least: usize, level: &dyn Fn(&mut [f64]) -> f64) -> Option<Variance> {
    let (mut squares, mut expected, mut ratios) = (0.0, 0.0, Vec::with_capacity(cells.len()));
    for [mut early, mut late] in cells.iter().map(|values| halves(values)) {
        if late.len() >= least.max(1) {
            let of_one = 1.0 / early.len() as f64 + 1.0 / late.len() as f64;
            let square = (level(&mut early) - level(&mut late)).powi(2);
            ratios.push(square / of_one);
            expected += of_one;
            squares += square;
        }
    }
    let measured = cells.iter().filter(|values| !values.is_empty()).count();
    let enough = !ratios.is_empty() && 2 * ratios.len() >= measured;
    enough.then(|| Variance {
        mean: squares / expected,
        cells: ratios.len(),
        usual: median(&mut ratios) / MIDDLE_SQUARE,
    })
}

/// The fewest values that have a median-unbiased quantile at `share`, below one half.
pub fn fewest(share: f64) -> usize {
    (2.0 / (3.0 * share) - 1.0 / 3.0).ceil() as usize
}

/// A low quantile of the values of one cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LowLevel {
    pub value: f64,
    /// The root of V: the standard error of `value` is this divided by the root of the number of values.
    pub scale: f64,
}

/// The `share` quantile of each of `cells`, `None` without values.
pub fn low_levels(cells: &[&[f64]], share: f64) -> Vec<Option<LowLevel>> {
    let level = |values: &mut [f64]| median_unbiased(values, share);
    let of = |(i, values): (usize, &&[f64])| {
        let least = fewest(share);
        let local = variance(&cells[near(i, REACH, cells.len())], least, &level).or_else(|| variance(cells, 1, &level));
        let scale = local.map_or(0.0, |variance| variance.mean.sqrt());
        (!values.is_empty()).then(|| LowLevel { value: level(&mut values.to_vec()), scale })
    };
    cells.iter().enumerate().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Rng;

    /// Cells of `count` values from `draw`.
    fn cells(count: usize, mut draw: impl FnMut() -> f64) -> Vec<Vec<f64>> {
        (0..1000).map(|_| (0..count).map(|_| draw()).collect()).collect()
    }

    fn slices(cells: &[Vec<f64>]) -> Vec<&[f64]> {
        cells.iter().map(Vec::as_slice).collect()
    }

    #[test]
    fn the_variance_of_a_median_is_the_known_one() {
        // The median of many normal values has pi / 2 times the variance of the mean; that of 21 has 1.51 times (Hojo 1931).
        let mut rng = Rng::new(5);
        let cells = cells(42, || 3.0 * rng.normal());
        let variance = variance(&slices(&cells), 1, &|values| median(values)).expect("cells");
        assert!(
            (variance.mean / 9.0 - 1.51).abs() < 0.15 && (variance.usual / 9.0 - 1.51).abs() < 0.25,
            "{variance:?}"
        );
    }

    /// 0 to 1 evenly: the quantile p of n values has the variance p (1 - p) / n, nearly.
    #[test]
    fn low_levels_are_quantiles_with_their_spread() {
        let mut rng = Rng::new(6);
        let cells = cells(80, || rng.uniform());
        let levels: Vec<LowLevel> = low_levels(&slices(&cells), 0.25).into_iter().flatten().collect();
        let mean = levels.iter().map(|level| level.value).sum::<f64>() / 1000.0;
        let stated = levels.iter().map(|level| level.scale.powi(2) / 80.0).sum::<f64>() / 1000.0;
        let spread = levels.iter().map(|level| (level.value - mean).powi(2)).sum::<f64>() / 1000.0;
        assert!((mean - 0.25).abs() < 0.005, "{mean}");
        assert!(
            (stated / spread - 1.0).abs() < 0.15 && (stated * 80.0 / 0.1875 - 1.0).abs() < 0.15,
            "{stated}, {spread}"
        );
    }

    #[test]
    fn few_values_have_no_low_quantile() {
        assert_eq!([fewest(0.25), fewest(0.1)], [3, 7]);
        let few = vec![vec![1.0; 5]; 10];
        assert_eq!(variance(&slices(&few), 3, &|values| median_unbiased(values, 0.25)), None);
        assert_eq!(variance(&[], 1, &|values| median(values)), None);
    }
}
