//! What measuring costs on this machine: reported with each run, never subtracted.

use std::hint::black_box;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::stats::quantile::median;

/// Costs in seconds, each the median of many repetitions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// Starting and reading the stopwatch around nothing.
    pub empty_stopwatch_s: f64,
    /// The smallest difference above zero that the host clock shows.
    pub clock_resolution_s: f64,
    /// One reading of the device's covariates.
    pub covariates_s: f64,
}

impl Calibration {
    /// Measures all of it; takes about 10 ms. `read_covariates` is one reading as the run makes it beside each visit.
    pub fn measure(mut read_covariates: impl FnMut()) -> Self {
        let mut time = || {
            let start = Instant::now();
            read_covariates();
            start.elapsed().as_secs_f64()
        };
        Self {
            empty_stopwatch_s: median(
                &mut (0..1001).map(|_| black_box(Instant::now()).elapsed().as_secs_f64()).collect::<Vec<_>>(),
            ),
            clock_resolution_s: (0..1001).map(|_| tick()).fold(f64::INFINITY, f64::min),
            covariates_s: median(&mut (0..5).map(|_| time()).collect::<Vec<_>>()),
        }
    }
}

fn tick() -> f64 {
    let start = Instant::now();
    loop {
        let seconds = start.elapsed().as_secs_f64();
        if seconds > 0.0 {
            return seconds;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_calibration_is_positive_and_knows_a_slow_reading() {
        let sleep = || std::thread::sleep(std::time::Duration::from_millis(2));
        let calibration = Calibration::measure(sleep);
        assert!(calibration.covariates_s >= 0.002);
        assert!(calibration.clock_resolution_s > 0.0);
        assert!(calibration.empty_stopwatch_s >= 0.0);
    }
}
