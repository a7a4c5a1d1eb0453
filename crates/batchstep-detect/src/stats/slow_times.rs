//! Times in which the machine was slow: for seconds or minutes another guest of the host, or another program, occupies
//! a core.
//!
//! A factor that all cells share ([`super::common_factor`]) removes slowdowns that affect all cells alike. An occupied
//! core does not: at each layer one thread waits for the other, for nearly the same time at any batch size, so short
//! steps grow by a larger factor than long ones. Measured with three dense layers on two cores, one of them occupied: a
//! step became 2.8 times as long at batch size 15, and 2.4 times at 18. A cell that was visited in such times more
//! often than its neighbours would have a level that cannot be compared with theirs, and would show a false jump. So
//! visits in slow times do not count if every cell has others; a run that continues visits the cells that lack some.

use super::quantile::{median, quantile};

/// A machine is slow from this multiple of its quiet step time on. Below it, cells really share the common factor: each
/// cell's factor is between 0.94 and 1.10 times the shared one (three networks, a factor with a standard deviation of
/// 10 %).
const SLOW: f64 = 1.4;
/// The number of visits before and after a visit whose median says how slow the machine was: a few delayed visits are
/// not a slow time.
const NEAR: usize = 10;
/// The quantile of the run that represents the quiet machine.
const QUIET: f64 = 0.1;
/// The fewest visits that each cell keeps, if it had that many.
const KEPT: usize = 2;

/// The steps of one visit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VisitTimes {
    /// The index of its cell.
    pub cell: usize,
    /// ln of the middle of the step times ([`super::quantile::middle_half`]), and of the shortest.
    pub middle: f64,
    pub fastest: f64,
}

/// The times that were left out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlowTimes {
    pub visits: usize,
    pub of: usize,
    /// The median factor by which the machine was slower in them.
    pub times: f64,
}

/// A run with slow times.
#[derive(Clone, Debug, PartialEq)]
pub struct Division {
    /// The places of the visits outside slow times, in the order of the run.
    pub quiet: Vec<usize>,
    pub slow: SlowTimes,
    /// The cells that have too few visits outside slow times.
    pub lacking: Vec<usize>,
}

/// Divides the visits to `cells` cells, in the order of the run, into those outside and inside slow times; `None` if
/// there are no slow times.
pub fn divide(visits: &[VisitTimes], cells: usize) -> Option<Division> {
    let mut best = vec![f64::INFINITY; cells];
    let mut count = vec![0; cells];
    for visit in visits {
        best[visit.cell] = best[visit.cell].min(visit.fastest);
        count[visit.cell] += 1;
    }
    // A cell's only visit says nothing.
    let excess = |visit: &VisitTimes| (count[visit.cell] > 1).then(|| visit.fastest - best[visit.cell]);
    let excess: Vec<Option<f64>> = visits.iter().map(excess).collect();
    let state: Vec<f64> = (0..visits.len()).map(|place| around(&excess, place)).collect();
    if state.is_empty() {
        return None;
    }
    let usual = quantile(&mut state.clone(), QUIET);
    let is_quiet = |place: &usize| state[*place] < usual + SLOW.ln();
    let (quiet, slow): (Vec<usize>, Vec<usize>) = (0..visits.len()).partition(is_quiet);
    if slow.is_empty() {
        return None;
    }
    let mut left = vec![0; cells];
    quiet.iter().for_each(|place| left[visits[*place].cell] += 1);
    let lacking = (0..cells).filter(|cell| left[*cell] < KEPT.min(count[*cell])).collect();
    let times = median(&mut slow.iter().map(|place| (state[*place] - usual).exp()).collect::<Vec<_>>());
    Some(Division { quiet, slow: SlowTimes { visits: slow.len(), of: visits.len(), times }, lacking })
}

/// The median of the visits near one, without itself: its own deviation must not decide whether it counts.
fn around(excess: &[Option<f64>], place: usize) -> f64 {
    let before = excess[..place].iter().rev().flatten().take(NEAR);
    let after = excess[place + 1..].iter().flatten().take(NEAR);
    let mut near: Vec<f64> = before.chain(after).copied().collect();
    if near.is_empty() { 0.0 } else { median(&mut near) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Rng;

    /// Blocks of 20 cells; the machine is `slower(place)` times as slow.
    fn visits(blocks: usize, slower: impl Fn(usize) -> f64) -> Vec<VisitTimes> {
        let mut rng = Rng::new(3);
        let mut visit = |place: usize| {
            let time = slower(place).ln() + 0.02 * rng.normal() + (place % 20) as f64;
            VisitTimes { cell: place % 20, middle: time + 0.01, fastest: time }
        };
        (0..20 * blocks).map(&mut visit).collect()
    }

    #[test]
    fn visits_in_slow_times_are_distinguished_from_others() {
        let is_slow = |place: usize| (70..170).contains(&place);
        let visits = visits(10, |place| if is_slow(place) { 2.5 } else { 1.0 });
        let Division { quiet, slow, lacking } = divide(&visits, 20).expect("slow times");
        // At both ends of a slow time a visit has as many slow neighbours as quiet ones.
        let wrong = (0..200).filter(|place| quiet.contains(place) == is_slow(*place)).count();
        assert!(wrong <= 2 && slow.visits.abs_diff(100) <= 2, "{wrong} of 200, {slow:?}");
        assert_eq!((slow.of, lacking), (200, Vec::new()));
        assert!((slow.times - 2.5).abs() < 0.1, "{slow:?}");
    }

    #[test]
    fn single_slow_visits_noise_and_a_slow_drift_are_no_slow_times() {
        assert_eq!(divide(&visits(10, |place| if place % 7 == 0 { 3.0 } else { 1.0 }), 20), None);
        assert_eq!(divide(&visits(10, |place| 1.0 + 0.3 * place as f64 / 200.0), 20), None);
        assert_eq!(divide(&[], 20), None);
    }

    #[test]
    fn cells_visited_only_in_slow_times_are_named() {
        // Two and a half blocks are slow, one and a half are not.
        let lacking = |slow: usize| {
            let division = divide(&visits(4, |place| if place < slow { 2.0 } else { 1.0 }), 20);
            division.expect("slow times").lacking
        };
        assert!((9..=11).contains(&lacking(50).len()), "{:?}", lacking(50));
        assert!(lacking(38).is_empty());
    }
}
