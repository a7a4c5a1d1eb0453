//! A training step's forward and backward pass on memory that does not move.
//!
//! An autograd allocates an array for every output and every gradient. Candle's also starts each gradient as zeros and
//! adds to it: for VGG16 on 3x32x32 that took 30 to 45 % of the step at batch size 1, with thousands of page faults per
//! step. The layers of a network and the readers of each output are known beforehand, so a [`Pass`] assigns all memory
//! once ([`memory_plan`]) and then calls the operators' kernels in order and in reverse order. The tests compare it
//! with [`crate::engine::reference`].

pub mod memory_plan;

mod arena;
mod backward;
mod buffers;
mod chain;
mod forward;
mod kernel;
#[cfg(test)]
mod tests;
mod watch;

use std::sync::Arc;

use super::op::scalar::Scalar;
use super::parameters::Parameters;
use crate::engine::dropout::Masks;
use crate::error::{Error, Result};
use crate::network::{Direction, Network};
use crate::settings::{Loss, Settings};
use buffers::Buffers;
use chain::Chain;
pub use kernel::{Choices, Kernel, LayerSlopes, chosen_kernel, depends_on_threshold, examples_of_the_busiest};
use memory_plan::MemoryPlan;
pub use watch::Watch;

/// One network's pass over batches of one size at a time.
#[derive(Debug)]
pub struct Pass<T> {
    plan: Arc<MemoryPlan>,
    kernels: Vec<Kernel>,
    chains: Arc<[Chain]>,
    /// The layers whose bias a following batch norm subtracts again. Such a bias changes no output and has a zero
    /// gradient, so it is never added.
    idle_biases: Vec<bool>,
    batch: usize,
    choices: Choices,
    buffers: Buffers<T>,
}

/// What a pass reads.
#[derive(Clone, Copy)]
pub struct Task<'a, T> {
    pub network: &'a Network,
    pub parameters: &'a Parameters<T>,
    /// N x the network's input.
    pub inputs: &'a [T],
    /// N x the network's output.
    pub targets: &'a [T],
    /// The dropout masks of a training step; `None`: no training, so no dropout, and running statistics in batch norms.
    pub masks: Option<Masks>,
    pub loss: Loss,
    /// Present if each layer is to be timed.
    pub watch: Option<&'a Watch>,
}

impl<T: Scalar> Pass<T> {
    /// Allocates the gradients of the parameters; [`Pass::fit`] does the rest.
    pub fn new(network: &Network) -> Self {
        Self {
            plan: Arc::new(MemoryPlan::new(network)),
            kernels: Vec::new(),
            chains: Arc::default(),
            idle_biases: (0..network.layers.len()).map(|index| network.has_idle_bias(index)).collect(),
            batch: 0,
            choices: Choices::from(&Settings::default()),
            buffers: Buffers::new(network),
        }
    }

    /// Sets how the operators compute, from the next [`Pass::fit`] on.
    pub fn choose(&mut self, choices: Choices) {
        if choices != self.choices {
            self.choices = choices;
            self.batch = 0;
        }
    }

    /// Allocates the memory that a batch of `batch` examples needs beyond what is allocated already.
    ///
    /// # Errors
    /// [`crate::error::Kind::Engine`] with the layer's name, where an operator refuses the sizes.
    pub fn fit(&mut self, network: &Network, batch: usize) -> Result<()> {
        if batch == self.batch {
            return Ok(());
        }
        let kernel = |index: usize| {
            Kernel::new(network, index, batch, self.choices).map_err(|error| error.at(&network.layers[index].name))
        };
        self.kernels = (0..network.layers.len()).map(kernel).collect::<Result<_>>()?;
        self.chains = Chain::all(network, &self.plan, &self.kernels).into();
        self.buffers.fit(network, &self.plan, &self.chains, batch);
        self.batch = batch;
        Ok(())
    }

    /// The loss of a batch; outputs are kept for [`Pass::backward`].
    ///
    /// # Errors
    /// [`crate::error::Kind::Engine`] where inputs and targets are not a batch of this network.
    pub fn forward(&mut self, task: Task<'_, T>) -> Result<T> {
        self.fit(task.network, check(task)?)?;
        let (chains, mut index) = (self.chains.clone(), 1);
        while index < task.network.layers.len() {
            match chain_of(task, &chains, |chain| *chain.layers.start() == index) {
                Some(chain) => {
                    self.chain_forward(task, chain);
                    index = *chain.layers.end();
                }
                None if self.plan.outputs[index].writer == index => {
                    Watch::time(task.watch, index, Direction::Forward, || self.layer_forward(task, index));
                }
                None => {}
            }
            index += 1;
        }
        Ok(self.loss(task))
    }

    /// The gradients of all parameters, for the batch of the last [`Pass::forward`].
    pub fn backward(&mut self, task: Task<'_, T>) {
        self.loss_gradient(task);
        let (plan, chains) = (self.plan.clone(), self.chains.clone());
        let mut index = task.network.layers.len() - 1;
        while index > 0 {
            if let Some(chain) = chain_of(task, &chains, |chain| *chain.layers.end() == index) {
                self.chain_backward(task, chain);
                index = *chain.layers.start();
            } else if let Some(route) = &plan.routes[index] {
                self.layer_backward(task, index, route);
            }
            // Within a chain nothing is moved: no other layer reads what its layers pass on.
            for one in plan.routes[index].iter().flat_map(|route| &route.moves) {
                self.buffers.apply(*one, self.batch * task.network.layers[one.layer].output.count());
            }
            index -= 1;
        }
    }

    /// The gradient of each parameter, in the order of [`Parameters::iter`].
    pub fn gradients(&self) -> impl Iterator<Item = &[T]> {
        self.buffers.parameters.iter().flatten().map(|gradient| &**gradient)
    }

    /// How a layer is computed at this batch size.
    pub fn kernel(&self, index: usize) -> &Kernel {
        &self.kernels[index]
    }

    /// The output of layer `index` in the last [`Pass::forward`]; empty for the input, and before the first one.
    pub fn held_output(&self, index: usize) -> &[T] {
        &self.buffers.outputs[self.plan.outputs[index].holder]
    }

    /// The bytes that the next batch of the same network need not allocate again.
    pub fn bytes(&self) -> u64 {
        self.buffers.bytes()
    }

    /// The output of layer `index`, in the buffer that holds it.
    fn output<'a>(&'a self, inputs: &'a [T], index: usize) -> &'a [T] {
        match self.plan.outputs[index].holder {
            0 => inputs,
            holder => &self.buffers.outputs[holder],
        }
    }
}

/// The chain for which `is_there` holds. Layers that are to be timed are computed one by one, and so are the layers of
/// a network that is not trained.
fn chain_of<'a, T>(task: Task<'_, T>, chains: &'a [Chain], is_there: impl Fn(&Chain) -> bool) -> Option<&'a Chain> {
    let chained = task.watch.is_none() && task.masks.is_some();
    chains.iter().find(|chain| is_there(chain)).filter(|_| chained)
}

/// Checks inputs and targets; returns the number of examples.
fn check<T>(task: Task<'_, T>) -> Result<usize> {
    let Task { network, inputs, targets, .. } = task;
    let [of_input, of_output] = [network.input(), network.output()].map(|shape| shape.count());
    let batch = inputs.len() / of_input;
    if batch == 0 || inputs.len() != batch * of_input || targets.len() != batch * of_output {
        let what = format!(
            "{} inputs and {} targets are no batch: an example has {of_input} and {of_output}",
            inputs.len(),
            targets.len()
        );
        return Err(Error::engine(what).at(&network.name));
    }
    Ok(batch)
}
