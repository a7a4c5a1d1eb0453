//! When a cell is known well enough: by the precision of its estimate, not by the spread of its steps.
//!
//! The estimate is the median of the blocks' medians. Blocks, not steps, are the unit that is resampled: the steps of one
//! visit share the clocks, the temperature and the neighbours of that moment, so they say less than their number suggests.

use crate::stats::distribution::t_upper_quantile;
use crate::stats::order::{deviation_of_median, median_interval};
use crate::stats::quantile::median;

/// The cell is done when its interval is narrower than this share of the smallest jump the run must see.
pub const WIDTH_SHARE: f64 = 0.25;
const CONFIDENCE: f64 = 0.95;

/// A cell's step time and how well it is known; seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BlockMedian {
    pub median: f64,
    /// Standard error of `median`, from resampled blocks; for two blocks, the standard error of a mean; infinite for one.
    pub error: f64,
    /// The 95 % interval of `median`.
    pub low: f64,
    pub high: f64,
    pub blocks: usize,
}

impl BlockMedian {
    /// The median over blocks and its interval. `blocks` contains the steps of each visit that count; `None` if there are none.
    /// A single block proves nothing: its interval is unbounded.
    ///
    /// The interval is that of docs/method.md, "The estimate of a cell". The percentile interval of the resamples would have the medians
    /// of a few values as its only possible ends: at 3 blocks it covers 74 % at best. For five to nine blocks order statistics
    /// ([`median_interval`]) contain the truth in 94 to 97 % of cases. From ten blocks on both are right for a fixed number of blocks, and
    /// resampling suffers less from the stop rule.
    pub fn of(blocks: &[Vec<f64>]) -> Option<Self> {
        let mut medians: Vec<f64> = blocks.iter().filter(|b| !b.is_empty()).map(|b| median(&mut b.clone())).collect();
        let n = medians.len();
        if n == 0 {
            return None;
        }
        let error = match medians[..] {
            [_] => f64::INFINITY,
            // The mean of two, whose resamples would be narrower by the square root of two.
            [a, b] => 0.5 * (a - b).abs(),
            _ => deviation_of_median(&mut medians),
        };
        let center = median(&mut medians);
        let (low, high) = match n {
            1 => (f64::NEG_INFINITY, f64::INFINITY),
            5..10 => median_interval(&mut medians, CONFIDENCE),
            _ => (center - student(n - 1) * error, center + student(n - 1) * error),
        };
        Some(Self { median: center, error, low, high, blocks: n })
    }

    /// The width of the interval relative to the median.
    pub fn relative_width(&self) -> f64 {
        (self.high - self.low) / self.median
    }

    /// True where a jump of `smallest_jump` (relative) next to this cell would be seen.
    ///
    /// Asked after every block, an interval of a few blocks is narrow by luck sooner or later; so the resampled one must be
    /// narrow as well, which is the wider one up to nine blocks.
    pub fn resolves(&self, smallest_jump: f64) -> bool {
        let resampled = 2.0 * student(self.blocks.max(2) - 1) * self.error / self.median;
        self.relative_width().max(resampled) < WIDTH_SHARE * smallest_jump
    }
}

/// Half the width of an interval at [`CONFIDENCE`], in standard errors.
fn student(df: usize) -> f64 {
    t_upper_quantile((1.0 - CONFIDENCE) / 2.0, df as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Rng;

    #[test]
    fn one_block_proves_nothing() {
        let known = BlockMedian::of(&[vec![1.0, 1.0, 1.0]]).expect("one block");
        assert!(!known.resolves(0.5));
        assert_eq!(known.median, 1.0);
        assert_eq!(BlockMedian::of(&[]), None);
        assert_eq!(BlockMedian::of(&[vec![]]), None);
    }

    #[test]
    fn equal_blocks_resolve_everything_and_scattered_ones_do_not() {
        let equal = vec![vec![2.0, 2.0]; 3];
        assert!(BlockMedian::of(&equal).expect("some").resolves(0.001));
        let scattered: Vec<Vec<f64>> = [1.0, 1.02, 0.98, 1.01].iter().map(|&t| vec![t]).collect();
        assert!(!BlockMedian::of(&scattered).expect("some").resolves(0.01));
    }

    /// Normal noise between blocks; the share of 1,000 simulated cells whose interval holds the true median.
    #[test]
    fn the_interval_covers_the_truth() {
        for blocks in [2, 3, 4, 5, 6, 7, 8, 10, 20] {
            let mut rng = Rng::new(11);
            let covered = (0..1000)
                .filter(|_| {
                    let steps: Vec<Vec<f64>> = (0..blocks)
                        .map(|_| {
                            let level = 1.0 + 0.01 * rng.normal();
                            (0..5).map(|_| level + 0.002 * rng.normal()).collect()
                        })
                        .collect();
                    let known = BlockMedian::of(&steps).expect("some");
                    known.low <= 1.0 && 1.0 <= known.high
                })
                .count();
            assert!((920..=990).contains(&covered), "{blocks} blocks: {covered} of 1000 cover");
        }
    }
}
