//! Which steps count if other programs disturbed some of them, and what is reported about it.

use std::collections::BTreeSet;

use super::{Measurement, Series};
use crate::detect::{self, Candidate, Findings, Jump, Note, Observation, Rejection, Verdict};
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
    let (whole, steps) = those_that_count(measurements);
    steps.into_iter().map(move |m| if whole { m.observation } else { less_delay(m) })
}

/// The same, not less anything; and whether no size needs its disturbed steps.
fn those_that_count(measurements: &[Measurement]) -> (bool, Vec<&Measurement>) {
    // Most series have none.
    let counting = measurements.iter().any(|m| m.disturbed).then(|| Counting::of(measurements));
    let whole = counting.as_ref().is_none_or(|counting| counting.sizes.suffice());
    let counts = |m: &&Measurement| !m.warmup && counting.as_ref().is_none_or(|counting| counting.counts(m));
    (whole, measurements.iter().filter(counts).collect())
}

/// The step without its delay, where that is known.
fn less_delay(step: &Measurement) -> Observation {
    let seen = step.observation;
    let delay = step.delay.filter(|delay| *delay < seen.y);
    Observation { y: seen.y - delay.unwrap_or(0.0), ..seen }
}

/// Which jumps are there in processor time as well, and which only the clock shows. The latter are not proven: they are rejected. `find` searches other times of the same steps.
pub(super) fn judge(
    series: &Series,
    findings: &mut Findings,
    find: impl Fn(&[Observation]) -> Findings,
    settings: &detect::Settings,
) {
    let steps = &series.measurements;
    // What a GPU does, the accounts of processors do not say.
    let on_processors = series.facts.get("device").is_some_and(|device| device == "cpu");
    if !findings.is_judged() || !on_processors || !steps.iter().any(|m| !m.warmup && m.delay.is_some()) {
        return;
    }
    let less: Vec<Observation> = those_that_count(steps).1.into_iter().map(less_delay).collect();
    let absent = detect::absent(&findings.jumps, &less, settings);
    for (jump, absent) in std::mem::take(&mut findings.jumps).into_iter().zip(absent) {
        match absent {
            true => findings.rejected.push(by_the_clock(&jump)),
            false => findings.jumps.push(Jump { verdict: jump.verdict.or(Some(Verdict::Work)), ..jump }),
        }
    }
    if disturbed_share(series) < WORTH_SAYING {
        return;
    }
    // What would be found if nothing were known about other programs.
    let whole: Vec<Observation> = steps.iter().filter(|m| !m.warmup).map(|m| m.observation).collect();
    let mut by_clock = find(&whole).jumps;
    by_clock.retain(|jump| {
        let is_known = findings.jumps.iter().any(|known| is_same(known, jump));
        !is_known && !findings.rejected.iter().any(|known| known.after == jump.after && is_of_others(known))
    });
    let proven = findings.jumps.iter().cloned();
    let absent = detect::absent(&by_clock.iter().cloned().chain(proven).collect::<Vec<Jump>>(), &less, settings);
    findings
        .rejected
        .extend(by_clock.iter().zip(absent).filter(|(_, absent)| *absent).map(|(jump, _)| by_the_clock(jump)));
}

/// Whether two jumps may be one.
fn is_same(a: &Jump, b: &Jump) -> bool {
    a.size * b.size > 0.0 && a.after_low <= b.after_high && b.after_low <= a.after_high
}

fn is_of_others(candidate: &Candidate) -> bool {
    matches!(candidate.reason, Rejection::OtherPrograms { .. })
}

fn by_the_clock(jump: &Jump) -> Candidate {
    Candidate::rejected(jump, Rejection::OtherPrograms { relative: jump.relative })
}

/// The share of the steps after the warm-up that other programs disturbed.
fn disturbed_share(series: &Series) -> f64 {
    let steps = || series.measurements.iter().filter(|m| !m.warmup);
    steps().filter(|m| m.disturbed).count() as f64 / steps().count().max(1) as f64
}

/// How many steps were disturbed, where that is worth saying.
pub(super) fn note(series: &Series) -> Option<Note> {
    let steps = || series.measurements.iter().filter(|m| !m.warmup);
    let share = disturbed_share(series);
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

    /// Steps of a line with a jump of 10 % after 30, in twelve blocks of five steps; `waits(x, block)`: seconds, and whether that is more than its share.
    fn waiting(waits: impl Fn(u32, u32) -> (f64, bool)) -> Series {
        let mut random = crate::random::Rng::new(11);
        let mut steps: Vec<Measurement> = Vec::new();
        for (block, x) in (0..12).flat_map(|block| (1..=50).map(move |x| (block, x))) {
            let (delay, disturbed) = waits(x, block);
            for _ in 0..5 {
                let work = 10.0 + 0.1 * f64::from(x) + if x > 30 { 1.3 } else { 0.0 };
                let step =
                    delayed(f64::from(x), block, work * (1.0 + 0.002 * random.normal()) + delay, disturbed, delay);
                let order = Some(f64::from(50 * block + (x * 37) % 50));
                steps.push(Measurement { observation: Observation { order, ..step.observation }, ..step });
            }
        }
        let facts = [("device".to_owned(), "cpu".to_owned())].into();
        Series { facts, ..Series::planted(Vec::new(), steps) }
    }

    /// The jumps with their verdicts, and where only the clock shows one.
    fn judged(series: &Series) -> (Vec<(f64, Option<Verdict>)>, Vec<f64>) {
        let found = series.find(&detect::Settings::default());
        let by_clock = found.rejected.iter().filter(|one| is_of_others(one));
        (found.jumps.iter().map(|jump| (jump.after, jump.verdict)).collect(), by_clock.map(|one| one.after).collect())
    }

    #[test]
    fn a_jump_is_there_in_processor_time_or_only_by_the_clock() {
        let work = vec![(30.0, Some(Verdict::Work))];
        assert_eq!(judged(&waiting(|_, _| (0.0, false))), (work.clone(), vec![]));
        // Above 20 the steps of ten of twelve visits are held up: they do not count, and only the clock would show a jump.
        let held_up =
            |x: u32, block: u32| if x > 20 && !(x + block).is_multiple_of(6) { (4.0, true) } else { (0.0, false) };
        assert_eq!(judged(&waiting(held_up)), (work.clone(), vec![20.0]));
        // All are: the times of all sizes are without the waits.
        let always = |x: u32, _: u32| if x > 20 { (4.0, true) } else { (0.0, false) };
        assert_eq!(judged(&waiting(always)), (work.clone(), vec![20.0]));
        // Waits that are too short for a step to be disturbed can still make a small jump.
        let little = |x: u32, _: u32| if x > 20 { (0.2, false) } else { (0.0, false) };
        assert_eq!(judged(&waiting(little)), (work, vec![20.0]));
    }

    #[test]
    fn the_accounts_of_processors_do_not_judge_what_another_device_did() {
        let mut series = waiting(|_, _| (0.0, false));
        series.facts.insert("device".to_owned(), "cuda:0".to_owned());
        assert_eq!(judged(&series), (vec![(30.0, None)], vec![]));
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
