//! Losses, with their gradients.

#[cfg(test)]
mod tests;

use super::grid::in_and_out;
use crate::engine::cudnn::call::{Arg, Kernel, Launch, Slice};
use crate::engine::cudnn::element::Element;

/// The slices that all losses read and write.
#[derive(Clone, Copy, Debug)]
pub struct LossSlices {
    pub element: Element,
    pub batch: usize,
    /// Classes, or features: K.
    pub classes: usize,
    /// N x K.
    pub logits: Slice,
    /// N x K floats.
    pub targets: Slice,
    /// N x K: the gradient of the mean loss with respect to the logits, times the loss scale. May be the logits' slice.
    pub gradient: Slice,
    /// N floats: the loss of each example; their mean is the loss.
    pub row_losses: Slice,
    /// One float.
    pub loss_scale: Option<Slice>,
}

/// Softmax and cross-entropy in one: -sum of target * ln(softmax(logits)), as the CPU engine's.
#[derive(Clone, Copy, Debug)]
pub struct SoftmaxCrossEntropy(pub LossSlices);

/// The mean over the features of the squared difference, as the CPU engine's.
#[derive(Clone, Copy, Debug)]
pub struct MeanSquaredError(pub LossSlices);

/// The mean over the outputs of the cross-entropy of each one's logistic function, as the CPU engine's.
#[derive(Clone, Copy, Debug)]
pub struct BinaryCrossEntropy(pub LossSlices);

impl SoftmaxCrossEntropy {
    /// One launch.
    pub fn launches(&self) -> Vec<Launch> {
        vec![self.0.launch("softmax_cross_entropy")]
    }
}

impl MeanSquaredError {
    /// One launch.
    pub fn launches(&self) -> Vec<Launch> {
        vec![self.0.launch("mean_squared_error")]
    }
}

impl BinaryCrossEntropy {
    /// One launch.
    pub fn launches(&self) -> Vec<Launch> {
        vec![self.0.launch("binary_cross_entropy")]
    }
}

impl LossSlices {
    fn launch(&self, name: &'static str) -> Launch {
        let Self { element, batch, classes, logits, targets, gradient, row_losses, loss_scale } = *self;
        let (from, to) = in_and_out(logits, gradient);
        // Four values for each thread, so that a row has enough loads in flight.
        let threads = classes.div_ceil(4).next_multiple_of(32).min(1024);
        Launch {
            kernel: Kernel { operator: "loss", name, element },
            grid: [batch as u32, 1, 1],
            block: [threads as u32, 1, 1],
            shared_bytes: 0,
            args: vec![
                from,
                Arg::Read(targets),
                to,
                Arg::Write(row_losses),
                Arg::I32(classes as i32),
                Arg::I32(batch as i32),
                loss_scale.map_or(Arg::Null, Arg::Read),
            ],
        }
    }
}
