//! Disturbances within a visit that only ever add time: an interrupt of the kernel, a cache that something else has filled.
//!
//! The fastest step of a visit is the least disturbed (Chen & Revels 2016, "Robust benchmarking in noisy environments"; hyperfine and criterion show
//! the minimum for the same reason). But where noise goes both ways, the median is the better estimate: the minimum depends on how much the steps
//! scatter. So the fastest step represents a visit only if these values of a cell then agree clearly better.

use super::common_factor::scale;
use super::slow_times::{SlowTimes, VisitTimes, divide};

/// The fastest steps represent their visits if they scatter by less than this share of the medians' scatter. If only the steps have noise, and it
/// is normal, the ratio is 1.1 for the fastest of three steps and 1.25 for the fastest of five; if visits differ as a whole, it is 1.
const CLEARLY: f64 = 0.7;

/// How much visits scatter within cells: robust standard deviations of ln time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scatter {
    pub of_fastest: f64,
    pub of_medians: f64,
}

/// A visit that counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Counted {
    /// Its place among all visits.
    pub place: usize,
    /// ln of the time that represents it.
    pub value: f64,
}

/// The visits that count, and what happened to the others.
#[derive(Clone, Debug, PartialEq)]
pub struct Counting {
    /// In the order of the run.
    pub visits: Vec<Counted>,
    /// If the fastest steps represent the visits: how much visits scatter. `None`: the medians do.
    pub by_fastest: Option<Scatter>,
    /// The times that were left out.
    pub slow: Option<SlowTimes>,
    /// The cells with too few visits in quiet times; because of them, no times were left out.
    pub lacking: Vec<usize>,
}

/// Which of the visits to `cells` cells count, in the order of the run. `one_machine`: its slow times can be told from its others.
pub fn counted(visits: &[VisitTimes], cells: usize, one_machine: bool) -> Counting {
    let all = || (0..visits.len()).collect();
    let (places, slow, lacking): (Vec<usize>, _, _) = match divide(visits, cells).filter(|_| one_machine) {
        Some(division) if division.lacking.is_empty() => (division.quiet, Some(division.slow), Vec::new()),
        division => (all(), None, division.map_or_else(Vec::new, |division| division.lacking)),
    };
    let of = |time: fn(&VisitTimes) -> f64| -> Vec<Counted> {
        places.iter().map(|&place| Counted { place, value: time(&visits[place]) }).collect()
    };
    let (medians, fastest) = (of(|visit| visit.median), of(|visit| visit.fastest));
    let [of_medians, of_fastest] = [&medians, &fastest].map(|counted| scatter(visits, counted, cells));
    let by_fastest = (of_fastest < CLEARLY * of_medians).then_some(Scatter { of_fastest, of_medians });
    Counting { visits: if by_fastest.is_some() { fastest } else { medians }, by_fastest, slow, lacking }
}

/// The robust standard deviation of the counted values, from the differences of successive visits to a cell. With few
/// visits to a cell, deviations from the cell's own centre would say too little; and slow changes over the run do not
/// affect differences.
fn scatter(visits: &[VisitTimes], counted: &[Counted], cells: usize) -> f64 {
    let mut last = vec![None; cells];
    let mut differences = Vec::with_capacity(counted.len());
    for one in counted {
        let before = last[visits[one.place].cell].replace(one.value);
        differences.extend(before.map(|before: f64| (one.value - before) / std::f64::consts::SQRT_2));
    }
    if differences.is_empty() { 0.0 } else { scale(&differences) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Rng;
    use crate::stats::quantile::median;

    /// Twelve visits of five steps to each of 20 cells, as `step` draws them; `visit` draws the part that all steps of
    /// a visit share.
    fn visits(step: impl Fn(&mut Rng) -> f64, visit: impl Fn(&mut Rng) -> f64) -> Vec<VisitTimes> {
        let mut rng = Rng::new(7);
        let visit = |i: usize| {
            let own = visit(&mut rng);
            let mut steps: Vec<f64> = (0..5).map(|_| own + step(&mut rng)).collect();
            let fastest = steps.iter().copied().fold(f64::INFINITY, f64::min);
            VisitTimes { cell: i % 20, median: median(&mut steps), fastest }
        };
        (0..240).map(visit).collect()
    }

    fn disturbed(rng: &mut Rng) -> f64 {
        if rng.uniform() < 0.5 { 0.5 * rng.uniform() } else { 0.0 }
    }

    #[test]
    fn noise_that_goes_both_ways_keeps_the_medians_of_all_visits() {
        for of_visits in [0.0, 0.01, 0.1] {
            let visits = visits(|rng| 0.01 * rng.normal(), |rng| of_visits * rng.normal());
            let Counting { visits: counted, by_fastest, slow, .. } = counted(&visits, 20, true);
            assert_eq!((counted.len(), by_fastest, slow), (240, None, None));
            assert!(counted.iter().zip(&visits).all(|(one, visit)| one.value == visit.median));
        }
        let visits = visits(|rng| 0.01 * rng.normal(), |_| 0.0);
        let fastest: Vec<Counted> = (0..240).map(|place| Counted { place, value: visits[place].fastest }).collect();
        let medians: Vec<Counted> = (0..240).map(|place| Counted { place, value: visits[place].median }).collect();
        // The median of five normal values has the standard deviation 0.536, the smallest 0.669 (Harter 1961).
        let ratio = scatter(&visits, &fastest, 20) / scatter(&visits, &medians, 20);
        assert!((ratio - 0.669 / 0.536).abs() < 0.2, "{ratio}");
    }

    #[test]
    fn interruptions_of_half_of_the_steps_leave_the_fastest() {
        let visits = visits(|rng| 0.01 * rng.normal() + disturbed(rng), |_| 0.0);
        let counting = counted(&visits, 20, true);
        let scatter = counting.by_fastest.expect("disturbed");
        // Few visits have five interrupted steps, so little more than the scatter of the steps remains.
        assert!(counting.visits.len() == 240 && scatter.of_fastest < 0.02 && scatter.of_medians > 0.05, "{scatter:?}");
    }
}
