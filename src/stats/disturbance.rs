//! Disturbances that only ever add time: another program takes a core, and a step waits for it.
//!
//! Most of the steps of a visit may be hit, so that their median is one of a disturbed machine; the fastest step is the least disturbed
//! one (Chen & Revels 2016, "Robust benchmarking in noisy environments"; hyperfine and criterion show the minimum for the same
//! reason). But where noise goes both ways the median is the better estimate, and the minimum depends on how much the steps scatter. So
//! the fastest step stands for a visit only where that makes the visits of a cell agree clearly better.

use super::common_factor::scale;
use super::quantile::median;

/// The fastest steps are taken where their scatter between visits is below this share of that of the medians. For normal noise of the steps alone
/// the ratio is 1.1 at three steps and 1.25 at five; where visits differ as a whole, 1.
const CLEARLY: f64 = 0.7;

/// The steps of one visit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VisitTimes {
    /// The index of its cell.
    pub cell: usize,
    /// ln of the median step time, and of the shortest.
    pub median: f64,
    pub fastest: f64,
}

/// The scatter of visits about their cells, robust standard deviations of ln time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scatter {
    pub of_medians: f64,
    pub of_fastest: f64,
}

impl Scatter {
    /// Of the visits to `cells` cells.
    pub fn of(visits: &[VisitTimes], cells: usize) -> Self {
        let by = |time: fn(&VisitTimes) -> f64| {
            let mut values = vec![Vec::new(); cells];
            visits.iter().for_each(|visit| values[visit.cell].push(time(visit)));
            let centers: Vec<f64> = values.iter_mut().map(|values| median(values)).collect();
            scale(&visits.iter().map(|visit| time(visit) - centers[visit.cell]).collect::<Vec<_>>())
        };
        Self { of_medians: by(|visit| visit.median), of_fastest: by(|visit| visit.fastest) }
    }

    /// Whether a visit's fastest step says more than its median.
    pub fn is_one_sided(self) -> bool {
        self.of_fastest < CLEARLY * self.of_medians
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Rng;

    /// Visits to 20 cells, ten each of five steps, as `step` draws them.
    fn scatter(step: impl Fn(&mut Rng) -> f64) -> Scatter {
        let mut rng = Rng::new(7);
        let visit = |i: usize| {
            let mut steps: Vec<f64> = (0..5).map(|_| step(&mut rng)).collect();
            let fastest = steps.iter().copied().fold(f64::INFINITY, f64::min);
            VisitTimes { cell: i % 20, median: median(&mut steps), fastest }
        };
        Scatter::of(&(0..200).map(visit).collect::<Vec<_>>(), 20)
    }

    #[test]
    fn noise_that_goes_both_ways_keeps_the_median() {
        let scatter = scatter(|rng| 0.01 * rng.normal());
        // The median of five normal values has the standard deviation 0.536, the smallest 0.669 (Harter 1961).
        assert!((scatter.of_fastest / scatter.of_medians - 0.669 / 0.536).abs() < 0.2, "{scatter:?}");
        assert!(!scatter.is_one_sided());
    }

    #[test]
    fn interruptions_of_half_of_the_steps_leave_the_fastest() {
        let scatter = scatter(|rng| 0.01 * rng.normal() + if rng.uniform() < 0.5 { 0.5 * rng.uniform() } else { 0.0 });
        assert!(scatter.is_one_sided(), "{scatter:?}");
        // Few visits have five interrupted steps: what is left is little more than the scatter of the steps.
        assert!(scatter.of_fastest < 0.02, "{scatter:?}");
    }
}
