//! Which steps of a visit other programs disturbed, and when the visit has enough of the others.
//!
//! A step counts as disturbed where one of its threads waited for a processor, because of another program, for more than [`SHARE`] of the
//! step's time. Such steps are stored and do not count; the visit goes on until it has its steps, or has given up.

use std::collections::BTreeMap;

use super::warmup::{self, EXTRA_STEPS, LIMIT_FACTOR, Next};

/// The share of a step's time that its longest interruption may take. In `examples/tables/interference_share.rs`, beside a program that takes the
/// processor for a millisecond every 20 ms, steps of 30 ms are 0.4 % too long with it and 1.2 % with 5 %; with 1 % a visit takes a fifth more
/// steps. Shorter steps are interrupted for more than half of their time or not at all, and any share finds that.
pub const SHARE: f64 = 0.02;

/// Shorter steps need no rest: many of them fit between two interruptions. `benches/meeting.rs`: beside eight programs, two threads had 191 undisturbed steps of 0.2 ms in a second without
/// resting and 83 with it, but 18 and 69 of 0.5 ms, and 6 and 58 of 1 ms.
const SHORT_S: f64 = 0.3e-3;

/// Longer steps need none either: a thread that has slept keeps its processor until a tick of the kernel's clock, which comes after 4 ms at 250 a second.
const LONG_S: f64 = 4e-3;

/// A visit ends after this number of disturbed steps if it has no other: beside a program that never waits, a step that is longer than a time slice is always disturbed. Beside eight of
/// them, steps of 5 ms take 60, and more visits of fewer steps say more.
const HOPELESS: usize = 2;

/// The fewest visits with undisturbed steps from which on a batch size does without its other visits.
const ENOUGH: usize = 2;

/// Which visits count of those to each batch size. One that had no undisturbed step counts only where its batch size has too few others.
#[derive(Clone, Debug)]
pub struct Undisturbed<K>(BTreeMap<K, [usize; 2]>);

impl<K: Ord> Undisturbed<K> {
    /// From the batch size of each visit, and whether all its steps were disturbed.
    pub fn of(visits: impl Iterator<Item = (K, bool)>) -> Self {
        let mut count: BTreeMap<K, [usize; 2]> = BTreeMap::new();
        visits.for_each(|(size, disturbed)| count.entry(size).or_default()[usize::from(disturbed)] += 1);
        Self(count)
    }

    /// Whether a visit, or a step of it, counts.
    pub fn counts(&self, size: &K, disturbed: bool) -> bool {
        !disturbed || self.0.get(size).is_none_or(|[undisturbed, _]| *undisturbed < ENOUGH)
    }

    /// Whether no batch size needs its disturbed visits. Their times less their delays are estimates, and not to be compared with whole times of other sizes.
    pub fn suffice(&self) -> bool {
        self.0.values().all(|[undisturbed, disturbed]| *undisturbed >= ENOUGH || *disturbed == 0)
    }
}

/// The steps of a visit so far.
#[derive(Clone, Debug, Default)]
pub struct Steps {
    times_s: Vec<f64>,
    disturbed: Vec<Option<bool>>,
    /// The shortest time of a step less its interruption.
    least_s: Option<f64>,
}

/// Where the steps that count begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    pub counts_from: usize,
    /// False where the limit came before steadiness.
    pub steady: bool,
}

impl Steps {
    /// Adds a step, and how long another program held it up; `None`: not known. A wait that is longer than the step began in the steps before
    /// it: the kernel counts it when it ends.
    pub fn push(&mut self, step_s: f64, interrupted_s: Option<f64>) {
        self.times_s.push(step_s);
        self.disturbed.push(interrupted_s.map(|_| false));
        let mut rest = interrupted_s.unwrap_or(0.0);
        self.least_s = Some(self.least_s.unwrap_or(f64::INFINITY).min(step_s - rest));
        for (time_s, disturbed) in self.times_s.iter().zip(&mut self.disturbed).rev() {
            if rest <= SHARE * time_s {
                break;
            }
            *disturbed = disturbed.map(|_| true);
            rest -= time_s;
        }
    }

    /// Whether other programs hold up more than a chance step, so that the threads should rest before each that follows. `before`: whether that was so in the visit before.
    pub fn is_held_up(&self, before: bool) -> bool {
        let disturbed = self.disturbed.iter().filter(|step| **step == Some(true)).count();
        let length = self.least_s.unwrap_or(0.0);
        disturbed > usize::from(!before) && (SHORT_S..LONG_S).contains(&length)
    }

    /// Whether any step was not disturbed, as far as is known.
    pub fn any_undisturbed(&self) -> bool {
        self.disturbed.iter().any(|step| *step != Some(true))
    }

    /// For each step whether it was disturbed; `None`: not known.
    pub fn disturbed(&self) -> &[Option<bool>] {
        &self.disturbed
    }

    /// After a step: whether the visit is over. `k >= 1` undisturbed steps shall count, after `at_least` others.
    pub fn end(&self, k: usize, at_least: usize) -> Option<End> {
        let quiet: Vec<usize> = (0..self.times_s.len()).filter(|&place| self.disturbed[place] != Some(true)).collect();
        let times: Vec<f64> = quiet.iter().map(|&place| self.times_s[place]).collect();
        if let Next::Done { steady } = warmup::next(&times, k, at_least) {
            return Some(End { counts_from: quiet[quiet.len() - k], steady });
        }
        let patience = if quiet.is_empty() { HOPELESS } else { LIMIT_FACTOR * k + EXTRA_STEPS };
        if self.times_s.len() - quiet.len() < patience {
            return None;
        }
        // Its steps count from the first undisturbed one on. If none was undisturbed, all count: each began with the caches of other programs, so that none was warm.
        let counts_from = quiet.get(at_least).map_or(0, |&first| first.min(self.times_s.len().saturating_sub(k)));
        Some(End { counts_from, steady: true })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps of a millisecond, each with the milliseconds of its interruption.
    fn steps(interrupted: &[f64]) -> Steps {
        let mut steps = Steps::default();
        interrupted.iter().for_each(|&ms| steps.push(1e-3 + 1e-3 * ms, Some(1e-3 * ms)));
        steps
    }

    #[test]
    fn a_step_is_disturbed_where_its_wait_is_more_than_the_share() {
        let seen = steps(&[0.0, 0.01, 0.06, 0.0]);
        assert_eq!(seen.disturbed(), [Some(false), Some(false), Some(true), Some(false)]);
        let mut unknown = Steps::default();
        unknown.push(1.0, None);
        assert_eq!(unknown.disturbed(), [None]);
    }

    #[test]
    fn one_disturbed_step_may_be_chance() {
        assert!(!steps(&[0.0, 0.5]).is_held_up(false));
        assert!(steps(&[0.0, 0.5, 0.0, 0.5, 0.0]).is_held_up(false));
        // It is none where the visit before had several.
        assert!(steps(&[0.0, 0.5]).is_held_up(true));
        assert!(!steps(&[0.0, 0.0]).is_held_up(true));
    }

    /// Many of the short ones fit between two interruptions, and none of the long ones does.
    #[test]
    fn short_and_long_steps_need_no_rest() {
        for (own_s, rests) in [(0.2e-3, false), (0.4e-3, true), (3.9e-3, true), (5e-3, false)] {
            let mut seen = Steps::default();
            (0..4).for_each(|_| seen.push(2.0 * own_s, Some(own_s)));
            assert_eq!(seen.is_held_up(true), rests, "{own_s}");
        }
    }

    #[test]
    fn a_wait_that_is_longer_than_its_step_began_in_the_step_before() {
        let mut seen = steps(&[0.0, 0.0, 0.0]);
        // 1.5 ms of waiting were counted in a step of 1 ms: 0.5 ms of them belong to the step before.
        seen.push(1e-3, Some(1.5e-3));
        assert_eq!(seen.disturbed(), [Some(false), Some(false), Some(true), Some(true)]);
    }

    #[test]
    fn a_visit_continues_until_it_has_its_steps() {
        assert_eq!(steps(&[0.0, 0.0, 0.0]).end(3, 0), Some(End { counts_from: 0, steady: true }));
        assert_eq!(steps(&[0.0, 0.5, 0.0]).end(3, 0), None);
        assert_eq!(steps(&[0.0, 0.5, 0.0, 0.9, 0.0]).end(3, 0), Some(End { counts_from: 0, steady: true }));
        assert_eq!(steps(&[0.0, 0.5, 0.0, 0.9, 0.0]).end(2, 1), Some(End { counts_from: 2, steady: true }));
    }

    /// For k = 2 the patience is nine disturbed steps.
    #[test]
    fn a_visit_that_does_not_get_its_steps_gives_up_and_keeps_those_that_it_has() {
        let mut interrupted = [0.5; 10];
        interrupted[1] = 0.0;
        assert_eq!(steps(&interrupted[..9]).end(2, 0), None);
        assert_eq!(steps(&interrupted).end(2, 0), Some(End { counts_from: 1, steady: true }));
        // The single quiet step is the requested warm-up.
        assert_eq!(steps(&interrupted).end(2, 1), Some(End { counts_from: 0, steady: true }));
    }

    #[test]
    fn a_visit_all_of_whose_steps_are_disturbed_is_short() {
        assert_eq!(steps(&[0.5]).end(5, 0), None);
        assert_eq!(steps(&[0.5; 2]).end(5, 0), Some(End { counts_from: 0, steady: true }));
        assert!(!steps(&[0.5; 2]).any_undisturbed());
    }

    #[test]
    fn disturbed_visits_count_where_a_size_has_too_few_others() {
        let undisturbed = Undisturbed::of([(16, false), (16, false), (16, true), (17, false), (17, true)].into_iter());
        for (size, counts) in [(16, false), (17, true), (18, true)] {
            assert!(undisturbed.counts(&size, false));
            assert_eq!(undisturbed.counts(&size, true), counts, "{size}");
        }
        assert!(!undisturbed.suffice());
        // A size with a single visit, which nothing disturbed, needs no other.
        assert!(Undisturbed::of([(16, false), (16, false), (16, true), (17, false)].into_iter()).suffice());
    }

    #[test]
    fn without_accounts_a_visit_ends_as_its_times_say() {
        let mut seen = Steps::default();
        for time_s in [3.0, 1.0, 1.01] {
            seen.push(time_s, None);
            assert_eq!(seen.end(3, 0), None);
        }
        seen.push(0.99, None);
        assert_eq!(seen.end(3, 0), Some(End { counts_from: 1, steady: true }));
    }
}
