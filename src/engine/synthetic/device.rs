//! The simulated device of a known truth: it reports the clock of the truth and nothing else.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::device::{Covariates, Device, throttle};

/// The clock that the engine sets and the device reads, as the bits of an f64; 0 before the first step.
#[derive(Clone, Debug, Default)]
pub(super) struct Gauge {
    clock_hz: Arc<AtomicU64>,
    held: Arc<AtomicU64>,
}

impl Gauge {
    pub fn set(&self, clock_hz: f64, held_down: bool) {
        self.clock_hz.store(clock_hz.to_bits(), Ordering::Relaxed);
        self.held.store(u64::from(held_down), Ordering::Relaxed);
    }
}

#[derive(Debug)]
pub struct SyntheticDevice {
    pub(super) gauge: Gauge,
    /// Its clock is a GPU's, not a CPU's.
    pub(super) gpu: bool,
}

impl Device for SyntheticDevice {
    fn read(&mut self) -> Covariates {
        let clock = Some(f64::from_bits(self.gauge.clock_hz.load(Ordering::Relaxed))).filter(|hz| *hz > 0.0);
        let held = self.gauge.held.load(Ordering::Relaxed) != 0;
        let reason = if self.gpu { "sw_power_cap" } else { throttle::CPU_THERMAL };
        Covariates {
            sm_clock_hz: clock.filter(|_| self.gpu),
            cpu_clock_hz: clock.filter(|_| !self.gpu),
            throttle_reasons: clock.map(|_| if held { reason } else { throttle::NONE }.to_string()),
            ..Covariates::default()
        }
    }
}
