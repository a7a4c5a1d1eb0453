//! The smallest step that an engine can run.

use std::sync::Arc;

use super::Workload;
use crate::error::Result;
use crate::network::{Network, Shape};
use crate::settings::{Optimizer, Precision, Settings};

/// One example of two numbers through the smallest network, in the arithmetic that every device has.
///
/// # Errors
/// None in a correct build of batchstep.
pub(super) fn smallest() -> Result<Workload> {
    let network = Arc::new(Network::by_name("mlp", Shape::Flat(2), 2)?);
    let settings = Settings {
        optimizer: Optimizer::Sgd,
        learning_rate: 1e-3,
        precision: Precision::Fp32,
        phases: false,
        ..Settings::default()
    };
    Ok(Workload { network, batch_size: 1, settings })
}

#[cfg(test)]
mod tests {
    use crate::engine::cpu::CpuEngine;
    use crate::engine::{DeviceName, Engine, Settings, Step, StepTimes, Workload};
    use crate::error::Result;

    /// An engine whose step takes 8 s before it is warm and 2 s from then on, with one step of 9 s in between.
    struct WarmingEngine {
        name: DeviceName,
    }

    struct KnownStep {
        runs: u32,
    }

    impl Engine for WarmingEngine {
        fn device(&self) -> &DeviceName {
            &self.name
        }

        fn in_force(&self, asked: &Settings) -> Result<Settings> {
            Ok(asked.clone())
        }

        fn prepare(&mut self, _: &Workload) -> Result<Box<dyn Step>> {
            Ok(Box::new(KnownStep { runs: 0 }))
        }
    }

    impl Step for KnownStep {
        fn run(&mut self) -> Result<StepTimes> {
            self.runs += 1;
            let step_s = match self.runs {
                1..=3 => 8.0,
                10 => 9.0,
                _ => 2.0,
            };
            Ok(StepTimes { step_s, ..StepTimes::default() })
        }
    }

    #[test]
    fn the_smallest_step_is_timed_by_the_engine_and_not_by_an_empty_closure() {
        let name = DeviceName { id: "known".into(), name: "known".into(), multiprocessors: None };
        assert_eq!(WarmingEngine { name }.smallest_step_s().unwrap(), 2.0);
    }

    #[test]
    fn an_engine_that_works_says_so() {
        CpuEngine::cpu(None).still_works().unwrap();
    }
}
