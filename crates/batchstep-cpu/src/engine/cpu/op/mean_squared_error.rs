//! The mean over batch and features of `(prediction - target)^2`, a scalar, as `torch.nn.functional.mse_loss`.

use crate::engine::cpu::op::parallel::{GRAIN, for_each_piece, part, piece};
use crate::engine::cpu::op::scalar::{Scalar, sum_of_pairs, vectorised};
use crate::engine::cpu::op::scratch::List;

/// The mean of `(x - t)^2`. The pieces that are summed do not depend on the number of threads.
pub fn forward<T: Scalar>(x: &[T], t: &[T]) -> T {
    let mut pieces = List::repeat(0.0, x.len().div_ceil(GRAIN));
    for_each_piece(&mut pieces, 1, |number, piece| {
        let (x, t) = (part(x, number, GRAIN), part(t, number, GRAIN));
        piece[0] = vectorised(
            #[inline(always)]
            || sum_of_pairs(x, t, |x, t| (x - t) * (x - t)).to_f64(),
        );
    });
    T::from_f64(pieces.iter().sum::<f64>() / x.len() as f64)
}

/// `dx = 2 (x - t) / n`.
pub fn backward<T: Scalar>(x: &[T], t: &[T], dx: &mut [T]) {
    let step = piece(x.len(), 1);
    let scale = T::from_f64(2.0 / x.len() as f64);
    for_each_piece(dx, step, |number, dx| {
        let (x, t) = (part(x, number, step), part(t, number, step));
        dx.iter_mut().zip(x.iter().zip(t)).for_each(|(dx, (x, t))| *dx = scale * (*x - *t));
    });
}
