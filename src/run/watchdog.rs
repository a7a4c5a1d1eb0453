//! A time limit for what can't be interrupted: a thread that notices when a step never ends.
//!
//! A step that waits inside a driver can't be stopped from its own process. So the limit has two stages: a visit whose steps
//! do end, but late, is cut short by the loop itself after `visit_limit`; one whose step does not end within twice that is
//! told here, from outside.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::store::StepRow;

/// The visit under way, if there is one.
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

/// Longer limits than this many seconds are no limit: ten years, which an [`Instant`] can still hold.
const NEVER_S: f64 = 3.15e8;

/// Runs `work`; while it stays in one visit for more than twice `limit_s`, `hung` is called once with that visit's row.
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

/// Lets the thread end, also where the work panics.
struct Close<'a>(&'a Watchdog);

impl Drop for Close<'_> {
    fn drop(&mut self) {
        self.0.lock().closed = true;
        self.0.changed.notify_one();
    }
}

impl Watchdog {
    /// A visit begins; `row` and `error` say what it was if it never ends.
    ///
    /// The thread is not woken: it looks at least once in each span of the limit, so no deadline is passed over, and no
    /// visit is disturbed.
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

    fn told(limit_s: f64, visit: Duration) -> bool {
        let told = AtomicBool::new(false);
        let work = |watchdog: &Watchdog| {
            watchdog.arm(StepRow::default(), Error::engine("late"));
            std::thread::sleep(visit);
            watchdog.disarm();
        };
        guarding(limit_s, work, |_, _| told.store(true, Ordering::Relaxed));
        told.into_inner()
    }

    #[test]
    fn a_visit_that_does_not_end_is_told_and_one_that_ends_is_not() {
        assert!(told(0.01, Duration::from_millis(200)));
        assert!(!told(30.0, Duration::from_millis(1)));
        assert!(!told(f64::MAX, Duration::ZERO));
    }
}
