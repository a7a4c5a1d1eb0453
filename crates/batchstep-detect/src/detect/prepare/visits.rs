//! Reduces steps to visits: consecutive steps at one x share the state of the machine and count as one repetition.
//!
//! Errors that treat them as independent are too small: by half if steps scatter by 0.5 %, visits by 1 %, and a visit
//! has five steps. So the steps of a visit are reduced to the mean of their middle half, or to the fastest where these agree far better
//! ([`crate::stats::disturbance`]). A median of many would have an artefact: the kernel's clock interrupts some steps and not others, and where that becomes
//! half of them, at steps of half its period, medians rise by the length of an interrupt. If most x have only one visit, nothing would be left to compare, and the steps
//! stay unchanged.

use std::cmp::Ordering;

use crate::detect::input::Observation;
use crate::stats::disturbance::{Counting, Fastest, counted};
use crate::stats::quantile::{median, middle_half};
use crate::stats::slow_times::SlowTimes;
use crate::stats::slow_times::VisitTimes;

/// The observations of a series, and how its visits were summarised.
#[derive(Clone, Debug, PartialEq)]
pub struct Visits {
    /// One for each counted visit, in the order of the run, or for each step if visits are not known.
    pub observations: Vec<Observation>,
    /// If the fastest steps represent the visits.
    pub by_fastest: Option<Fastest>,
    /// Times of the run that were left out.
    pub slow: Option<SlowTimes>,
}

/// One observation for each visit. `observations` stay unchanged if neither order nor block says which steps belong
/// together, or if half of the x have no second visit.
pub fn by_visit(observations: Vec<Observation>) -> Visits {
    reduced(observations, true)
}

/// The same, but no times are left out: for comparisons within blocks, which need the other visits of the block.
pub fn every_visit(observations: Vec<Observation>) -> Visits {
    reduced(observations, false)
}

fn reduced(mut observations: Vec<Observation>, without_slow: bool) -> Visits {
    let place = |o: &Observation| o.order.or(o.block.map(f64::from));
    if observations.iter().any(|o| place(o).is_none_or(|place| !place.is_finite())) {
        return Visits { observations, by_fastest: None, slow: None };
    }
    let order = |a: &Observation, b: &Observation| place(a).partial_cmp(&place(b)).unwrap_or(Ordering::Equal);
    observations.sort_by(|a, b| order(a, b).then(a.x.total_cmp(&b.x)));
    let visits: Vec<&[Observation]> = observations.chunk_by(|a, b| a.x == b.x && a.block == b.block).collect();
    let mut x: Vec<f64> = visits.iter().map(|visit| visit[0].x).collect();
    x.sort_by(f64::total_cmp);
    let repeated = x.chunk_by(|a, b| a == b).filter(|same| same.len() > 1).count();
    x.dedup();
    if 2 * repeated <= x.len() {
        return Visits { observations, by_fastest: None, slow: None };
    }
    let times = visits.iter().map(|visit| VisitTimes {
        cell: x.partition_point(|x| *x < visit[0].x),
        middle: middle(visit).ln(),
        fastest: fastest(visit).ln(),
    });
    // Machines differ: a slow time of one is none of another.
    let same_machine = without_slow && visits.iter().all(|visit| visit[0].node == visits[0][0].node);
    let Counting { visits: counted, fastest: by_fastest, slow, .. } =
        counted(&times.collect::<Vec<_>>(), x.len(), same_machine);
    let observation = |place: usize| {
        let visit = visits[place];
        let of = if by_fastest.is_some() { fastest } else { middle };
        let time = of(visit);
        Observation { y: time, clock_hz: clock(visit), ..visit[0] }
    };
    Visits { observations: counted.iter().map(|one| observation(one.place)).collect(), by_fastest, slow }
}

fn middle(visit: &[Observation]) -> f64 {
    middle_half(&mut visit.iter().map(|step| step.y).collect::<Vec<_>>())
}

fn fastest(visit: &[Observation]) -> f64 {
    visit.iter().map(|step| step.y).fold(f64::INFINITY, f64::min)
}

/// The median clock of the steps.
fn clock(visit: &[Observation]) -> Option<f64> {
    let clocks: Option<Vec<f64>> = visit.iter().map(|step| step.clock_hz).collect();
    clocks.map(|mut clocks| median(&mut clocks))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(x: f64, y: f64, order: f64, block: u32) -> Observation {
        Observation { order: Some(order), block: Some(block), clock_hz: Some(1e9), ..Observation::new(x, y) }
    }

    #[test]
    fn the_steps_of_a_visit_become_their_middle() {
        let steps = vec![
            step(2.0, 5.0, 0.0, 0),
            step(2.0, 7.0, 1.0, 0),
            step(2.0, 6.0, 2.0, 0),
            step(1.0, 1.0, 3.0, 0),
            // The second block begins where the first one ended.
            step(1.0, 2.0, 4.0, 1),
            step(1.0, 4.0, 5.0, 1),
            step(2.0, 9.0, 6.0, 1),
        ];
        let visits = by_visit(steps).observations;
        let found: Vec<(f64, f64, Option<f64>)> = visits.iter().map(|v| (v.x, v.y, v.order)).collect();
        let expected = [(2.0, 6.0, Some(0.0)), (1.0, 1.0, Some(3.0)), (1.0, 3.0, Some(4.0)), (2.0, 9.0, Some(6.0))];
        assert_eq!(found, expected);
    }

    #[test]
    fn only_blocks_separate_the_visits() {
        let steps = [(1.0, 3.0, 1), (2.0, 5.0, 0), (1.0, 1.0, 0), (2.0, 4.0, 1), (1.0, 2.0, 0)];
        let steps = steps.map(|(x, y, block)| Observation { block: Some(block), ..Observation::new(x, y) });
        let found: Vec<(f64, f64)> = by_visit(steps.to_vec()).observations.iter().map(|v| (v.x, v.y)).collect();
        assert_eq!(found, [(1.0, 1.5), (2.0, 5.0), (1.0, 3.0), (2.0, 4.0)]);
    }

    #[test]
    fn steps_of_one_visit_each_and_steps_without_an_order_stay() {
        let once = vec![step(1.0, 1.0, 0.0, 0), step(1.0, 2.0, 1.0, 0), step(2.0, 3.0, 2.0, 0), step(2.0, 5.0, 3.0, 0)];
        assert_eq!(by_visit(once.clone()).observations, once);
        let unknown = vec![Observation::new(1.0, 2.0), Observation::new(1.0, 4.0), Observation::new(2.0, 3.0)];
        assert_eq!(by_visit(unknown.clone()).observations, unknown);
    }
}
