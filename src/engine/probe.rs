//! The least that an engine can be asked for.

use std::sync::Arc;

use super::Workload;
use crate::error::Result;
use crate::network::{Network, Shape};
use crate::settings::{Optimizer, Precision, Settings};

/// One example of two numbers through the smallest network, in the arithmetic that every device has.
///
/// # Errors
/// None that a correct build of batchstep meets.
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
    use crate::engine::Engine;
    use crate::engine::cpu::CpuEngine;

    #[test]
    fn an_engine_that_works_says_so() {
        CpuEngine::cpu(None).still_works().unwrap();
    }
}
