//! The mean of binary cross-entropies, and its gradient.

use rayon::prelude::*;

use crate::engine::cpu::op::parallel::{GRAIN, piece};
use crate::engine::cpu::op::scalar::Scalar;

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
    let pieces: Vec<f64> =
        x.par_chunks(GRAIN).zip(t.par_chunks(GRAIN)).map(|(x, t)| x.iter().zip(t).map(term).sum()).collect();
    T::from_f64(pieces.iter().sum::<f64>() / x.len() as f64)
}

/// `dx = (s(x) - t) / n * dy`.
pub fn backward<T: Scalar>(x: &[T], t: &[T], dy: T, dx: &mut [T]) {
    let step = piece(x.len(), 16);
    let scale = T::from_f64(dy.to_f64() / x.len() as f64);
    dx.par_chunks_mut(step).zip(x.par_chunks(step).zip(t.par_chunks(step))).for_each(|(dx, (x, t))| {
        for (dx, (x, t)) in dx.iter_mut().zip(x.iter().zip(t)) {
            let e = decay(*x);
            let above = if *x < T::ZERO { e } else { T::ONE };
            *dx = scale * (above / (T::ONE + e) - *t);
        }
    });
}
