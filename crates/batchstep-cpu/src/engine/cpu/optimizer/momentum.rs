//! SGD with momentum 0.9, without dampening: v = 0.9 v + g; w -= rate v. Source: `torch.optim.SGD`. (Keras and Sutskever et
//! al. put the rate into the velocity; the two are the same as long as the rate does not change.)

use num_traits::Float;

use super::constant;

const MOMENTUM: f64 = 0.9;

/// One update.
pub struct Momentum<T> {
    rate: T,
    momentum: T,
}

impl<T: Float> Momentum<T> {
    /// The rule for a learning rate.
    pub fn new(rate: f64) -> Self {
        Self { rate: constant(rate), momentum: constant(MOMENTUM) }
    }

    /// Updates the parameters `w` and their `velocity` by the gradients `g`.
    pub fn update(&self, w: &mut [T], g: &[T], velocity: &mut [T]) {
        for ((w, &g), v) in w.iter_mut().zip(g).zip(velocity) {
            *v = self.momentum * *v + g;
            *w = *w - self.rate * *v;
        }
    }
}
