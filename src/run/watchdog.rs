//! A time limit for steps that cannot be interrupted.
//!
//! A step that waits inside a driver cannot be stopped from its own process. So the limit has two stages: a visit whose
//! steps end late is cut short by the loop itself after `visit_limit`; a step that has not ended after twice that limit is
//! reported by a second thread.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::store::StepRow;

/// The current visit, if there is one.
#[derive(Default)]
struct State {
    armed: Option<(Instant, StepRow, Error)>,
    closed: bool,
}

pub(super) struct Watchdog {
    state: Mutex<State>,
    changed: Condvar,
    limit: Duration,
}

/// Limits longer than this (ten years) count as none; an [`Instant`] can still represent it.
const NEVER_S: f64 = 3.15e8;

/// Runs `work`; when one of its visits lasts longer than twice `limit_s`, `hung` is called once, with that visit's row.
pub(super) fn guarding<T>(
    limit_s: f64,
    work: impl FnOnce(&Watchdog) -> T,
    hung: impl FnOnce(&StepRow, &Error) + Send,
) -> T {
    let limit = Duration::from_secs_f64(2.0 * limit_s.clamp(0.0, NEVER_S));
    let watchdog = Watchdog { state: Mutex::default(), changed: Condvar::new(), limit };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            if let Some((row, error)) = watchdog.wait() {
                hung(&row, &error);
            }
        });
        let close = Close(&watchdog);
        let result = work(&watchdog);
        drop(close);
        result
    })
}

/// Ends the thread, also when the work panics.
struct Close<'a>(&'a Watchdog);

impl Drop for Close<'_> {
    fn drop(&mut self) {
        self.0.lock().closed = true;
        self.0.changed.notify_one();
    }
}

impl Watchdog {
    /// A visit begins; `row` and `error` are what is reported if it never ends.
    ///
    /// The thread is not woken, so that no visit is disturbed: it wakes at least once per limit by itself and so misses no
    /// deadline.
    pub fn arm(&self, row: StepRow, error: Error) {
        self.lock().armed = Some((Instant::now() + self.limit, row, error));
    }

    /// The visit has ended.
    pub fn disarm(&self) {
        self.lock().armed = None;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a visit that outlasts the limit; `None` where the run ends first.
    fn wait(&self) -> Option<(StepRow, Error)> {
        let mut state = self.lock();
        while !state.closed {
            let left = state.armed.as_ref().map(|(end, ..)| end.saturating_duration_since(Instant::now()));
            match left {
                Some(Duration::ZERO) => return state.armed.take().map(|(_, row, error)| (row, error)),
                left => {
                    let pause = left.unwrap_or(self.limit);
                    state = self.changed.wait_timeout(state, pause).unwrap_or_else(PoisonError::into_inner).0;
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    fn reported(limit_s: f64, visit: Duration) -> bool {
        let reported = AtomicBool::new(false);
        let work = |watchdog: &Watchdog| {
            watchdog.arm(StepRow::default(), Error::engine("late"));
            std::thread::sleep(visit);
            watchdog.disarm();
        };
        guarding(limit_s, work, |_, _| reported.store(true, Ordering::Relaxed));
        reported.into_inner()
    }

    #[test]
    fn a_visit_that_does_not_end_is_reported_and_one_that_ends_is_not() {
        assert!(reported(0.01, Duration::from_millis(200)));
        assert!(!reported(30.0, Duration::from_millis(1)));
        assert!(!reported(f64::MAX, Duration::ZERO));
    }
}
