//! When a visit's warm-up has ended: by test, not by count.
//!
//! A visit runs until its last `k` steps no longer show a trend; the steps before those are warm-up. Two tests complement
//! each other: one finds a first step that is much longer than the rest (an algorithm chosen, memory touched for the first
//! time), the other a steady fall over all of them (clocks and caches coming up).

use crate::stats::quantile::median;
use crate::stats::robust::mad;

/// The visit gives up waiting for steadiness after this many times `k` steps, plus [`EXTRA_STEPS`]; its last `k` steps
/// then count, and the visit is reported as unsteady.
pub const LIMIT_FACTOR: usize = 3;
/// See [`LIMIT_FACTOR`].
pub const EXTRA_STEPS: usize = 3;

/// A first step this much above the others, relative, is not steady, however small their spread.
const FIRST_STEP_SHARE: f64 = 0.05;
/// ... or this many median absolute deviations (scaled to a standard deviation) above them, where that is more.
const FIRST_STEP_DEVIATIONS: f64 = 5.0;

/// What to do after each step of a visit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Run another step.
    Step,
    /// The last `k` steps count.
    Done {
        /// False where the limit came before steadiness.
        steady: bool,
    },
}

/// Judges a visit: `times` are its steps so far, `k >= 1` the steps that shall count, `at_least` the fewest warm-up steps
/// that this visit needs in any case (a network's first visit in a process needs one: nothing of it was warm).
pub fn next(times: &[f64], k: usize, at_least: usize) -> Next {
    if times.len() < k + at_least {
        return Next::Step;
    }
    if is_steady(&times[times.len() - k..]) {
        return Next::Done { steady: true };
    }
    if times.len() >= LIMIT_FACTOR * k + EXTRA_STEPS { Next::Done { steady: false } } else { Next::Step }
}

/// True if neither test objects. A single step can't be judged, so it counts as steady.
fn is_steady(window: &[f64]) -> bool {
    let [first, rest @ ..] = window else { return true };
    if rest.is_empty() {
        return true;
    }
    let center = median(&mut rest.to_vec());
    let deviation = 1.4826 * mad(rest, center);
    let stands_out = first - center > (FIRST_STEP_SHARE * center).max(FIRST_STEP_DEVIATIONS * deviation);
    !stands_out && !falls(window)
}

/// The test of Mann (1945) and Kendall (1975) for a monotonic trend, one-sided at 5 % by the normal approximation with
/// continuity correction; below four values it can't reject.
fn falls(window: &[f64]) -> bool {
    let n = window.len() as f64;
    let mut s = 0.0;
    for (i, earlier) in window.iter().enumerate() {
        for later in &window[i + 1..] {
            s += f64::from(i8::from(later > earlier) - i8::from(later < earlier));
        }
    }
    let sd = (n * (n - 1.0) * (2.0 * n + 5.0) / 18.0).sqrt();
    window.len() >= 4 && (s + 1.0) / sd < -1.645
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flat_visit_needs_no_warm_up() {
        assert_eq!(next(&[1.0, 1.01, 0.99, 1.0, 1.005], 5, 0), Next::Done { steady: true });
        assert_eq!(next(&[1.0, 1.01], 5, 0), Next::Step);
    }

    #[test]
    fn a_slow_first_step_is_warm_up() {
        let mut times = vec![3.0, 1.0, 1.01];
        assert_eq!(next(&times, 3, 0), Next::Step);
        times.push(0.99);
        assert_eq!(next(&times, 3, 0), Next::Done { steady: true });
    }

    #[test]
    fn a_steady_fall_is_warm_up() {
        // Kendall's S is -10 of 10 pairs: z = -9 / sqrt(16.67) = -2.20.
        assert_eq!(next(&[1.04, 1.03, 1.02, 1.01, 1.0], 5, 0), Next::Step);
        // S = -6 of 10: z = -5 / 4.08 = -1.22, no trend.
        assert_eq!(next(&[1.04, 1.01, 1.03, 1.02, 1.0], 5, 0), Next::Done { steady: true });
    }

    #[test]
    fn waiting_has_a_limit() {
        let falling: Vec<f64> = (0..40).map(|i| 2.0 - 0.04 * f64::from(i)).collect();
        assert_eq!(next(&falling[..17], 5, 0), Next::Step);
        assert_eq!(next(&falling[..18], 5, 0), Next::Done { steady: false });
    }

    #[test]
    fn a_first_visit_has_a_warm_up_step_even_by_itself() {
        assert_eq!(next(&[1.0], 1, 1), Next::Step);
        assert_eq!(next(&[1.0, 1.0], 1, 1), Next::Done { steady: true });
        assert_eq!(next(&[1.0], 1, 0), Next::Done { steady: true });
    }
}
