//! A network in training: its parameters, its optimizer, and the step that changes both.

use std::sync::Arc;
use std::time::Instant;

use candle_core::{DType, Tensor, Var, WithDType, bail};
use candle_nn::Optimizer as _;
use num_traits::Float;

use super::algorithm_choice::Switch;
use super::blocking::Factors;
use super::masks::Masks;
use super::op::scalar::Scalar;
use super::optimizer::{Config, InPlace};
use super::parameters::Parameters;
use super::pass::{Choices, Pass, Task, Watch};
use crate::engine::train::Learnt;
use crate::engine::{Computed, Settings};
use crate::error::Result;
use crate::network::Network;
use crate::settings::Precision;

/// A network with its parameters and its optimizer, between two steps.
#[derive(Debug)]
pub struct Training {
    network: Arc<Network>,
    settings: Settings,
    dtype: DType,
    parameters: Parameters,
    optimizer: InPlace,
    pass: Precise,
    switch: Switch,
    /// Steps done; each step has its own dropout masks.
    steps: u64,
}

/// A pass in the element type of the training.
#[derive(Debug)]
enum Precise {
    F32(Pass<f32>),
    F64(Pass<f64>),
}

/// Evaluates one expression for either type.
macro_rules! precise {
    ($precise:expr, $pass:ident => $result:expr) => {
        match $precise {
            Precise::F32($pass) => $result,
            Precise::F64($pass) => $result,
        }
    };
}

impl Precise {
    fn new(network: &Network, dtype: DType) -> candle_core::Result<Self> {
        match dtype {
            DType::F32 => Ok(Self::F32(Pass::new(network))),
            DType::F64 => Ok(Self::F64(Pass::new(network))),
            other => bail!("a training in {other:?}"),
        }
    }
}

/// The seconds of each phase of a step, and the loss before the update.
#[derive(Debug)]
pub struct PhasesAndLoss {
    pub forward_s: f64,
    pub backward_s: f64,
    pub optimizer_s: f64,
    pub loss: f64,
}

impl Training {
    /// A network at its initial parameters. All arithmetic is done in `dtype`, f32 or f64.
    ///
    /// # Errors
    /// [`crate::error::Kind::Engine`] where memory cannot be had.
    pub fn new(network: Arc<Network>, settings: &Settings, dtype: DType) -> Result<Self> {
        let parameters = Parameters::new(&network, settings.seed, dtype)?;
        let config = Config { optimizer: settings.optimizer, learning_rate: settings.learning_rate };
        let optimizer = InPlace::new(parameters.vars(), config)?;
        let mut pass = Precise::new(&network, dtype)?;
        precise!(&mut pass, pass => pass.choose(settings.into()));
        Ok(Self {
            network,
            settings: settings.clone(),
            dtype,
            parameters,
            optimizer,
            pass,
            switch: Switch::default(),
            steps: 0,
        })
    }

    /// Whether [`Training::reset`] can turn this into a training of that network, optimizer and element type.
    pub fn fits(&self, network: &Arc<Network>, settings: &Settings, dtype: DType) -> bool {
        let same_network = Arc::ptr_eq(&self.network, network) || self.network == *network;
        same_network && self.optimizer.config().optimizer == settings.optimizer && self.dtype == dtype
    }

    /// Returns to the initial parameters, in the same memory.
    ///
    /// # Errors
    /// As [`Training::new`].
    pub fn reset(&mut self, settings: &Settings) -> Result<()> {
        self.settings = settings.clone();
        self.steps = 0;
        self.switch_at(self.switch);
        self.optimizer.reset(settings.learning_rate);
        Ok(self.parameters.reset(&self.network, settings.seed)?)
    }

    /// Sets the size at which convolutions change their algorithm, from the next [`Training::fit`] on.
    pub fn switch_at(&mut self, switch: Switch) {
        self.switch = switch;
        let choices = Choices { switch, ..Choices::from(&self.settings) };
        precise!(&mut self.pass, pass => pass.choose(choices));
    }

    /// Allocates the memory for batches of `batch` examples; a step does so itself if this was not called.
    ///
    /// # Errors
    /// As [`Training::new`].
    pub fn fit(&mut self, batch: usize) -> Result<()> {
        precise!(&mut self.pass, pass => pass.fit(&self.network, batch))
    }

    /// Bytes that stay allocated after a reset and for another batch size.
    pub fn bytes(&self) -> u64 {
        let state = 1 + self.settings.optimizer.state_copies() as u64;
        self.parameters.bytes() * state + precise!(&self.pass, pass => pass.bytes())
    }

    /// One training step on a batch: forward with loss, backward, update.
    ///
    /// # Errors
    /// [`crate::error::Kind::Engine`] where the batch does not fit the network, or memory cannot be had.
    pub fn step(&mut self, inputs: &Tensor, targets: &Tensor) -> Result<PhasesAndLoss> {
        self.watched_step(inputs, targets, None)
    }

    /// [`Training::step`], with the time of each layer.
    ///
    /// # Errors
    /// As [`Training::step`].
    pub fn watched_step(&mut self, inputs: &Tensor, targets: &Tensor, watch: Option<&Watch>) -> Result<PhasesAndLoss> {
        let Self { network, settings, parameters, pass, optimizer, .. } = self;
        let masks = Some(Masks { seed: settings.seed, step: self.steps });
        let task = Task { network, parameters, inputs, targets, masks, loss: settings.loss, watch };
        let phases = precise!(pass, pass => run(pass, task, optimizer))?;
        self.steps += 1;
        Ok(phases)
    }

    /// The output for a batch without training: running statistics in batch norms, no dropout.
    ///
    /// # Errors
    /// As [`Training::step`].
    pub fn evaluate(&mut self, inputs: &Tensor, targets: &Tensor) -> Result<Vec<f64>> {
        let Self { network, settings, parameters, pass, .. } = self;
        let task = Task { network, parameters, inputs, targets, masks: None, loss: settings.loss, watch: None };
        let last = task.network.layers.len() - 1;
        precise!(pass, pass => {
            pass.forward(task)?;
            Ok(pass.held_output(last).iter().map(|value| WithDType::to_f64(*value)).collect())
        })
    }

    /// Takes over parameters that were trained elsewhere; the optimizer's state stays as it is.
    ///
    /// # Errors
    /// [`crate::error::Kind::Engine`] where they belong to another network.
    pub fn take_over(&mut self, learnt: &Learnt) -> Result<()> {
        Ok(self.parameters.take_over(learnt)?)
    }

    /// Sets the learning rate of the next updates.
    pub fn set_learning_rate(&mut self, learning_rate: f64) {
        self.optimizer.set_learning_rate(learning_rate);
    }

    /// The output for a batch, without dropout and without training.
    ///
    /// # Errors
    /// As [`Training::step`].
    #[cfg(test)]
    pub fn predict(&self, inputs: &Tensor) -> Result<Tensor> {
        Ok(super::autograd::forward(&self.network, &self.parameters, inputs, None)?.detach())
    }

    /// The results of the last step.
    ///
    /// # Errors
    /// candle's.
    pub fn computed(&self) -> Result<Computed> {
        let flat = |var: &Var| -> candle_core::Result<Vec<f64>> { var.to_dtype(DType::F64)?.flatten_all()?.to_vec1() };
        let parameters = self.parameters.vars().iter().map(flat).collect::<candle_core::Result<_>>()?;
        let (output, gradients) = precise!(&self.pass, pass => {
            let values = |values: &[_]| values.iter().map(|value| WithDType::to_f64(*value)).collect::<Vec<f64>>();
            let last = self.network.layers.len() - 1;
            (values(pass.held_output(last)), pass.gradients().map(values).collect())
        });
        Ok(Computed { output, parameters, gradients })
    }

    /// The algorithm of a layer's convolution at the batch size of the last [`Training::fit`]; `None` for other layers.
    pub fn convolution(&self, layer: usize) -> Option<&'static str> {
        precise!(&self.pass, pass => pass.convolution(layer))
    }

    /// The arithmetic of a layer's products at that batch size.
    pub fn math_mode(&self, layer: usize) -> &'static str {
        match (&self.pass, precise!(&self.pass, pass => pass.factors(layer))) {
            (Precise::F64(_), _) => "fp64",
            (Precise::F32(_), Factors::Exact) => Precision::Fp32.name(),
            (Precise::F32(_), Factors::Bf16) => Precision::Bf16.name(),
        }
    }

    /// The parameters as they are now.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }
}

fn run<T: Scalar + Float>(pass: &mut Pass<T>, task: Task<'_>, optimizer: &mut InPlace) -> Result<PhasesAndLoss> {
    let start = Instant::now();
    let loss = pass.forward(task)?;
    let forward = Instant::now();
    pass.backward(task)?;
    let backward = Instant::now();
    optimizer.update(pass.gradients())?;
    let end = Instant::now();

    let seconds = |from: Instant, to: Instant| to.duration_since(from).as_secs_f64();
    Ok(PhasesAndLoss {
        forward_s: seconds(start, forward),
        backward_s: seconds(forward, backward),
        optimizer_s: seconds(backward, end),
        loss: loss.to_f64(),
    })
}
