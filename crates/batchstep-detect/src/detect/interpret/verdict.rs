//! Work or clock: is a jump in seconds also there in cycles?
//!
//! Cycles are step time times clock. A device that does more takes more of both; a device that ticks more slowly takes more
//! seconds for the same cycles. The rule follows nvbench's robust comparison: a jump that is neither shown nor excluded
//! in cycles is ambiguous, and that is the default. Without a clock there is no verdict.

use crate::detect::findings::{Jump, Verdict};
use crate::detect::model::candidates::{CandidateTerms, Term};
use crate::detect::model::fit::Model;
use crate::detect::model::neighbourhood;
use crate::detect::model::problem::Problem;
use crate::detect::prepare::factor;
use crate::detect::prepare::prepared::Prepared;
use crate::detect::prepare::reduce::Reduced;
use crate::detect::prepare::scaled::Scaled;

/// Standard errors that a jump must reach in cycles to be work.
const CLEAR: f64 = 4.0;
/// The share of the relative size in seconds that cycles must show, or must exclude.
const THERE: f64 = 0.5;

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
    if jumps.is_empty() {
        return;
    }
    let scaled = Scaled::new(cycles);
    let candidates = CandidateTerms::new(x);
    let problem = Problem::new(&candidates, &scaled.y, &scaled.error, scaled.floor);
    let places: Vec<usize> = jumps.iter().map(|j| x.partition_point(|v| *v < j.after)).collect();
    for (jump, &k) in jumps.iter_mut().zip(&places) {
        jump.verdict = Some(verdict(&problem, &scaled.y, &places, k, jump.relative));
    }
}

/// The verdict on the jump after `k` from the cycles near it, the jumps at `places` being known.
fn verdict(problem: &Problem, y: &[f64], places: &[usize], k: usize, in_seconds: f64) -> Verdict {
    let steps: Vec<usize> = places
        .iter()
        .map(|&k| problem.candidates.index(Term::Step(k)))
        .filter(|&j| problem.candidates.allowed(j))
        .collect();
    let model = Model::new(problem, &steps);
    let Some(local) = neighbourhood::local_size(&model, y, k) else { return Verdict::Ambiguous };
    let (size, error) = (local.size / y[k], local.error / y[k]);
    let expected = THERE * in_seconds.abs();
    let along = size * in_seconds.signum();
    if along > CLEAR * error && along > expected {
        Verdict::Work
    } else if along + CLEAR * error < expected {
        Verdict::Clock
    } else {
        Verdict::Ambiguous
    }
}
