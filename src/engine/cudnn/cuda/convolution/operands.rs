//! The memory of a convolution's operands.

use crate::engine::cudnn::call::{Convolution, ConvolutionKind, ConvolutionTask};
use crate::engine::cudnn::cuda::placement::Placement;
use crate::error::{Error, Result};

/// Addresses: x is the input of the forward pass and y its output; in a backward pass they may be the gradients of
/// these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operands {
    pub x: u64,
    pub w: u64,
    pub y: u64,
    pub bias: Option<u64>,
}

impl Operands {
    /// The operands of a task, each checked for its size.
    ///
    /// # Errors
    /// [`crate::error::Kind::Engine`] where a slice is not as large as its tensor.
    pub fn of(convolution: &Convolution, task: &ConvolutionTask, placement: &Placement) -> Result<Self> {
        let ConvolutionTask { x, w, y, bias, .. } = *task;
        let place = |slice, numbers: usize, what: &str| {
            let what = format!("{what} of a convolution");
            let address = placement.operand(slice, numbers * convolution.element.bytes(), &what)?;
            match address % 16 {
                0 => Ok(address),
                _ => Err(Error::engine(format!("{what} does not begin at a multiple of 16 bytes"))),
            }
        };
        Ok(Self {
            x: place(x, convolution.input.count(), "the input")?,
            w: place(w, convolution.weights(), "the weights")?,
            y: place(y, convolution.output.count(), "the output")?,
            bias: bias.map(|bias| place(bias, convolution.output.channels, "the bias")).transpose()?,
        })
    }
}

/// Bytes of x, w, y and the bias, in that order; 0 where there is no bias.
pub fn sizes(convolution: &Convolution, kind: ConvolutionKind) -> [u64; 4] {
    let bias = if kind == ConvolutionKind::ForwardBiasRelu { convolution.output.channels } else { 0 };
    let counts = [convolution.input.count(), convolution.weights(), convolution.output.count(), bias];
    counts.map(|count| (count * convolution.element.bytes()) as u64)
}
