//! The host's monotonic clock.

use std::time::Instant;

/// A stopwatch with laps. It never goes back: [`Instant`] is monotonic, so a clock that is set does not disturb it.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch {
    started: Instant,
    lap: Instant,
}

impl Stopwatch {
    /// Starts now.
    pub fn start() -> Self {
        let now = Instant::now();
        Self { started: now, lap: now }
    }

    /// Seconds since the last lap, or since the start; begins the next lap.
    pub fn lap(&mut self) -> f64 {
        let now = Instant::now();
        let seconds = now.duration_since(self.lap).as_secs_f64();
        self.lap = now;
        seconds
    }

    /// Seconds since the start.
    pub fn elapsed(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }
}
