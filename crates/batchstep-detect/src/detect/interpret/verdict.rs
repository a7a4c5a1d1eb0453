//! Is a jump also there in another reading of the same steps?
//!
//! In cycles, step time times clock: a device that does more takes more of both; a device that ticks more slowly takes more
//! seconds for the same cycles. The rule follows nvbench's robust comparison: a jump that is neither shown nor excluded
//! in cycles is ambiguous, and that is the default. Without a clock there is no verdict.

use crate::detect::findings::{Jump, Verdict};
use crate::detect::input::{FEWEST_POINTS, Observation, Settings};
use crate::detect::model::candidates::{CandidateTerms, Term};
use crate::detect::model::fit::Model;
use crate::detect::model::neighbourhood;
use crate::detect::model::problem::Problem;
use crate::detect::prepare::prepared::Prepared;
use crate::detect::prepare::reduce::Reduced;
use crate::detect::prepare::scaled::Scaled;
use crate::detect::prepare::{factor, nodes};

/// Standard errors that a jump must reach in the other reading to be there.
const CLEAR: f64 = 4.0;
/// The share of the relative size that the other reading must show, or must exclude.
const THERE: f64 = 0.5;
/// Points on each side that are looked at: the local lines are shorter.
const BESIDE: usize = 64;

/// The cycles of each x, if each observation has a clock.
pub(crate) fn cycles(series: &Prepared) -> Option<Reduced> {
    let clock = series.clock.as_ref()?;
    let mut cycles = series.clone();
    for (log, hz) in cycles.log.iter_mut().zip(clock) {
        *log += hz.ln();
    }
    Some(factor::without(&cycles).reduced)
}

/// Gives each jump its verdict, from the cycles of each `x`.
pub(crate) fn judge(x: &[f64], cycles: &Reduced, jumps: &mut [Jump]) {
    let there = presence(x, cycles, jumps);
    for (jump, there) in jumps.iter_mut().zip(there) {
        jump.verdict = Some(match there {
            Some(true) => Verdict::Work,
            Some(false) => Verdict::Clock,
            None => Verdict::Ambiguous,
        });
    }
}

/// For each of `jumps`, whether it is clearly absent in `second`, another reading of the same steps; false where that has no points beside it. The lines on both sides of one end at the
/// others.
pub fn absent(jumps: &[Jump], second: &[Observation], settings: &Settings) -> Vec<bool> {
    let mut series = Prepared::new(second);
    if series.x.len() < FEWEST_POINTS || jumps.is_empty() {
        return vec![false; jumps.len()];
    }
    nodes::subtract(&mut series, &settings.nodes);
    let reduced = factor::without(&series).reduced;
    let is_absent = |jump: &Jump| {
        let place = series.x.binary_search_by(|x| x.total_cmp(&jump.after)).ok()?;
        let range = place.saturating_sub(BESIDE)..(place + BESIDE).min(series.x.len());
        let x = &series.x[range.clone()];
        let beside: Vec<Jump> = jumps.iter().filter(|other| x[..x.len() - 1].contains(&other.after)).cloned().collect();
        let own = beside.iter().position(|other| other.after == jump.after)?;
        presence(x, &reduced.part(&range), &beside)[own]
    };
    jumps.iter().map(|jump| is_absent(jump) == Some(false)).collect()
}

/// For each jump whether it is in another reading of each `x`; `None` where that shows neither.
fn presence(x: &[f64], other: &Reduced, jumps: &[Jump]) -> Vec<Option<bool>> {
    if jumps.is_empty() {
        return Vec::new();
    }
    let scaled = Scaled::new(other);
    let candidates = CandidateTerms::new(x);
    let problem = Problem::new(&candidates, &scaled.y, &scaled.error, scaled.floor);
    let places: Vec<usize> = jumps.iter().map(|j| x.partition_point(|v| *v < j.after)).collect();
    let there = |(jump, &k): (&Jump, &usize)| is_there(&problem, &scaled.y, &places, k, jump.relative);
    jumps.iter().zip(&places).map(there).collect()
}

/// Whether the points near it show the jump after `k`, the jumps at `places` being known.
fn is_there(problem: &Problem, y: &[f64], places: &[usize], k: usize, relative: f64) -> Option<bool> {
    let steps: Vec<usize> = places
        .iter()
        .map(|&k| problem.candidates.index(Term::Step(k)))
        .filter(|&j| problem.candidates.allowed(j))
        .collect();
    let local = neighbourhood::local_size(&Model::new(problem, &steps), y, k)?;
    let (size, error) = (local.size / y[k], local.error / y[k]);
    let expected = THERE * relative.abs();
    let along = size * relative.signum();
    if along > CLEAR * error && along > expected {
        Some(true)
    } else if along + CLEAR * error < expected {
        Some(false)
    } else {
        None
    }
}
