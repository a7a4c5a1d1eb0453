//! The results of one part of an engine's step, together with the part's exact inputs. A part is a layer's operation
//! with everything that is computed together with it.
//!
//! If a step differs from another engine's, it does not show where it went wrong: an error propagates and grows. So
//! each part comes with its own operands, as they lay in the engine's memory, and a reference computes from those.

use std::fmt;

use super::Workload;
use crate::error::{Error, Result};
use crate::network::Operation;

/// Numbers in the order of the network's definition, whatever the layout and the element type on the device.
#[derive(Clone, Debug, PartialEq)]
pub struct Numbers {
    pub dims: Vec<usize>,
    pub values: Vec<f32>,
}

impl Numbers {
    /// Whether a number is none, or beyond `most` on either side.
    pub fn exceed(&self, most: f32) -> bool {
        self.values.iter().any(|value| value.is_nan() || value.abs() > most)
    }
}

/// One part of a step, and the results that were found.
#[derive(Clone, Debug)]
pub struct Part<'a> {
    pub workload: &'a Workload,
    pub task: Task,
    pub found: Vec<(Quantity, Numbers)>,
}

/// The computation of a part.
#[derive(Clone, Debug)]
pub enum Task {
    Forward(Fused),
    /// The gradients, computed from the output's gradient. The engine's own `output` decides where rectifiers let it
    /// pass.
    Backward {
        fused: Fused,
        output: Numbers,
        gradient: Numbers,
    },
    /// The gradient of the loss, times `scale`.
    Loss {
        output: Numbers,
        targets: Numbers,
        scale: f32,
    },
}

impl Task {
    /// The feature maps that are its inputs, and their gradient.
    pub fn operands(&self) -> impl Iterator<Item = &Numbers> {
        let operands = match self {
            Self::Forward(fused) => [Some(&fused.input), fused.summand.as_ref()],
            Self::Backward { fused, gradient, .. } => [Some(&fused.input), Some(gradient)],
            Self::Loss { output, .. } => [Some(output), None],
        };
        operands.into_iter().flatten()
    }
}

/// `rectifier(operation(input) + bias + summand)`; the operation itself has no bias and, if it is a sum, no summand.
#[derive(Clone, Debug)]
pub struct Fused {
    /// The layer whose operation it is.
    pub layer: usize,
    pub input: Numbers,
    /// `weight`, or `gamma` and `beta`.
    pub parameters: Vec<(&'static str, Numbers)>,
    /// One number for each channel.
    pub bias: Option<Numbers>,
    pub summand: Option<Numbers>,
    /// A ReLU or a ReLU6.
    pub rectifier: Option<Operation>,
    /// The step's number, on which dropout's mask depends.
    pub step: u64,
}

/// One of the results of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    Output,
    /// The gradient of the network's output.
    LossGradient,
    InputGradient,
    SummandGradient,
    /// The gradient of the parameter of that name.
    ParameterGradient(&'static str),
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Output => f.write_str("the output"),
            Self::LossGradient => f.write_str("the gradient of the loss"),
            Self::InputGradient => f.write_str("the gradient of the input"),
            Self::SummandGradient => f.write_str("the gradient of the summand"),
            Self::ParameterGradient(name) => write!(f, "the gradient of {name}"),
        }
    }
}

/// Receives the parts of a step that is taken apart.
pub trait See {
    /// Whether the parts of a layer are wanted; `None`: the part of the loss. Parts that are not wanted are not read
    /// from the device.
    fn wants(&self, _layer: Option<usize>) -> bool {
        true
    }

    /// # Errors
    /// What is wrong with the part.
    fn see(&mut self, part: Part) -> Result<()>;
}

impl<F: FnMut(Part) -> Result<()>> See for F {
    fn see(&mut self, part: Part) -> Result<()> {
        self(part)
    }
}

/// What is wrong with a step that was taken apart.
#[derive(Debug)]
pub struct Fault {
    /// The operators of our own that computed the part at fault; `None` where the part is not known.
    pub operators: Option<Vec<&'static str>>,
    pub error: Error,
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self { operators: None, error }
    }
}
