//! A time limit for steps that cannot be interrupted.
//!
//! A step that waits inside a driver cannot be stopped from its own process. So the limit has two stages: the loop itself cuts
//! a visit short after `visit_limit` if its steps end late, and a second thread reports a step that has not ended after twice that
//! limit. Time in which the process was stopped, by SIGSTOP or by a scheduler that suspended its job, counts for neither: the
//! second thread recognises it by a sleep that lasted far longer than requested.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::store::StepRow;

struct WatchdogState {
    armed: Option<Armed>,
    closed: bool,
    /// When the thread fell asleep, and for how long it asked.
    asleep: (Instant, Duration),
    /// How long the process stood still during the current visit.
    stopped: Duration,
}

/// The current visit, and the report on it after `end`.
struct Armed {
    end: Instant,
    row: StepRow,
    error: Error,
}

pub(super) struct Watchdog {
    state: Mutex<WatchdogState>,
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
    let asleep = (Instant::now(), limit);
    let state = WatchdogState { armed: None, closed: false, asleep, stopped: Duration::ZERO };
    let watchdog = Watchdog { state: Mutex::new(state), changed: Condvar::new(), limit };
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
    /// The thread is not woken, so that no visit is disturbed: it wakes several times per limit by itself and so misses no
    /// deadline.
    pub fn arm(&self, row: StepRow, error: Error) {
        let mut state = self.lock();
        state.stopped = Duration::ZERO;
        state.armed = Some(Armed { end: Instant::now() + self.limit, row, error });
    }

    /// The visit has ended.
    pub fn disarm(&self) {
        self.lock().armed = None;
    }

    /// Seconds of the current visit in which the process stood still.
    pub fn stopped_s(&self) -> f64 {
        let mut state = self.lock();
        // After a stop the caller may run before the thread does.
        state.take_out_a_stop(Instant::now(), self.tick());
        state.stopped.as_secs_f64()
    }

    fn lock(&self) -> MutexGuard<'_, WatchdogState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The longest sleep of the thread. A stop shorter than twice this may count as time of the visit.
    fn tick(&self) -> Duration {
        self.limit / 8
    }

    /// Waits for a visit that outlasts the limit; `None` where the run ends first.
    fn wait(&self) -> Option<(StepRow, Error)> {
        let mut state = self.lock();
        while !state.closed {
            let now = Instant::now();
            state.take_out_a_stop(now, self.tick());
            let left = state.armed.as_ref().map(|armed| armed.end.saturating_duration_since(now));
            if left == Some(Duration::ZERO) {
                return state.armed.take().map(|Armed { row, error, .. }| (row, error));
            }
            let pause = left.unwrap_or(Duration::MAX).min(self.tick());
            state.asleep = (now, pause);
            state = self.changed.wait_timeout(state, pause).unwrap_or_else(PoisonError::into_inner).0;
        }
        None
    }
}

impl WatchdogState {
    /// Where the thread has slept longer than it asked for by more than `tick`: the visit gets that time again.
    fn take_out_a_stop(&mut self, now: Instant, tick: Duration) {
        let (since, asked) = self.asleep;
        let slept = now.saturating_duration_since(since);
        if slept > asked.saturating_add(tick) {
            self.stopped += slept;
            if let Some(armed) = &mut self.armed {
                armed.end += slept;
            }
        }
        self.asleep.0 = now;
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
            let begun = Instant::now();
            while begun.elapsed() < visit && !reported.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(1));
            }
            watchdog.disarm();
        };
        guarding(limit_s, work, |_, _| reported.store(true, Ordering::Relaxed));
        reported.into_inner()
    }

    #[test]
    fn a_visit_that_does_not_end_is_reported_and_one_that_ends_is_not() {
        assert!(reported(0.01, Duration::from_secs(60)));
        assert!(!reported(30.0, Duration::from_millis(1)));
        assert!(!reported(f64::MAX, Duration::ZERO));
    }

    #[test]
    fn time_in_which_the_process_stood_still_is_no_time_of_the_visit() {
        let seconds = Duration::from_secs;
        let (begun, tick) = (Instant::now(), seconds(1));
        let armed = Armed { end: begun + seconds(8), row: StepRow::default(), error: Error::engine("late") };
        let asleep = (begun, tick);
        let mut state = WatchdogState { armed: Some(armed), closed: false, asleep, stopped: Duration::ZERO };
        let mut at = |second: u64| {
            state.take_out_a_stop(begun + seconds(second), tick);
            (state.stopped.as_secs(), state.armed.as_ref().map(|armed| (armed.end - begun).as_secs()))
        };
        // A second late, as on a busy machine; then a stop of 100 seconds; then on time.
        assert_eq!(at(2), (0, Some(8)));
        assert_eq!(at(102), (100, Some(108)));
        assert_eq!(at(103), (100, Some(108)));
    }
}
