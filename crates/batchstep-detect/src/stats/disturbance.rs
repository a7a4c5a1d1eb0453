//! Disturbances that only ever add time: an interrupt of the kernel, a cache that something else has filled, another guest on the same core.
//!
//! The fastest step of a visit is the least disturbed (Chen & Revels 2016, "Robust benchmarking in noisy environments"; hyperfine and criterion show
//! the minimum for the same reason), and the fastest visits are the least disturbed of all. But where noise goes both ways, the middle is the better
//! estimate: a minimum depends on how much the steps scatter, and on a second in which the processor was faster. So the fastest steps represent visits only
//! if they scatter clearly less, and the fastest visits a cell only if the levels of two halves of its visits then agree clearly better
//! ([`super::halves`]).

use super::halves::{self, Variance};
use super::quantile::{median, median_unbiased};
use super::robust::scale;
use super::slow_times::{SlowTimes, VisitTimes, divide};

/// The fastest count if they scatter by less than this share of what the middles scatter by. If only the steps have noise, and it
/// is normal, the ratio is 1.1 for the fastest of three steps and 1.25 for the fastest of five; if visits differ as a whole, it is 1.
const CLEARLY: f64 = 0.7;
/// The shares of a cell's visits whose slowest may be its level. In 16 runs of straight lines on a shared machine these
/// and the middle had errors of 0.2 to 1.1 %, where medians of all visits had 0.3 to 5.9 %.
const SHARES: [f64; 2] = [0.25, TENTH];
const TENTH: f64 = 0.1;
/// The fewest cells by which these are chosen: the ratio of two errors is known to a sixth by 20.
const FEWEST: usize = 20;

/// That the fastest steps represent the visits, since disturbances add to the others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fastest {
    /// The quantile of the fastest steps of its visits that is the level of a cell; `None`: their middle.
    pub share: Option<f64>,
    /// The standard deviation of one visit, as far as levels depend on it: by this choice, and if the middles of the visits counted.
    pub scatter: f64,
    pub of_middles: f64,
}

impl Fastest {
    /// Whether a level is that of the fastest tenth, which nothing disturbed. No factor common to a time is taken out of these visits: what the
    /// others predict for their moments only adds to their scatter. (In quiet runs of straight lines the smallest jump that would have been
    /// seen is a fifth to a half smaller without it.)
    pub fn is_undisturbed(&self) -> bool {
        self.share == Some(TENTH)
    }
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
    /// If the fastest steps represent the visits. `None`: their middles do.
    pub fastest: Option<Fastest>,
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
    let (middles, of_fastest) = (of(|visit| visit.middle), of(|visit| visit.fastest));
    let [scatter, of_middles] = [&of_fastest, &middles].map(|counted| scatter(visits, counted, cells));
    let usual = (scatter < CLEARLY * of_middles).then_some(Fastest { share: None, scatter, of_middles });
    let values = |counted: &[Counted]| {
        let mut values = vec![Vec::new(); cells];
        counted.iter().for_each(|one| values[visits[one.place].cell].push(one.value));
        values
    };
    let usual_values = values(if usual.is_some() { &of_fastest } else { &middles });
    let low = if one_machine { low(&usual_values, &values(&of_fastest)) } else { None };
    let fastest = low.or(usual);
    Counting { visits: if fastest.is_some() { of_fastest } else { middles }, fastest, slow, lacking }
}

/// How much the counted values scatter within cells, from the differences of successive visits to a cell. With few
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

/// A low quantile of the `fastest` steps of visits, if its error is clearly smaller than that of the middle of the `usual` values: at most cells,
/// and in the mean over all, to which the few count at which a faster second of the processor decides.
fn low(usual: &[Vec<f64>], fastest: &[Vec<f64>]) -> Option<Fastest> {
    let slices = |cells| -> Vec<&[f64]> { <[Vec<f64>]>::iter(cells).map(Vec::as_slice).collect() };
    let (usual, fastest) = (slices(usual), slices(fastest));
    let visits = fastest.iter().map(|own| own.len()).filter(|count| *count > 0).min()?;
    let middle = halves::variance(&usual, 1, &|values| median(values))?;
    let is_less = |a: f64, b: f64| a < CLEARLY * CLEARLY * b;
    let clear =
        |own: &Variance| own.cells >= FEWEST && is_less(own.mean, middle.mean) && is_less(own.usual, middle.usual);
    let of = |&share: &f64| {
        let least = halves::fewest(share);
        let level = |values: &mut [f64]| median_unbiased(values, share);
        let own = (visits >= least).then(|| halves::variance(&fastest, least, &level)).flatten();
        own.filter(clear).map(|own| (share, own.mean))
    };
    let (share, mean) = SHARES.iter().filter_map(of).min_by(|a, b| a.1.total_cmp(&b.1))?;
    Some(Fastest { share: Some(share), scatter: mean.sqrt(), of_middles: middle.mean.sqrt() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Rng;

    /// Twelve visits of five steps to each of 20 cells, as `step` draws them; `visit` draws the part that all steps of
    /// a visit share.
    fn visits(step: impl Fn(&mut Rng) -> f64, visit: impl Fn(&mut Rng) -> f64) -> Vec<VisitTimes> {
        let mut rng = Rng::new(7);
        let visit = |i: usize| {
            let own = visit(&mut rng);
            let mut steps: Vec<f64> = (0..5).map(|_| own + step(&mut rng)).collect();
            let fastest = steps.iter().copied().fold(f64::INFINITY, f64::min);
            VisitTimes { cell: i % 20, middle: median(&mut steps), fastest }
        };
        (0..240).map(visit).collect()
    }

    fn disturbed(rng: &mut Rng) -> f64 {
        if rng.uniform() < 0.5 { 0.5 * rng.uniform() } else { 0.0 }
    }

    #[test]
    fn noise_that_goes_both_ways_keeps_the_middles_of_all_visits() {
        for of_visits in [0.0, 0.01, 0.1] {
            let visits = visits(|rng| 0.01 * rng.normal(), |rng| of_visits * rng.normal());
            let Counting { visits: counted, fastest, slow, .. } = counted(&visits, 20, true);
            assert_eq!((counted.len(), fastest, slow), (240, None, None));
            assert!(counted.iter().zip(&visits).all(|(one, visit)| one.value == visit.middle));
        }
    }

    #[test]
    fn interruptions_of_half_of_the_steps_leave_the_fastest() {
        let visits = visits(|rng| 0.01 * rng.normal() + disturbed(rng), |_| 0.0);
        let counting = counted(&visits, 20, true);
        let fastest = counting.fastest.expect("disturbed");
        // Few visits have five interrupted steps, so little more than the scatter of the steps remains.
        assert!(counting.visits.len() == 240 && fastest.scatter < 0.02 && fastest.of_middles > 0.05, "{fastest:?}");
    }

    /// Another guest shares the core in half of the visits, in all of their steps.
    #[test]
    fn visits_that_are_slow_as_a_whole_leave_the_fastest_of_them() {
        let shared = |rng: &mut Rng| if rng.uniform() < 0.35 { 0.15 + 0.5 * rng.uniform() } else { 0.0 };
        let fastest = counted(&visits(|rng| 0.002 * rng.normal(), shared), 20, true).fastest.expect("disturbed");
        assert!(fastest.share.is_some() && fastest.scatter < 0.5 * fastest.of_middles, "{fastest:?}");
    }

    /// For a twentieth of the run the processor is a fifth faster: its fastest visits are no better.
    #[test]
    fn a_second_of_a_faster_processor_leaves_the_middles() {
        let mut rng = Rng::new(7);
        let mut visit = |i: usize| {
            let time = 0.005 * rng.normal() - if (100..112).contains(&i) { 0.18 } else { 0.0 };
            VisitTimes { cell: i % 20, middle: time + 0.002, fastest: time }
        };
        let visits: Vec<VisitTimes> = (0..240).map(&mut visit).collect();
        assert_eq!(counted(&visits, 20, true).fastest, None);
    }
}
