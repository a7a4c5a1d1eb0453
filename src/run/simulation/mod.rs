//! Simulation studies: how often the method is right, counted over many simulated runs with a known truth.
//!
//! - [`coverage`]: how often the 95 % interval of a cell's median covers the truth, and how many steps the stop rule takes.
//! - [`decisions`]: how many steps it takes until jumps are shown or ruled out.
//! - [`alarms`]: how often a disturbance of the machine is reported as a jump, in randomised blocks and in ascending order.
//! - [`machines`]: how often machines that differ, and measure one series together, make a jump.
//!
//! Series with exact truth, which test only the detector: [`batchstep_detect::shapes`].
//!
//! The first three execute ordinary specs of the synthetic engine in the same loop as every other run
//! ([`simulate`]), with seeds 0, 1, 2, ... `examples/tables/trust_simulation.rs` and `examples/tables/steps_to_decide.rs` print them.

pub mod alarms;
pub mod coverage;
pub mod decisions;
pub(super) mod in_memory;
pub mod machines;
mod noise;

use crate::error::Result;
use crate::spec::Experiment;
pub use in_memory::{SimulatedRun, simulate};
pub use noise::Noise;

/// Simulates one run.
fn run(spec: &str) -> Result<SimulatedRun> {
    simulate(&Experiment::parse(spec, "simulation")?, None)
}
