//! A network in training: its parameters, its optimizer, and the step that changes both.

use std::sync::Arc;
use std::time::Instant;

use num_traits::Float;

use super::op::scalar::{Scalar, doubles};
use super::optimizer::InPlace;
use super::parameters::Parameters;
use super::pass::{Pass, Task, Watch};
use crate::engine::dropout::Masks;
use crate::engine::{Computed, Settings, StepTimes};
use crate::error::Result;
use crate::network::Network;

/// A network with its parameters and its optimizer, between two steps.
#[derive(Debug)]
pub struct Training<T> {
    network: Arc<Network>,
    settings: Settings,
    pub parameters: Parameters<T>,
    optimizer: InPlace<T>,
    pub pass: Pass<T>,
    /// Steps done; each step has its own dropout masks.
    steps: u64,
}

impl<T: Scalar + Float> Training<T> {
    /// A network at its initial parameters. All arithmetic is done in `T`.
    pub fn new(network: Arc<Network>, settings: &Settings) -> Self {
        let parameters = Parameters::new(&network, settings.seed);
        let lengths = parameters.iter().map(<[T]>::len);
        let optimizer = InPlace::new(lengths, settings.optimizer, settings.learning_rate);
        let mut pass = Pass::new(&network);
        pass.choose(settings.into());
        let settings = settings.clone();
        Self { network, settings, parameters, optimizer, pass, steps: 0 }
    }

    /// Whether [`Training::reset`] can turn this into a training of that network and optimizer.
    pub fn fits(&self, network: &Arc<Network>, settings: &Settings) -> bool {
        let same_network = Arc::ptr_eq(&self.network, network) || self.network == *network;
        same_network && self.settings.optimizer == settings.optimizer
    }

    /// Returns to the initial parameters, in the same memory.
    pub fn reset(&mut self, settings: &Settings) {
        self.settings = settings.clone();
        self.steps = 0;
        self.optimizer.reset(settings.learning_rate);
        self.parameters.reset(&self.network, settings.seed);
    }

    /// Allocates the memory for batches of `batch` examples; a step does so itself if this was not called.
    ///
    /// # Errors
    /// [`crate::error::Kind::Engine`] with the layer's name, where an operator refuses the sizes.
    pub fn fit(&mut self, batch: usize) -> Result<()> {
        self.pass.fit(&self.network, batch)
    }

    /// Bytes that stay allocated after a reset and for another batch size.
    pub fn bytes(&self) -> u64 {
        let state = 1 + self.settings.optimizer.state_copies() as u64;
        self.parameters.bytes() * state + self.pass.bytes()
    }

    /// One training step on a batch: forward with loss, backward, update. The times are those of its phases.
    ///
    /// # Errors
    /// [`crate::error::Kind::Engine`] where the batch does not fit the network, or memory cannot be had.
    pub fn step(&mut self, inputs: &[T], targets: &[T]) -> Result<StepTimes> {
        self.watched_step(inputs, targets, None)
    }

    /// [`Training::step`], with the time of each layer.
    ///
    /// # Errors
    /// As [`Training::step`].
    pub fn watched_step(&mut self, inputs: &[T], targets: &[T], watch: Option<&Watch>) -> Result<StepTimes> {
        let Self { network, settings, parameters, pass, optimizer, .. } = self;
        let masks = Some(Masks { seed: settings.seed, step: self.steps });
        let start = Instant::now();
        let loss = pass.forward(task(network, settings, parameters, [inputs, targets], (masks, watch)))?;
        pass.update_stats(parameters);
        let forward = Instant::now();
        pass.backward(task(network, settings, parameters, [inputs, targets], (masks, watch)));
        let backward = Instant::now();
        optimizer.update(parameters.iter_mut(), pass.gradients());
        let end = Instant::now();
        self.steps += 1;

        let seconds = |from: Instant, to: Instant| to.duration_since(from).as_secs_f64();
        Ok(StepTimes {
            forward_s: Some(seconds(start, forward)),
            backward_s: Some(seconds(forward, backward)),
            optimizer_s: Some(seconds(backward, end)),
            loss: Some(loss.to_f64()),
            ..StepTimes::default()
        })
    }

    /// The output for a batch without training: running statistics in batch norms, no dropout.
    ///
    /// # Errors
    /// As [`Training::step`].
    pub fn evaluate(&mut self, inputs: &[T], targets: &[T]) -> Result<Vec<f64>> {
        let Self { network, settings, parameters, pass, .. } = self;
        pass.forward(task(network, settings, parameters, [inputs, targets], (None, None)))?;
        let last = network.layers.len() - 1;
        Ok(doubles(pass.held_output(last)))
    }

    /// The results of the last step.
    pub fn computed(&self) -> Computed {
        Computed {
            output: doubles(self.pass.held_output(self.network.layers.len() - 1)),
            parameters: self.parameters.iter().map(doubles).collect(),
            gradients: self.pass.gradients().map(doubles).collect(),
        }
    }
}

/// What a pass over a batch reads.
fn task<'a, T>(
    network: &'a Network,
    settings: &Settings,
    parameters: &'a Parameters<T>,
    [inputs, targets]: [&'a [T]; 2],
    (masks, watch): (Option<Masks>, Option<&'a Watch>),
) -> Task<'a, T> {
    Task { network, parameters, inputs, targets, masks, loss: settings.loss, watch }
}
