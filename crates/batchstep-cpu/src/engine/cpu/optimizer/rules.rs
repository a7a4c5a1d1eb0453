//! The update rules, by the order of operations of `torch.optim` with its defaults. Each gets the learning rate, the parameters `w`
//! and their gradients `g`; what else it keeps is a state as long as both.

use num_traits::Float;

const MOMENTUM: f64 = 0.9;
const ALPHA: f64 = 0.99;
const BETA1: f64 = 0.9;
const BETA2: f64 = 0.999;
const EPSILON: f64 = 1e-8;

/// Stochastic gradient descent without momentum: w -= rate g.
pub fn sgd<T: Float>(rate: f64, w: &mut [T], g: &[T]) {
    let rate: T = constant(rate);
    for (w, &g) in w.iter_mut().zip(g) {
        *w = *w - rate * g;
    }
}

/// SGD with momentum 0.9, without dampening: v = 0.9 v + g; w -= rate v. (Keras and Sutskever et al. put the rate into the velocity;
/// the two are the same as long as the rate does not change.)
pub fn momentum<T: Float>(rate: f64, w: &mut [T], g: &[T], velocity: &mut [T]) {
    let [rate, momentum]: [T; 2] = [rate, MOMENTUM].map(constant);
    for ((w, &g), v) in w.iter_mut().zip(g).zip(velocity) {
        *v = momentum * *v + g;
        *w = *w - rate * *v;
    }
}

/// RMSprop, with the mean squares of the gradients: s = 0.99 s + 0.01 g^2; w -= rate g / (sqrt(s) + 1e-8). (Keras has 0.9 and 1e-7.)
pub fn rmsprop<T: Float>(rate: f64, w: &mut [T], g: &[T], square: &mut [T]) {
    let [rate, alpha, rest, epsilon]: [T; 4] = [rate, ALPHA, 1.0 - ALPHA, EPSILON].map(constant);
    for ((w, &g), s) in w.iter_mut().zip(g).zip(square) {
        *s = alpha * *s + rest * g * g;
        *w = *w - rate * g / (s.sqrt() + epsilon);
    }
}

/// Update number `steps`, from 1, of Adam, and of AdamW, which shrinks the parameters by a share `decay` of the learning rate before
/// the update; the states are the moments of the gradients. Sources: Kingma and Ba, <https://arxiv.org/abs/1412.6980>; Loshchilov
/// and Hutter, <https://arxiv.org/abs/1711.05101>.
pub fn adam<T: Float>((rate, decay, steps): (f64, f64, i32), w: &mut [T], g: &[T], mean: &mut [T], square: &mut [T]) {
    // The moments' biases are in the rate and in the scale.
    let [rate, kept]: [T; 2] = [rate / (1.0 - BETA1.powi(steps)), 1.0 - rate * decay].map(constant);
    let [scale, epsilon]: [T; 2] = [(1.0 - BETA2.powi(steps)).sqrt().recip(), EPSILON].map(constant);
    let [rest1, beta2, rest2]: [T; 3] = [1.0 - BETA1, BETA2, 1.0 - BETA2].map(constant);
    for (((w, &g), m), v) in w.iter_mut().zip(g).zip(mean).zip(square) {
        *m = *m + rest1 * (g - *m);
        *v = beta2 * *v + rest2 * g * g;
        *w = *w * kept - rate * *m / (v.sqrt() * scale + epsilon);
    }
}

/// A constant in the element type; f32 and f64 both take every f64, rounded.
fn constant<T: Float>(value: f64) -> T {
    T::from(value).unwrap_or_else(T::nan)
}
