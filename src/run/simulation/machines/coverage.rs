//! Does the 95 % interval of a level hold the truth in 95 % of cases, where machines differ at all batch sizes and at single ones?

use super::Fleet;
use crate::detect::Point;
use crate::error::Result;

/// The counts of a study.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Coverage {
    pub intervals: usize,
    pub covered: usize,
    /// Mean width of an interval, relative to its level.
    pub width: f64,
    /// Mean number of steps of a cell.
    pub steps: f64,
}

impl Coverage {
    pub fn share(&self) -> f64 {
        self.covered as f64 / self.intervals as f64
    }
}

/// The experiments of `seeds`, 40 levels each; if `known` is false, the detector does not know which machine measured a visit.
///
/// The amounts that machines add to all batch sizes are not errors of a level: the levels of an experiment are compared with the truth after their
/// common error is removed.
pub fn coverage(fleet: Fleet, known: bool, seeds: std::ops::Range<u64>) -> Result<Coverage> {
    let mut counted = Coverage::default();
    for seed in seeds {
        let truth = fleet.truth(seed)?;
        let points = fleet.found(seed, known)?.points;
        let log = |value: f64, point: &Point| (value / truth.step_s(point.x as usize)).ln();
        let off: Vec<f64> = points.iter().map(|point| log(point.center, point)).collect();
        let common = off.iter().sum::<f64>() / off.len() as f64;
        let holds = |point: &&Point| (log(point.low, point)..=log(point.high, point)).contains(&common);
        counted.covered += points.iter().filter(holds).count();
        counted.intervals += points.len();
        counted.width += points.iter().map(|point| (point.high - point.low) / point.center).sum::<f64>();
        counted.steps += points.iter().map(|point| point.count as f64).sum::<f64>();
    }
    counted.width /= counted.intervals as f64;
    counted.steps /= counted.intervals as f64;
    Ok(counted)
}

#[cfg(test)]
mod tests {
    use super::super::VisitPattern;
    use super::*;

    const FLEET: Fleet =
        Fleet { machines: 2, blocks: 4, visits: VisitPattern::Equal, relative_sd: 0.1, cell_sd: 0.02, jump: 0.0 };

    /// Counts 800 intervals of 95 % for each fleet. All 800 share the fleet's estimate of how much its machines differ, so the share of one experiment
    /// varies by 4 % and the mean of twenty by 1 %. The full study, of 100 experiments each, is `examples/tables/trust_simulation.rs`.
    #[test]
    fn intervals_of_levels_count_machines_where_machines_differ_at_single_batch_sizes() {
        for (machines, blocks, visits) in
            [(2, 4, VisitPattern::Equal), (2, 16, VisitPattern::Unequal), (4, 16, VisitPattern::Unequal)]
        {
            let fleet = Fleet { machines, blocks, visits, ..FLEET };
            let share = coverage(fleet, true, 0..20).expect("runs").share();
            assert!((0.92..=0.98).contains(&share), "{fleet:?}: {share}");
        }
    }

    #[test]
    fn without_the_machines_half_of_the_levels_would_be_missed() {
        let fleet = Fleet { blocks: 16, visits: VisitPattern::Unequal, ..FLEET };
        let share = coverage(fleet, false, 0..20).expect("runs").share();
        assert!(share < 0.7, "{share}");
    }
}
