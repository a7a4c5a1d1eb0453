//! The mean over batch and outputs of the cross-entropy between the target and the logistic function of the logits, as
//! `torch.nn.functional.binary_cross_entropy_with_logits`.

use crate::engine::cpu::op::parallel::{GRAIN, for_each_piece, part, piece};
use crate::engine::cpu::op::scalar::Scalar;
use crate::engine::cpu::op::scratch::List;

/// `exp(-|x|)`, which never overflows.
fn decay<T: Scalar>(x: T) -> T {
    if x < T::ZERO { x.exp() } else { (-x).exp() }
}

/// The mean of `max(x, 0) - x t + ln(1 + exp(-|x|))`, which is `-t ln s(x) - (1 - t) ln(1 - s(x))` of the logistic function s. The
/// pieces that are summed do not depend on the number of threads.
pub fn forward<T: Scalar>(x: &[T], t: &[T]) -> T {
    let term = |(x, t): (&T, &T)| {
        let positive = if *x > T::ZERO { *x } else { T::ZERO };
        (positive - *x * *t).to_f64() + decay(*x).to_f64().ln_1p()
    };
    let mut pieces = List::repeat(0.0, x.len().div_ceil(GRAIN));
    for_each_piece(&mut pieces, 1, |number, piece| {
        piece[0] = part(x, number, GRAIN).iter().zip(part(t, number, GRAIN)).map(term).sum();
    });
    T::from_f64(pieces.iter().sum::<f64>() / x.len() as f64)
}

/// `dx = (s(x) - t) / n`.
pub fn backward<T: Scalar>(x: &[T], t: &[T], dx: &mut [T]) {
    let step = piece(x.len(), 16);
    let scale = T::from_f64(1.0 / x.len() as f64);
    for_each_piece(dx, step, |number, dx| {
        let (x, t) = (part(x, number, step), part(t, number, step));
        for (dx, (x, t)) in dx.iter_mut().zip(x.iter().zip(t)) {
            let e = decay(*x);
            let above = if *x < T::ZERO { e } else { T::ONE };
            *dx = scale * (above / (T::ONE + e) - *t);
        }
    });
}
