//! Does the 95 % interval of a cell's median hold the truth in 95 of 100 cases?

use super::run;
use crate::error::Result;
use crate::stats::quantile::median;
use crate::store::StepRow;

/// What hides the truth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weather {
    /// Steps scatter by 0.5 %, visits by 1 %.
    Normal,
    /// The same scales, Student's t with 3 degrees of freedom.
    HeavyTailed,
    /// Normal, and the device gets 2 % slower as it gets warm, over about half of the run.
    Drifting,
    /// Normal, and in 30 % of the time the device is 4 % slower.
    TwoState,
}

impl Weather {
    pub const ALL: [Self; 4] = [Self::Normal, Self::HeavyTailed, Self::Drifting, Self::TwoState];

    pub fn name(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::HeavyTailed => "heavy-tailed",
            Self::Drifting => "drifting",
            Self::TwoState => "two-state",
        }
    }

    /// The lines of a spec's `[synthetic]`; `steps` is about how many a run has.
    fn lines(self, steps: usize) -> String {
        let noise = |tails: &str| format!("noise = {{ sd = \"0.5%\", visits = \"1%\", heavy_tails = \"{tails}\" }}\n");
        match self {
            Self::Normal => noise("0%"),
            Self::HeavyTailed => noise("100%"),
            Self::Drifting => format!("{}drift = {{ amplitude = \"2%\", steps = {} }}\n", noise("0%"), steps / 4),
            Self::TwoState => format!("{}boost = {{ share = \"30%\", size = \"4%\", steps = 20 }}\n", noise("0%")),
        }
    }

    /// What the median over visits of a cell is times, when nothing hides it: the middle of the drift, and for a mixture of
    /// two states the median of 8,000 visits.
    fn factor(self, rows: &[StepRow], lines: &str, steps: usize) -> Result<f64> {
        match self {
            Self::Normal | Self::HeavyTailed => Ok(1.0),
            Self::Drifting => {
                // A skewed drift and noise together: the median of the sum is not the sum of the medians. The noise of a
                // visit's median is that of visits, 1 %, and of the median of five steps, 0.536 x 0.5 %.
                let (constant, sd) = ((steps / 4) as f64, 0.010_35);
                let drift = |row: &StepRow| 1.0 - 0.02 * (-(row.order as f64) / constant).exp_m1();
                let noisy = |row: &StepRow| QUANTILES.map(|z| drift(row) * (1.0 + sd * z));
                Ok(median(&mut rows.iter().flat_map(noisy).collect::<Vec<_>>()))
            }
            Self::TwoState => {
                let long = run(&spec(lines, "[10]", "min = 8000, max = 8000", 99_991))?;
                Ok(long.outcome.cells[0].median_s.unwrap_or(f64::NAN) / TRUE_S)
            }
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

/// How a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// After so many blocks.
    Fixed(usize),
    /// When a jump of so many percent is resolved, after 100 blocks at the latest.
    Resolved(u32),
}

/// What was counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Coverage {
    pub intervals: usize,
    pub covered: usize,
    /// Blocks of each cell, in the mean.
    pub blocks: f64,
    /// Steps that were executed of each cell, in the mean, warm-up included.
    pub steps: f64,
}

impl Coverage {
    pub fn share(&self) -> f64 {
        self.covered as f64 / self.intervals as f64
    }
}

/// Rehearses `runs` runs of four cells each.
///
/// # Errors
/// None that a valid weather could cause.
pub fn coverage(weather: Weather, stop: Stop, runs: u64) -> Result<Coverage> {
    let (blocks, smallest, expected) = match stop {
        Stop::Fixed(blocks) => (format!("min = {blocks}, max = {blocks}"), 1, blocks * CELLS * 5),
        Stop::Resolved(percent) => ("min = 5, max = 100".to_string(), percent, 30 * CELLS * 5),
    };
    let lines = weather.lines(expected);
    let mut found = Coverage { intervals: 0, covered: 0, blocks: 0.0, steps: 0.0 };
    let mut fixed = None;
    for seed in 0..runs {
        // Four cells of one truth: names 1 to 4, all of batch size 10.
        let text = spec(&lines, "\"1..=4\"\nexecutes = 10", &blocks, seed)
            .replace("\"1%\"\nseed", &format!("\"{smallest}%\"\nseed"));
        let simulated = run(&text)?;
        for cell in &simulated.outcome.cells {
            let rows: Vec<StepRow> = simulated.rows.iter().filter(|row| row.cell == cell.cell).cloned().collect();
            let factor = match (weather, fixed) {
                (Weather::Drifting, _) | (_, None) => weather.factor(&rows, &lines, expected)?,
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

fn spec(lines: &str, batch_size: &str, blocks: &str, seed: u64) -> String {
    format!(
        "version = 1\nname = \"coverage\"\n[sweep]\nbatch_size = {batch_size}\n[engine]\nname = \"synthetic\"\n\
         [synthetic]\n{lines}seed = {seed}\n[measure]\nblocks = {{ {blocks} }}\nsmallest_jump = \"1%\"\nseed = {seed}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The four cells of a run share the drift and the states of the device, so 100 runs count as 100 and not as 400: three
    /// standard errors below the stated 95 % are 88.5 %. The heavy form, of 1,000 runs each, is
    /// `examples/trust_simulation.rs`; its table stands in DESIGN.md.
    #[test]
    fn the_intervals_hold_the_truth_in_every_weather() {
        for weather in Weather::ALL {
            let found = coverage(weather, Stop::Fixed(10), 100).expect("runs");
            assert_eq!((found.intervals, found.blocks), (400, 10.0));
            assert!((0.885..=0.995).contains(&found.share()), "{}: {}", weather.name(), found.share());
        }
    }

    #[test]
    fn stopping_as_soon_as_enough_is_known_costs_little_coverage_and_saves_steps() {
        let found = coverage(Weather::Normal, Stop::Resolved(8), 100).expect("runs");
        assert!((0.906..=0.994).contains(&found.share()), "{}", found.share());
        // A quarter of 8 % is an interval of 2 %: with visits that scatter by 1.04 % about ten blocks, of a hundred allowed.
        assert!((7.0..=14.0).contains(&found.blocks), "{}", found.blocks);
        let coarser = coverage(Weather::Normal, Stop::Resolved(20), 20).expect("runs");
        assert!(coarser.blocks < 6.0, "{}", coarser.blocks);
    }
}
