//! Which steps count if other programs disturbed some of them, and what is reported about it.

use std::collections::BTreeSet;

use super::{Measurement, Series};
use crate::detect::{Note, Observation};
use crate::foreign;
use crate::measure::interference::Undisturbed;

/// The least share of disturbed steps that is reported.
const WORTH_SAYING: f64 = 0.05;
/// Programs that are named.
const NAMED: usize = 3;

/// A visit: the bits of its x, its machine, its block.
pub(super) type VisitKey = (u64, Option<u32>, Option<u32>);

pub(super) fn visit(seen: &Observation) -> VisitKey {
    (seen.x.to_bits(), seen.node, seen.block)
}

/// What counts of a series' steps.
struct Counting {
    /// The visits with an undisturbed step.
    quiet: BTreeSet<VisitKey>,
    sizes: Undisturbed<u64>,
}

impl Counting {
    fn of(measurements: &[Measurement]) -> Self {
        let visits = |quiet: bool| {
            let steps = measurements.iter().filter(|m| !m.warmup).filter(move |m| !(quiet && m.disturbed));
            steps.map(|m| visit(&m.observation)).collect::<BTreeSet<VisitKey>>()
        };
        let quiet = visits(true);
        let sizes = Undisturbed::of(visits(false).iter().map(|visit| (visit.0, !quiet.contains(visit))));
        Self { quiet, sizes }
    }

    fn counts(&self, step: &Measurement) -> bool {
        let visit = visit(&step.observation);
        let alone = !self.quiet.contains(&visit);
        !step.disturbed || alone && self.sizes.counts(&visit.0, true)
    }
}

/// The steps that count: those after the warm-up that no other program disturbed. Where a size has hardly any, its disturbed ones as well, and then the steps of all sizes less
/// their delays.
pub(super) fn counted(measurements: &[Measurement]) -> impl Iterator<Item = Observation> {
    // Most series have none.
    let counting = measurements.iter().any(|m| m.disturbed).then(|| Counting::of(measurements));
    let whole = counting.as_ref().is_none_or(|counting| counting.sizes.suffice());
    let counts = move |m: &&Measurement| !m.warmup && counting.as_ref().is_none_or(|counting| counting.counts(m));
    measurements.iter().filter(counts).map(move |m| if whole { m.observation } else { less_delay(m) })
}

/// The step without its delay, where that is known.
fn less_delay(step: &Measurement) -> Observation {
    let seen = step.observation;
    let delay = step.delay.filter(|delay| *delay < seen.y);
    Observation { y: seen.y - delay.unwrap_or(0.0), ..seen }
}

/// How many steps were disturbed, where that is worth saying.
pub(super) fn note(series: &Series) -> Option<Note> {
    let steps = || series.measurements.iter().filter(|m| !m.warmup);
    let share = steps().filter(|m| m.disturbed).count() as f64 / steps().count().max(1) as f64;
    if share < WORTH_SAYING {
        return None;
    }
    let counting = Counting::of(&series.measurements);
    let kept = steps().filter(|m| m.disturbed && counting.counts(m)).map(|m| m.observation.x.to_bits());
    let sizes = kept.collect::<BTreeSet<u64>>().len();
    let mut others: Vec<(&String, &usize)> = series.others.iter().collect();
    others.sort_by_key(|(_, processes)| std::cmp::Reverse(**processes));
    let named = others.into_iter().take(NAMED).map(|(name, processes)| (foreign::name(name), *processes));
    Some(Note::Interrupted { share, sizes, programs: named.collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The steps of a visit: seconds, and whether it was disturbed.
    type VisitSteps<'a> = &'a [(f64, bool)];

    /// For each size its visits, one in each block.
    fn series(sizes: &[(f64, &[VisitSteps])]) -> Series {
        let mut measurements: Vec<Measurement> = Vec::new();
        for (x, visits) in sizes {
            for (block, steps) in visits.iter().enumerate() {
                for &(y, disturbed) in *steps {
                    let observation = Observation { block: Some(block as u32), ..Observation::new(*x, y) };
                    measurements.push(Measurement { disturbed, ..observation.into() });
                }
            }
        }
        Series::planted(Vec::new(), measurements)
    }

    fn times(series: &Series, x: f64) -> Vec<f64> {
        series.observations().iter().filter(|seen| seen.x == x).map(|seen| seen.y).collect()
    }

    #[test]
    fn disturbed_steps_do_not_count() {
        let series = series(&[
            (1.0, &[&[(1.0, false), (5.0, true)], &[(1.1, false)], &[(6.0, true)]]),
            // One visit with an undisturbed step is not enough: the fastest of all visits is judged as before.
            (2.0, &[&[(2.0, false), (7.0, true)], &[(8.0, true), (9.0, true)]]),
            (3.0, &[&[(4.0, true)], &[(5.0, true)]]),
        ]);
        assert_eq!(times(&series, 1.0), [1.0, 1.1]);
        assert_eq!(times(&series, 2.0), [2.0, 8.0, 9.0]);
        assert_eq!(times(&series, 3.0), [4.0, 5.0]);
    }

    /// A step with its disturbance and its delay.
    fn delayed(x: f64, block: u32, y: f64, disturbed: bool, delay: f64) -> Measurement {
        let observation = Observation { block: Some(block), ..Observation::new(x, y) };
        Measurement { disturbed, delay: Some(delay), ..observation.into() }
    }

    #[test]
    fn where_a_size_needs_its_disturbed_steps_all_sizes_are_less_their_delays() {
        let quiet = [(0, 1.125), (1, 1.25)].map(|(block, y)| delayed(1.0, block, y, false, 0.125));
        let busy = [(0, 9.0), (1, 8.0)].map(|(block, y)| delayed(2.0, block, y, true, 6.0));
        let both = Series::planted(Vec::new(), [quiet.clone(), busy].concat());
        assert_eq!((times(&both, 1.0), times(&both, 2.0)), (vec![1.0, 1.125], vec![3.0, 2.0]));
        assert_eq!(times(&Series::planted(Vec::new(), quiet.to_vec()), 1.0), [1.125, 1.25]);
    }

    #[test]
    fn interruptions_are_reported_with_their_share_and_their_programs() {
        let quiet = series(&[(1.0, &[&[(1.0, false)], &[(1.0, false)]])]);
        assert_eq!(note(&quiet), None);
        let mut busy = series(&[(1.0, &[&[(1.0, false), (5.0, true)], &[(1.1, false)], &[(6.0, true)]])]);
        busy.others = [("rustc".to_owned(), 2), ("cc1\n".to_owned(), 1)].into();
        let said = note(&busy).expect("half of them").to_string();
        assert_eq!(
            said,
            "another program runs on these processors: 50 % of the steps were interrupted and do not count (`rustc`, 2 processes; `cc1\\n`)"
        );
        let lost = series(&[(1.0, &[&[(5.0, true)], &[(6.0, true)]])]);
        let said = note(&lost).expect("all of them").to_string();
        assert_eq!(
            said,
            "another program runs on these processors: 100 % of the steps were interrupted; at 1 batch size hardly any were not, so all times here \
             are without the waits for a processor. As root, `chrt --rr 1 batchstep run ...` goes before other programs"
        );
    }
}
