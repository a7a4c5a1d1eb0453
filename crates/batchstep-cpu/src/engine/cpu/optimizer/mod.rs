//! The optimizers, by PyTorch's update rules, each in one pass over memory: parameter, gradient and state are read once and
//! written once, in place, in parallel, without a temporary.
//!
//! candle-nn's optimizers are chains of tensor operations with a full-size temporary each, and it has no momentum and
//! no RMSprop. On two threads of a Xeon with AVX-512 its SGD took 0.33 s over 103 M parameters; RMSprop here takes 0.07
//! s over the 138 M of VGG16, which is 2.8 GB of memory traffic.

mod rules;
#[cfg(test)]
pub(crate) mod tests;

use num_traits::Float;

use super::op::huge_pages::advise;
use super::op::parallel::{Shared, for_each, for_each_piece, part};
use super::op::scalar::Scalar;
use crate::settings::Optimizer;

/// AdamW's decay; Adam's is 0.
const WEIGHT_DECAY: f64 = 1e-2;
/// Scalars of one task: parameter, gradient and two states take 256 KiB in f32, a part of a core's own cache.
const CHUNK: usize = 1 << 14;

/// An optimizer with its state; all but its learning rate is PyTorch's default.
#[derive(Debug)]
pub struct InPlace<T> {
    optimizer: Optimizer,
    learning_rate: f64,
    /// For each parameter its two states, as long as the parameter or empty.
    states: Vec<[Vec<T>; 2]>,
    /// Updates done.
    steps: i32,
}

impl<T: Scalar + Float> InPlace<T> {
    /// An optimizer for parameters of these lengths.
    pub fn new(lengths: impl Iterator<Item = usize>, optimizer: Optimizer, learning_rate: f64) -> Self {
        let copies = optimizer.state_copies();
        let state = |length: usize| {
            let mut state = vec![T::ZERO; length];
            advise(&mut state);
            state
        };
        let states = lengths.map(|length| [0, 1].map(|number| state(if number < copies { length } else { 0 })));
        let mut new = Self { optimizer, learning_rate, states: states.collect(), steps: 0 };
        // Zeros must be written here; otherwise the system would allocate their pages during the first step.
        new.reset(learning_rate);
        new
    }

    /// Forgets all updates and keeps the memory.
    pub fn reset(&mut self, learning_rate: f64) {
        self.learning_rate = learning_rate;
        self.steps = 0;
        for state in self.states.iter_mut().flatten() {
            for_each_piece(state, CHUNK, |_, state| state.fill(T::ZERO));
        }
    }

    /// Updates every parameter by its gradient.
    ///
    /// # Panics
    /// Where their lengths differ.
    pub fn update<'a>(
        &mut self,
        parameters: impl Iterator<Item = &'a mut [T]>,
        gradients: impl Iterator<Item = &'a [T]>,
    ) {
        self.steps = self.steps.saturating_add(1);
        for ((w, g), states) in parameters.zip(gradients).zip(&mut self.states) {
            assert_eq!(w.len(), g.len(), "{}: a gradient of another parameter", self.optimizer);
            update((self.optimizer, self.learning_rate, self.steps), w, g, states);
        }
    }
}

/// Update number `steps`, from 1, in pieces that the threads share; the pieces of an empty state are empty.
fn update<T: Scalar + Float>(
    (optimizer, rate, steps): (Optimizer, f64, i32),
    w: &mut [T],
    g: &[T],
    [a, b]: &mut [Vec<T>; 2],
) {
    let [w, a, b] = [w, a, b].map(|values| (values.len(), Shared::new(values)));
    for_each(g.len().div_ceil(CHUNK), |number| {
        let [w, a, b] = [&w, &a, &b].map(|(len, values)| {
            let start = (number * CHUNK).min(*len);
            // SAFETY: every number has one task.
            unsafe { values.slice(start, CHUNK.min(len - start)) }
        });
        let g = part(g, number, CHUNK);
        match optimizer {
            Optimizer::Sgd => rules::sgd(rate, w, g),
            Optimizer::Momentum => rules::momentum(rate, w, g, a),
            Optimizer::RmsProp => rules::rmsprop(rate, w, g, a),
            Optimizer::Adam => rules::adam((rate, 0.0, steps), w, g, a, b),
            Optimizer::AdamW => rules::adam((rate, WEIGHT_DECAY, steps), w, g, a, b),
        }
    });
}
