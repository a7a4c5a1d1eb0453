//! The mean of squares, and its gradient.

use rayon::prelude::*;

use crate::engine::cpu::op::parallel::{GRAIN, piece};
use crate::engine::cpu::op::scalar::{Scalar, sum_of_pairs, vectorised};

/// The mean of `(x - t)^2`. The pieces that are summed do not depend on the number of threads.
pub fn forward<T: Scalar>(x: &[T], t: &[T]) -> T {
    let pieces: Vec<f64> = x
        .par_chunks(GRAIN)
        .zip(t.par_chunks(GRAIN))
        .map(|(x, t)| {
            vectorised(
                #[inline(always)]
                || sum_of_pairs(x, t, |x, t| (x - t) * (x - t)).to_f64(),
            )
        })
        .collect();
    T::from_f64(pieces.iter().sum::<f64>() / x.len() as f64)
}

/// `dx = 2 (x - t) / n * dy`.
pub fn backward<T: Scalar>(x: &[T], t: &[T], dy: T, dx: &mut [T]) {
    let step = piece(x.len(), 1);
    let scale = T::from_f64(2.0 * dy.to_f64() / x.len() as f64);
    dx.par_chunks_mut(step).zip(x.par_chunks(step).zip(t.par_chunks(step))).for_each(|(dx, (x, t))| {
        dx.iter_mut().zip(x.iter().zip(t)).for_each(|(dx, (x, t))| *dx = scale * (*x - *t));
    });
}
