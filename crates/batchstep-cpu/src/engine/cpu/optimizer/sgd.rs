//! Stochastic gradient descent without momentum: w -= rate g.

use num_traits::Float;

use super::constant;

/// One update.
pub struct Sgd<T> {
    rate: T,
}

impl<T: Float> Sgd<T> {
    /// The rule for a learning rate.
    pub fn new(rate: f64) -> Self {
        Self { rate: constant(rate) }
    }

    /// Updates the parameters `w` by their gradients `g`.
    pub fn update(&self, w: &mut [T], g: &[T]) {
        for (w, &g) in w.iter_mut().zip(g) {
            *w = *w - self.rate * g;
        }
    }
}
