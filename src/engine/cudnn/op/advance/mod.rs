//! Values that are computed once in a step, between the backward pass and the update: the mean loss, the step's number,
//! the factors of the update, and for fp16 the loss scale.

#[cfg(test)]
mod tests;

use super::grid::{THREADS, blocks, int, line};
use crate::engine::cudnn::call::{Arg, Kernel, Launch, Slice};
use crate::engine::cudnn::element::Element;

fn kernel(name: &'static str, element: Element) -> Kernel {
    Kernel { operator: "advance", name, element }
}

/// The few numbers that are kept for a whole training, in one slice of [`Scalars::BYTES`] bytes that begins at a
/// multiple of 8. The names are those of `State` in kernel.cu.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scalars(pub Slice);

impl Scalars {
    /// The bytes of all these numbers.
    pub const BYTES: usize = 56;

    /// A u64: the steps whose update was taken. Dropout's mask is a function of it, so a step that is skipped in fp16 is
    /// repeated as the same step.
    pub fn step(self) -> Slice {
        self.0.part(0, 8)
    }

    /// A float: the mean loss of the last step.
    pub fn loss(self) -> Slice {
        self.0.part(24, 4)
    }

    /// Four floats for the update: Adam's learning rate over the first moment's bias, the reciprocal root of the second
    /// moment's bias, the reciprocal of the loss scale, and 1 where a gradient was not finite and the update is
    /// skipped.
    pub fn factors(self) -> Slice {
        self.0.part(28, 16)
    }

    /// A float: the factor of the loss's gradient, in fp16.
    pub fn loss_scale(self) -> Slice {
        self.0.part(44, 4)
    }

    /// Before the first step: no steps done, and the loss scale that `torch.amp.GradScaler` begins with, 65536.
    pub fn reset(self) -> Launch {
        blocks(kernel("reset", Element::F32), 1, 32, vec![Arg::Write(self.0)])
    }
}

/// Checks the gradients for infinities and NaN; [`advance`] acts on the result. For fp16. Those of the weights are of the
/// element type, the others are floats.
pub fn check_finite(element: Element, weights: Slice, others: Slice, scalars: Scalars) -> Launch {
    let counts = [weights.bytes / element.bytes(), others.bytes / 4];
    // Four rounds for each thread of as many blocks as an H200 holds at once.
    let threads = (counts[0].div_ceil(16 / element.bytes()) + counts[1]).div_ceil(4).min(132 * 8 * THREADS);
    let [first, second] = counts.map(|count| Arg::I64(count as i64));
    let args = vec![Arg::Read(weights), first, Arg::Read(others), second, Arg::Update(scalars.0)];
    line(kernel("check_finite", element), threads, args)
}

/// Counts the step and sets its [`Scalars`]; `row_losses` has a float for each example. With `scaling` the loss is scaled,
/// as in fp16, by the rules of `torch.amp.GradScaler`: a step whose gradients are not finite is skipped and halves the
/// scale, and 2000 finite ones in a row double it.
pub fn advance(row_losses: Slice, learning_rate: f64, scaling: bool, scalars: Scalars) -> Launch {
    let args = vec![
        Arg::Read(row_losses),
        int(row_losses.bytes / 4),
        Arg::U64(learning_rate.to_bits()),
        Arg::I32(scaling.into()),
        Arg::Update(scalars.0),
    ];
    blocks(kernel("advance", Element::F32), 1, 256, args)
}
