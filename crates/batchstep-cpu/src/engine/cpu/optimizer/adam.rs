//! Adam, and AdamW, which shrinks the parameters by a share of the learning rate before the update. Sources: Kingma and Ba,
//! <https://arxiv.org/abs/1412.6980>; Loshchilov and Hutter, <https://arxiv.org/abs/1711.05101>; the order of operations is
//! that of `torch.optim.Adam` and `AdamW` with their defaults.

use num_traits::Float;

use super::constant;

const BETA1: f64 = 0.9;
const BETA2: f64 = 0.999;
const EPSILON: f64 = 1e-8;
/// AdamW's decay; Adam's is 0.
pub const WEIGHT_DECAY: f64 = 1e-2;

/// One update.
pub struct Adam<T> {
    /// The share of a parameter that is kept: 1 - rate x decay.
    kept: T,
    /// The learning rate over the first moment's bias, 1 - beta1^t.
    rate: T,
    rest1: T,
    beta2: T,
    rest2: T,
    /// The reciprocal of the root of the second moment's bias, 1 - beta2^t.
    scale: T,
    epsilon: T,
}

impl<T: Float> Adam<T> {
    /// The rule for a learning rate, a weight decay, and update number `steps`, from 1.
    pub fn new(rate: f64, decay: f64, steps: i32) -> Self {
        Self {
            kept: constant(1.0 - rate * decay),
            rate: constant(rate / (1.0 - BETA1.powi(steps))),
            rest1: constant(1.0 - BETA1),
            beta2: constant(BETA2),
            rest2: constant(1.0 - BETA2),
            scale: constant((1.0 - BETA2.powi(steps)).sqrt().recip()),
            epsilon: constant(EPSILON),
        }
    }

    /// Updates the parameters `w` and the moments of their gradients, `mean` and mean `square`, by the gradients `g`.
    pub fn update(&self, w: &mut [T], g: &[T], mean: &mut [T], square: &mut [T]) {
        for (((w, &g), m), v) in w.iter_mut().zip(g).zip(mean).zip(square) {
            *m = *m + self.rest1 * (g - *m);
            *v = self.beta2 * *v + self.rest2 * g * g;
            *w = *w * self.kept - self.rate * *m / (v.sqrt() * self.scale + self.epsilon);
        }
    }
}
