//! RMSprop: s = 0.99 s + 0.01 g^2; w -= rate g / (sqrt(s) + 1e-8). Source: `torch.optim.RMSprop` with its defaults. (Keras
//! has 0.9 and 1e-7.)

use num_traits::Float;

use super::constant;

const ALPHA: f64 = 0.99;
const EPSILON: f64 = 1e-8;

/// One update.
pub struct RmsProp<T> {
    rate: T,
    alpha: T,
    rest: T,
    epsilon: T,
}

impl<T: Float> RmsProp<T> {
    /// The rule for a learning rate.
    pub fn new(rate: f64) -> Self {
        Self { rate: constant(rate), alpha: constant(ALPHA), rest: constant(1.0 - ALPHA), epsilon: constant(EPSILON) }
    }

    /// Updates the parameters `w` and their mean `square` gradients by the gradients `g`.
    pub fn update(&self, w: &mut [T], g: &[T], square: &mut [T]) {
        for ((w, &g), s) in w.iter_mut().zip(g).zip(square) {
            *s = self.alpha * *s + self.rest * g * g;
            *w = *w - self.rate * g / (s.sqrt() + self.epsilon);
        }
    }
}
