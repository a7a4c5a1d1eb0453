//! Trials: what the method promises, counted over many rehearsed runs of a known truth.
//!
//! - [`coverage`]: how often the 95 % interval of a cell's median holds the truth, and what the stop rule costs.
//! - [`alarms`]: how often something that happens to the machine is taken for a jump, in randomised blocks and along the axis.
//!
//! Every trial is an ordinary spec with the synthetic engine, run through the same loop as every other
//! ([`crate::run::simulate`]), with seeds 0, 1, 2, ... `examples/trust_simulation.rs` prints all of them.

pub mod alarms;
pub mod coverage;

use crate::error::Result;
use crate::run::{SimulatedRun, simulate};
use crate::spec::Experiment;

/// Rehearses one run.
fn run(spec: &str) -> Result<SimulatedRun> {
    simulate(&Experiment::parse(spec, "trial")?, None)
}
