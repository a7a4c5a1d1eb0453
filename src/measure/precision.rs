//! When a cell is known well enough: by the precision of its estimate, not by the spread of its steps.
//!
//! The estimate is the median of the blocks' medians. Blocks, not steps, are the unit that is resampled: the steps of one
//! visit share the clocks, the temperature and the neighbours of that moment, so they say less than their number suggests.

use crate::stats::bootstrap::{self, Rng};
use crate::stats::distribution::t_upper;
use crate::stats::quantile::median;

/// The cell is done when its interval is narrower than this share of the smallest jump the run must see.
pub const WIDTH_SHARE: f64 = 0.25;
/// Resamples of each interval.
const RESAMPLES: usize = 400;
const CONFIDENCE: f64 = 0.95;

/// Why a cell was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// Known well enough for `smallest_jump`.
    Converged,
    /// The blocks or the time ran out first.
    Budget,
    OutOfMemory,
    Failed,
}

impl StopReason {
    /// The stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Converged => "converged",
            Self::Budget => "budget",
            Self::OutOfMemory => "out_of_memory",
            Self::Failed => "failed",
        }
    }
}

/// A cell's step time and how well it is known; seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BlockMedian {
    pub median: f64,
    /// The 95 % interval of `median`.
    pub low: f64,
    pub high: f64,
    pub blocks: usize,
}

impl BlockMedian {
    /// The median over blocks and its interval by a block bootstrap. `blocks` holds the steps of each visit that count.
    ///
    /// The percentile interval of a few values is too narrow: its spread is that of a sample with n, not n - 1, degrees of
    /// freedom, and it knows nothing of the uncertainty of the spread itself. Both are put right as for a mean (Hesterberg
    /// 2015, What teachers should know about the bootstrap, section 4): the half-widths are stretched by
    /// t(n - 1) / z * sqrt(n / (n - 1)).
    pub fn of(blocks: &[Vec<f64>], seed: u64) -> Option<Self> {
        let medians: Vec<f64> = blocks.iter().filter(|b| !b.is_empty()).map(|b| median(&mut b.clone())).collect();
        if medians.is_empty() {
            return None;
        }
        let center = median(&mut medians.clone());
        let n = medians.len();
        if n < 2 {
            return Some(Self { median: center, low: f64::NEG_INFINITY, high: f64::INFINITY, blocks: n });
        }
        let (low, high) = bootstrap::interval(&medians, median, RESAMPLES, CONFIDENCE, &mut Rng::new(seed));
        let stretch = small_sample_stretch(n);
        Some(Self {
            median: center,
            low: center - stretch * (center - low).max(0.0),
            high: center + stretch * (high - center).max(0.0),
            blocks: n,
        })
    }

    /// The width of the interval relative to the median.
    pub fn relative_width(&self) -> f64 {
        (self.high - self.low) / self.median
    }

    /// True where a jump of `smallest_jump` (relative) next to this cell would be seen.
    pub fn resolves(&self, smallest_jump: f64) -> bool {
        self.relative_width() < WIDTH_SHARE * smallest_jump
    }
}

/// t(n - 1) / z * sqrt(n / (n - 1)) at 95 %.
fn small_sample_stretch(n: usize) -> f64 {
    let df = (n - 1) as f64;
    let tail = (1.0 - CONFIDENCE) / 2.0;
    let (mut low, mut high) = (0.0, 700.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if t_upper(middle, df) > tail { low = middle } else { high = middle }
    }
    low / 1.959_963_984_540_054 * (n as f64 / df).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stretch_agrees_with_tables_of_student_t() {
        // t(2; 0.975) = 4.302653, t(9; 0.975) = 2.262157 (R: qt(0.975, c(2, 9))).
        assert!((small_sample_stretch(3) - 4.302_653 / 1.959_964 * 1.5_f64.sqrt()).abs() < 1e-4);
        assert!((small_sample_stretch(10) - 2.262_157 / 1.959_964 * (10.0_f64 / 9.0).sqrt()).abs() < 1e-4);
    }

    #[test]
    fn one_block_proves_nothing() {
        let known = BlockMedian::of(&[vec![1.0, 1.0, 1.0]], 1).expect("one block");
        assert!(!known.resolves(0.5));
        assert_eq!(known.median, 1.0);
        assert_eq!(BlockMedian::of(&[], 1), None);
        assert_eq!(BlockMedian::of(&[vec![]], 1), None);
    }

    #[test]
    fn equal_blocks_resolve_everything_and_scattered_ones_do_not() {
        let equal = vec![vec![2.0, 2.0]; 3];
        assert!(BlockMedian::of(&equal, 1).expect("some").resolves(0.001));
        let scattered: Vec<Vec<f64>> = [1.0, 1.02, 0.98, 1.01].iter().map(|&t| vec![t]).collect();
        assert!(!BlockMedian::of(&scattered, 1).expect("some").resolves(0.01));
    }

    /// Normal noise between blocks; the share of 1,000 simulated cells whose interval holds the true median.
    #[test]
    fn the_interval_covers_the_truth() {
        for blocks in [3, 5, 10, 20] {
            let mut rng = Rng::new(11);
            let covered = (0..1000)
                .filter(|&i| {
                    let steps: Vec<Vec<f64>> = (0..blocks)
                        .map(|_| {
                            let level = 1.0 + 0.01 * rng.normal();
                            (0..5).map(|_| level + 0.002 * rng.normal()).collect()
                        })
                        .collect();
                    let known = BlockMedian::of(&steps, i).expect("some");
                    known.low <= 1.0 && 1.0 <= known.high
                })
                .count();
            assert!((920..=1000).contains(&covered), "{blocks} blocks: {covered} of 1000 cover");
        }
    }
}
