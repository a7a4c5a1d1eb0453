//! Losses, with their gradients.

#[cfg(test)]
mod tests;

use super::grid::{blocks, int};
use crate::engine::cudnn::call::{Arg, Kernel, Launch, Slice};
use crate::engine::cudnn::element::Element;
use crate::settings::Loss;

/// A loss of a batch, as the CPU engine's, with its gradient.
#[derive(Clone, Copy, Debug)]
pub struct BatchLoss {
    pub element: Element,
    pub batch: usize,
    /// Classes, or features: K.
    pub classes: usize,
    /// N x K.
    pub logits: Slice,
    /// N x K floats.
    pub targets: Slice,
    /// N x K: the gradient of the mean loss with respect to the logits, times the loss scale.
    pub gradient: Slice,
    /// N floats: the loss of each example; their mean is the loss.
    pub row_losses: Slice,
    /// One float.
    pub loss_scale: Option<Slice>,
}

impl BatchLoss {
    pub fn launch(&self, loss: Loss) -> Launch {
        let name = match loss {
            Loss::CategoricalCrossEntropy => "softmax_cross_entropy",
            Loss::MeanSquaredError => "mean_squared_error",
            Loss::BinaryCrossEntropy => "binary_cross_entropy",
        };
        let Self { element, batch, classes, logits, targets, gradient, row_losses, loss_scale } = *self;
        let kernel = Kernel { operator: "loss", name, element };
        let scale = loss_scale.map_or(Arg::Null, Arg::Read);
        let (logits, targets) = (Arg::Read(logits), Arg::Read(targets));
        let args = vec![logits, targets, Arg::Write(gradient), Arg::Write(row_losses), int(classes), int(batch), scale];
        // Four values for each thread, so that a row has enough loads in flight.
        blocks(kernel, batch, classes.div_ceil(4).next_multiple_of(32).min(1024), args)
    }
}
