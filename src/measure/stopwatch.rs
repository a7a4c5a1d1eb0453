//! The host's monotonic clock.

use std::time::Instant;

/// A stopwatch. It never goes back: [`Instant`] is monotonic, so a clock that is set does not disturb it.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch {
    started: Instant,
}

impl Stopwatch {
    /// Starts now.
    pub fn start() -> Self {
        Self { started: Instant::now() }
    }

    /// Seconds since the start.
    pub fn elapsed(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }
}
