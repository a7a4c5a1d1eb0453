//! What every engine is compared with: the definition of each operator, in float64, by loops over its indices.
//!
//! It shares the description of the network, the initial values and the random numbers with the other engines, but no
//! arithmetic. So an error of logic in their kernels shows as a difference, instead of being made twice. There is no
//! transformation, no blocking and no vector code; independent outputs are computed on all threads, which changes no
//! number. It computes in float64 whatever the settings say, and measures nothing.

pub mod array;
pub mod batch_norm;
pub mod convolution;
pub mod dense;
mod initial;
mod loss;
mod optimizer;
pub(super) mod pass;
mod pointwise;
mod pooling;
#[cfg(test)]
mod tests;

use std::time::Instant;

use super::difference::TensorDistance;
use super::{Computed, DeviceName, Engine, Step, StepTimes, Workload};
use crate::error::Result;
use crate::settings::Settings;
use array::Array;
use optimizer::OptimizerState;
use pass::Pass;

/// See the module.
#[derive(Debug)]
pub struct ReferenceEngine(DeviceName);

impl Default for ReferenceEngine {
    fn default() -> Self {
        Self(DeviceName { id: "cpu".into(), name: "the reference in float64".into(), multiprocessors: None })
    }
}

impl Engine for ReferenceEngine {
    fn device(&self) -> &DeviceName {
        &self.0
    }

    fn in_force(&self, asked: &Settings) -> Result<Settings> {
        Ok(asked.clone())
    }

    fn prepare(&mut self, workload: &Workload) -> Result<Box<dyn Step>> {
        super::check_shapes(workload)?;
        let Workload { network, settings, .. } = workload;
        let parameters = initial::parameters(network, settings.seed);
        Ok(Box::new(ReferenceStep {
            inputs: initial::inputs(workload),
            targets: initial::targets(workload),
            workload: workload.clone(),
            parameters,
            rule: UpdateRule::new(settings, usize::MAX),
            output: Vec::new(),
            gradients: Vec::new(),
        }))
    }
}

/// The update rule of the settings' optimizer in float64, with its state. Parameters and gradients may come from any
/// engine.
#[derive(Debug)]
pub struct UpdateRule {
    settings: Settings,
    /// Whether another update follows, so that the state is needed again.
    is_kept: bool,
    /// The state of each tensor; empty where it is not kept, since a network of a hundred million parameters has
    /// gigabytes of it.
    states: Vec<Vec<OptimizerState>>,
    /// The number of updates begun.
    steps: i32,
}

impl UpdateRule {
    /// The rule before the first of `updates` updates.
    pub fn new(settings: &Settings, updates: usize) -> Self {
        let is_kept = updates > 1 && settings.optimizer.state_copies() > 0;
        Self { settings: settings.clone(), is_kept, states: Vec::new(), steps: 0 }
    }

    /// Begins the next update, of all tensors.
    pub fn begin(&mut self) {
        self.steps += 1;
    }

    /// The numbers of one tensor after the update that has begun, each computed from its gradient.
    pub fn updated(
        &mut self,
        tensor: usize,
        numbers: impl ExactSizeIterator<Item = (f64, f64)>,
    ) -> impl Iterator<Item = f64> {
        let Self { settings, is_kept, states, steps } = self;
        if states.len() <= tensor {
            states.resize_with(tensor + 1, Vec::new);
        }
        let states = &mut states[tensor];
        states.resize(if *is_kept { numbers.len() } else { 0 }, OptimizerState::default());
        numbers.enumerate().map(|(place, (w, g))| {
            let state = &mut states.get(place).copied().unwrap_or_default();
            let number = optimizer::updated(settings, *steps, w, g, state);
            if let Some(kept) = states.get_mut(place) {
                *kept = *state;
            }
            number
        })
    }

    /// How far one tensor's numbers after the update that has begun are from what it makes of the numbers before and their gradients.
    pub fn distance(&mut self, tensor: usize, [before, found, gradients]: [&[f64]; 3]) -> TensorDistance {
        let expected = self.updated(tensor, before.iter().copied().zip(gradients.iter().copied()));
        let numbers = before.iter().zip(found).zip(expected);
        TensorDistance::of_change(numbers.map(|((before, found), expected)| [*before, *found, expected]))
    }
}

/// A network in training.
struct ReferenceStep {
    workload: Workload,
    inputs: Array,
    targets: Array,
    /// For each layer its trainable tensors.
    parameters: Vec<Vec<Vec<f64>>>,
    rule: UpdateRule,
    output: Vec<f64>,
    gradients: Vec<Vec<f64>>,
}

impl Step for ReferenceStep {
    fn run(&mut self) -> Result<StepTimes> {
        let start = Instant::now();
        let Workload { network, settings, .. } = &self.workload;
        let pass = Pass { network, parameters: &self.parameters, seed: settings.seed, step: self.rule.steps as u64 };
        let outputs = pass.forward(self.inputs.clone());
        let output = &outputs[outputs.len() - 1];
        let (loss, dy) = loss::loss(settings.loss, output, &self.targets);
        self.gradients = pass.backward(&outputs, dy).into_iter().flatten().collect();
        self.output.clone_from(&output.values);
        self.rule.begin();
        for (tensor, (w, g)) in self.parameters.iter_mut().flatten().zip(&self.gradients).enumerate() {
            let numbers = std::mem::take(w);
            w.extend(self.rule.updated(tensor, numbers.into_iter().zip(g.iter().copied())));
        }
        Ok(StepTimes { step_s: start.elapsed().as_secs_f64(), loss: Some(loss), ..StepTimes::default() })
    }

    fn computed(&self) -> Result<Option<Computed>> {
        let parameters = self.parameters.iter().flatten().cloned().collect();
        Ok(Some(Computed { output: self.output.clone(), parameters, gradients: self.gradients.clone() }))
    }
}
