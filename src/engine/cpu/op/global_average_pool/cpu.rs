//! The mean of each plane, and its gradient.

use rayon::prelude::*;

use crate::engine::cpu::op::parallel::piece;
use crate::engine::cpu::op::scalar::{Scalar, sum, vectorised};

/// `y`: the mean of each plane of `pixels` values.
pub fn forward<T: Scalar>(x: &[T], pixels: usize, y: &mut [T]) {
    let step = piece(y.len(), pixels);
    let count = T::from_f64(pixels as f64);
    y.par_chunks_mut(step).zip(x.par_chunks(step * pixels)).for_each(|(y, x)| {
        vectorised(
            #[inline(always)]
            || {
                for (y, x) in y.iter_mut().zip(x.chunks_exact(pixels)) {
                    *y = sum(x) / count;
                }
            },
        );
    });
}

/// `dx`: each plane's gradient, spread evenly.
pub fn backward<T: Scalar>(dy: &[T], pixels: usize, dx: &mut [T]) {
    let step = piece(dy.len(), pixels);
    let count = T::from_f64(pixels as f64);
    dx.par_chunks_mut(step * pixels).zip(dy.par_chunks(step)).for_each(|(dx, dy)| {
        for (dx, dy) in dx.chunks_exact_mut(pixels).zip(dy) {
            dx.fill(*dy / count);
        }
    });
}
