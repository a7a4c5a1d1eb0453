//! Does the 95 % interval of a cell's median cover the truth in 95 % of the cases?

use super::{Noise, run};
use crate::error::Result;
use crate::stats::quantile::median;
use crate::store::StepRow;

/// The factor by which the noise moves the median over visits of a cell: 1 for symmetric noise, the middle of the drift, and for a
/// mixture of two states, or a common factor, the median of 8,000 simulated visits.
fn factor(noise: Noise, rows: &[StepRow], lines: &str, steps: usize) -> Result<f64> {
    match noise {
        Noise::Normal | Noise::HeavyTailed => Ok(1.0),
        Noise::Drifting => {
            // The drift is skewed, so the median of drift plus noise is not the sum of their medians. The noise of a
            // visit's median consists of the noise of visits, 1 %, and that of the median of five steps, 0.536 x 0.5 %.
            let (constant, sd) = ((steps / 4) as f64, 0.010_35);
            let drift = |row: &StepRow| 1.0 - 0.02 * (-(row.order as f64) / constant).exp_m1();
            let noisy = |row: &StepRow| QUANTILES.map(|z| drift(row) * (1.0 + sd * z));
            Ok(median(&mut rows.iter().flat_map(noisy).collect::<Vec<_>>()))
        }
        Noise::TwoState | Noise::CommonFactor => {
            let long = run(&spec(lines, "[10]", "min = 8000, max = 8000", 1, 99_991))?;
            Ok(long.outcome.cells[0].median_s.unwrap_or(f64::NAN) / TRUE_S)
        }
    }
}

/// `scipy.stats.norm.ppf((numpy.arange(20) + 0.5) / 20)`.
const QUANTILES: [f64; 20] = [
    -1.959964, -1.439531, -1.150349, -0.934589, -0.755415, -0.597760, -0.453762, -0.318639, -0.189118, -0.062707,
    0.062707, 0.189118, 0.318639, 0.453762, 0.597760, 0.755415, 0.934589, 1.150349, 1.439531, 1.959964,
];

/// The step time at batch size 10 of the default truth.
const TRUE_S: f64 = 0.020;

/// When a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// After this many blocks.
    Fixed(usize),
    /// When a jump of this many percent is resolved, after 100 blocks at the latest.
    Resolved(u32),
}

/// The counts of a study.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Coverage {
    pub intervals: usize,
    pub covered: usize,
    /// Mean number of blocks per cell.
    pub blocks: f64,
    /// Mean number of executed steps per cell, warm-up included.
    pub steps: f64,
}

impl Coverage {
    pub fn share(&self) -> f64 {
        self.covered as f64 / self.intervals as f64
    }
}

/// Simulates `runs` runs of four cells each.
pub fn coverage(noise: Noise, stop: Stop, runs: u64) -> Result<Coverage> {
    let (blocks, smallest, expected) = match stop {
        Stop::Fixed(blocks) => (format!("min = {blocks}, max = {blocks}"), 1, blocks * CELLS * 5),
        Stop::Resolved(percent) => ("min = 5, max = 100".to_string(), percent, 30 * CELLS * 5),
    };
    let lines = noise.lines(expected);
    let mut found = Coverage { intervals: 0, covered: 0, blocks: 0.0, steps: 0.0 };
    let mut fixed = None;
    for seed in 0..runs {
        // Four cells named 1 to 4, all of which execute batch size 10, so that one truth holds for all.
        let simulated = run(&spec(&lines, "\"1..=4\"\nexecutes = 10", &blocks, smallest, seed))?;
        for cell in &simulated.outcome.cells {
            let rows: Vec<StepRow> = simulated.rows.iter().filter(|row| row.cell == cell.cell).cloned().collect();
            let factor = match (noise, fixed) {
                (Noise::Drifting, _) | (_, None) => factor(noise, &rows, &lines, expected)?,
                (_, Some(factor)) => factor,
            };
            fixed = Some(factor);
            let truth = TRUE_S * factor;
            let (Some(low), Some(high)) = (cell.low_s, cell.high_s) else { continue };
            found.intervals += 1;
            found.covered += usize::from(low <= truth && truth <= high);
            found.blocks += cell.blocks as f64;
            found.steps += rows.len() as f64;
        }
    }
    found.blocks /= found.intervals as f64;
    found.steps /= found.intervals as f64;
    Ok(found)
}

const CELLS: usize = 4;

/// `smallest`: the smallest jump, in percent.
fn spec(lines: &str, batch_size: &str, blocks: &str, smallest: u32, seed: u64) -> String {
    format!(
        "version = 1\nname = \"coverage\"\n[sweep]\nbatch_size = {batch_size}\n[engine]\nname = \"synthetic\"\n\
         [synthetic]\n{lines}seed = {seed}\n[measure]\nblocks = {{ {blocks} }}\nsmallest_jump = \"{smallest}%\"\nseed = {seed}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The four cells of a run share the drift and the states of the device, so 100 runs count as 100 and not as 400: three
    /// standard errors below the stated 95 % are 88.5 %. The full study, of 1,000 runs each, is
    /// `examples/tables/trust_simulation.rs`; its table is in docs/method.md.
    #[test]
    #[ignore = "slow"]
    fn the_intervals_cover_the_truth_under_every_noise_model() {
        for noise in Noise::COMMON {
            let found = coverage(noise, Stop::Fixed(10), 100).expect("runs");
            assert_eq!((found.intervals, found.blocks), (400, 10.0));
            assert!((0.885..=0.995).contains(&found.share()), "{}: {}", noise.name(), found.share());
        }
    }

    #[test]
    fn stopping_early_costs_little_coverage_and_saves_steps() {
        let found = coverage(Noise::Normal, Stop::Resolved(8), 100).expect("runs");
        assert!((0.906..=0.994).contains(&found.share()), "{}", found.share());
        // The interval must shrink to a quarter of 8 %, 2 %: about ten blocks with visits that scatter by 1.04 %; a hundred are allowed.
        assert!((7.0..=14.0).contains(&found.blocks), "{}", found.blocks);
        let coarser = coverage(Noise::Normal, Stop::Resolved(20), 20).expect("runs");
        assert!(coarser.blocks < 6.0, "{}", coarser.blocks);
    }
}
