//! What a step computes: a network on a batch, under its settings.

use std::sync::Arc;

use super::{Network, Shape};
use crate::error::{Error, Result};
use crate::settings::{Examples, Loss, Settings};

/// The work of one cell of an experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    pub network: Arc<Network>,
    pub batch_size: usize,
    pub settings: Settings,
}

impl Workload {
    /// Refuses a network that does not fit on the examples.
    ///
    /// # Errors
    /// [`crate::error::Kind::Spec`].
    pub fn check(network: &Network, settings: &Settings) -> Result<()> {
        let fits = network.input() == Shape::Flat(2)
            && network.output() == Shape::Flat(1)
            && settings.loss == Loss::MeanSquaredError;
        match settings.examples {
            Examples::Peaks if !fits => {
                let what = "`examples = \"peaks\"` is a surface over two inputs, to be fitted by one output with a squared error";
                Err(Error::spec(what).at(&network.name).hint(
                    "use the network `mlp`, or one with `input = [2]` and one output, and `loss = \"mean_squared_error\"`",
                ))
            }
            Examples::Peaks | Examples::Uniform => Ok(()),
        }
    }
}
