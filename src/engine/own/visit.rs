//! How long a process may stay silent within a visit.

use std::time::{Duration, Instant};

/// A visit that has begun. When it has lasted twice its limit, the run ends (see `run/watchdog.rs`): a process that hangs must be ended before, so that
/// the other sizes continue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Visit {
    begun: Instant,
    most: Duration,
}

/// How many times its limit a visit may take.
const MOST: f64 = 1.5;
/// Longer limits, of more than ten years, count as none.
const NEVER_S: f64 = 3.15e8;

impl Visit {
    /// It begins now; `limit_s` is the run's limit of a visit.
    pub fn begin(limit_s: f64) -> Self {
        Self { begun: Instant::now(), most: Duration::from_secs_f64(MOST * limit_s.clamp(0.0, NEVER_S)) }
    }

    /// How long to wait for the next answer, `usual` at the longest. There is always some time: this process may have been stopped for a while.
    pub fn left(&self, usual: Duration) -> Duration {
        self.left_after(self.begun.elapsed(), usual)
    }

    fn left_after(&self, elapsed: Duration, usual: Duration) -> Duration {
        usual.min(self.most.saturating_sub(elapsed).max(self.most / 6))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hangs_is_ended_before_twice_the_limit() {
        let seconds = Duration::from_secs;
        let left = |limit_s: f64, elapsed: u64| Visit::begin(limit_s).left_after(seconds(elapsed), seconds(300));
        assert_eq!(left(20.0, 0), seconds(30));
        // A visit that goes well is over at 20 s, but for its last step.
        assert_eq!(left(20.0, 20), seconds(10));
        assert_eq!(left(20.0, 1000), seconds(5));
        assert_eq!(left(600.0, 0), seconds(300));
        assert_eq!(left(600.0, 700), seconds(200));
        assert_eq!(left(f64::MAX, 0), seconds(300));
    }
}
