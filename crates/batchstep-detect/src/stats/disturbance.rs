//! Disturbances that only ever add time: another program takes a core, and a step waits for it.
//!
//! Most of the steps of a visit may be affected, so that their median describes a disturbed machine; the fastest step
//! is the least disturbed (Chen & Revels 2016, "Robust benchmarking in noisy environments"; hyperfine and criterion
//! show the minimum for the same reason). If a disturbance lasts longer than a visit, whole visits are affected, and
//! the fastest of several visits to a cell shows the quiet machine. But where noise goes both ways, the median is the
//! better estimate: the minimum depends on how much the steps scatter, and only one of k visits remains. So the fastest
//! step represents a visit, and the fastest visit represents k visits, only if the remaining values of a cell then
//! agree clearly better: by more than the loss in number.

use super::common_factor::scale;
use super::quantile::quantile;
use super::slow_times::{SlowTimes, VisitTimes, divide};

/// A summary is used if its scatter, times the square root of the visits that it combines, is below this share of the
/// plainer summary's scatter. If only the steps have noise, and it is normal, the ratio is 1.1 for the fastest of three
/// steps and 1.25 for the fastest of five; if visits differ as a whole, it is 1. For the fastest of two visits it is
/// 1.17, and it grows with their number.
const CLEARLY: f64 = 0.7;
/// The numbers of visits that the fastest among them may represent.
const TOGETHER: [usize; 4] = [2, 4, 8, 16];
/// Three of four cells must have enough visits for at least this number of groups.
const LEAST: f64 = 2.0;

/// How disturbed visits are summarised, and how much the remaining values scatter within cells: robust standard
/// deviations of ln time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// The number of visits that the fastest among them represents; each visit is represented by its fastest step.
    pub together: usize,
    pub scatter: f64,
    /// The scatter of the medians of single visits.
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
    /// How visits were summarised; `None`: each by its median.
    pub summary: Option<Summary>,
    /// The times that were left out.
    pub slow: Option<SlowTimes>,
    /// The cells with too few visits in quiet times; because of them, no times were left out.
    pub lacking: Vec<usize>,
}

/// Which of the visits to `cells` cells count, in the order of the run. `one_machine`: a visit may represent others.
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
    let of_medians = scatter(visits, &medians, cells);
    let of_fastest = scatter(visits, &fastest, cells);
    let summary = |together, scatter| Summary { together, scatter, of_medians };
    let groups = Groups::new(visits, &fastest, cells);
    let mut best = match of_fastest < CLEARLY * of_medians {
        true => (fastest, Some(summary(1, of_fastest)), of_fastest),
        false => (medians, None, of_medians),
    };
    let limit = CLEARLY * best.2;
    for together in TOGETHER.into_iter().filter(|k| one_machine && *k as f64 * LEAST <= groups.usual) {
        let kept = groups.fastest(together);
        let scatter = scatter(visits, &kept, cells);
        let cost = scatter * (together as f64).sqrt();
        if cost < best.2.min(limit) {
            best = (kept, Some(summary(together, scatter)), cost);
        }
    }
    Counting { visits: best.0, summary: best.1, slow, lacking }
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

/// The visits by cell.
struct Groups {
    of_cell: Vec<Vec<Counted>>,
    /// Three of four cells have at least this number of visits.
    usual: f64,
}

impl Groups {
    fn new(visits: &[VisitTimes], counted: &[Counted], cells: usize) -> Self {
        let mut of_cell = vec![Vec::new(); cells];
        counted.iter().for_each(|one| of_cell[visits[one.place].cell].push(*one));
        of_cell.retain(|own| !own.is_empty());
        let usual = quantile(&mut of_cell.iter().map(|own| own.len() as f64).collect::<Vec<_>>(), 0.25);
        Self { of_cell, usual }
    }

    /// The fastest of each `together` visits or more to a cell. The visits of a group are far apart in the run, so a
    /// lasting disturbance affects only some of each group.
    fn fastest(&self, together: usize) -> Vec<Counted> {
        let mut kept = Vec::new();
        for own in &self.of_cell {
            let groups = (own.len() / together).max(1);
            let group = |first: usize| own[first..].iter().step_by(groups).copied();
            kept.extend((0..groups).filter_map(|first| group(first).min_by(|a, b| a.value.total_cmp(&b.value))));
        }
        kept.sort_by_key(|one| one.place);
        kept
    }
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
            let Counting { visits: counted, summary, slow, .. } = counted(&visits, 20, true);
            assert_eq!((counted.len(), summary, slow), (240, None, None));
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
        let summary = counting.summary.expect("disturbed");
        assert_eq!((counting.visits.len(), summary.together), (240, 1));
        // Few visits have five interrupted steps, so little more than the scatter of the steps remains.
        assert!(summary.scatter < 0.02, "{summary:?}");
    }

    #[test]
    fn interruptions_of_half_of_the_visits_leave_the_fastest_of_some() {
        let visits = visits(|rng| 0.002 * rng.normal(), disturbed);
        let Counting { visits: kept, summary, .. } = counted(&visits, 20, true);
        let summary = summary.expect("disturbed");
        assert!(summary.together >= 4 && summary.scatter < 0.01 && summary.of_medians > 0.1, "{summary:?}");
        assert_eq!(kept.len(), 20 * (12 / summary.together));
        assert!(kept.iter().all(|one| one.value == visits[one.place].fastest));
        assert!(kept.is_sorted_by_key(|one| one.place));
        // If the visits of a cell are from different machines, none represents another.
        assert_eq!(counted(&visits, 20, false).visits.len(), 240);
    }
}
