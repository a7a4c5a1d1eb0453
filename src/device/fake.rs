//! A device that reports what a test prescribes. Tests of runs hold what it gives against what a run stores.

use std::collections::VecDeque;

use super::{Covariates, Device};

/// Gives scripted readings one after the other, then the last one for ever.
#[derive(Clone, Debug)]
pub struct Fake {
    script: VecDeque<(Covariates, Option<String>)>,
    warning: Option<String>,
}

impl Fake {
    pub fn new(first: Covariates) -> Self {
        Self { script: VecDeque::from([(first, None)]), warning: None }
    }

    /// Begins as a GPU on a PCIe 5.0 link of 16 lanes, at that SM clock and not throttled.
    pub fn steady(sm_clock_hz: f64) -> Self {
        Self::new(Covariates {
            pcie_link_width: Some(16),
            pcie_link_generation: Some(5),
            pcie_link_width_max: Some(16),
            pcie_link_generation_max: Some(5),
            pcie_replay_counter: Some(0),
            sm_clock_hz: Some(sm_clock_hz),
            memory_clock_hz: Some(3.2e9),
            cpu_clock_hz: None,
            throttle_reasons: Some(super::throttle::NONE.into()),
            temperature_c: Some(50.0),
            power_w: Some(400.0),
            energy_j: Some(1000.0),
            memory_used_bytes: Some(1 << 30),
        })
    }

    /// Then gives the same reading, but slower and with a reason.
    pub fn then_throttled(mut self, sm_clock_hz: f64, reasons: &str) -> Self {
        let before = self.script.back().map(|entry| entry.0.clone()).unwrap_or_default();
        let slower = Covariates { sm_clock_hz: Some(sm_clock_hz), throttle_reasons: Some(reasons.into()), ..before };
        self.script.push_back((slower, None));
        self
    }

    /// Then can no longer be read, and says why.
    pub fn then_vanished(mut self, why: &str) -> Self {
        self.script.push_back((Covariates::default(), Some(why.into())));
        self
    }
}

impl Device for Fake {
    fn read(&mut self) -> Covariates {
        let last = self.script.len() <= 1;
        let Some((reading, why)) = self.script.front_mut() else { return Covariates::default() };
        self.warning = why.take().or(self.warning.take());
        let reading = reading.clone();
        if !last {
            self.script.pop_front();
        }
        reading
    }

    fn warnings(&mut self) -> Vec<String> {
        self.warning.take().into_iter().collect()
    }
}
