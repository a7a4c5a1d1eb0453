//! The update of all parameters, by the rules of the CPU engine's optimizers.

#[cfg(test)]
mod tests;

use super::advance::Scalars;
use super::grid::line;
use crate::engine::cudnn::call::{Arg, Kernel, Launch, Slice};
use crate::engine::cudnn::element::Element;
use crate::settings::Optimizer;

/// AdamW's weight decay, a factor of the learning rate; all other constants are in the kernels.
const WEIGHT_DECAY: f64 = 1e-2;

/// One update of all parameters.
///
/// They lie in one array of floats, `master`, in two regions: first the weights, then the others. The states are arrays
/// of the same layout. Where the number of weights is a multiple of 4, both regions are moved sixteen bytes at a time.
#[derive(Clone, Copy, Debug)]
pub struct Update {
    pub optimizer: Optimizer,
    pub learning_rate: f64,
    pub element: Element,
    /// The floats of both regions.
    pub master: Slice,
    /// The gradients of the first region, of the element type.
    pub gradients_weights: Slice,
    /// Those of the second, floats.
    pub gradients_others: Slice,
    /// The states that the optimizer has, each like `master`.
    pub states: [Option<Slice>; 2],
    /// The weights rounded to `element`, where that is not float32.
    pub working: Option<Slice>,
    /// As [`super::advance::advance`] left them in this step.
    pub scalars: Scalars,
}

impl Update {
    pub fn launch(&self) -> Launch {
        let Self { optimizer, learning_rate, element, working, scalars, .. } = *self;
        let (weights, others) = (self.gradients_weights.bytes / element.bytes(), self.gradients_others.bytes / 4);
        let (name, factor) = match optimizer {
            Optimizer::Sgd => ("sgd", learning_rate),
            Optimizer::Momentum => ("momentum", learning_rate),
            Optimizer::RmsProp => ("rmsprop", learning_rate),
            Optimizer::Adam => ("adam", 1.0),
            Optimizer::AdamW => ("adam", 1.0 - learning_rate * WEIGHT_DECAY),
        };
        // A skipped update leaves the working copy as it was, so it is not always written.
        let mut args = vec![
            Arg::I64(weights as i64),
            Arg::I64(others as i64),
            Arg::Update(self.master),
            Arg::Read(self.gradients_weights),
            Arg::Read(self.gradients_others),
            working.map_or(Arg::Null, Arg::Update),
            Arg::Read(scalars.factors()),
            Arg::F32(factor as f32),
        ];
        args.extend(self.states.into_iter().flatten().map(Arg::Update));
        let pack = 16 / element.bytes();
        let others = if weights % 4 == 0 { others / 4 + others % 4 } else { others };
        let threads = weights / pack + weights % pack + others;
        line(Kernel { operator: "optimizer", name, element }, threads, args)
    }
}
