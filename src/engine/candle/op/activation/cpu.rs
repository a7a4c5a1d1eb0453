//! Rectifiers, element by element; NaN passes through, as in PyTorch.

use rayon::prelude::*;

use crate::engine::candle::op::parallel::piece;
use crate::engine::candle::op::scalar::{Scalar, vectorised};

/// `min(max(x, 0), ceiling)`.
pub fn forward<T: Scalar>(x: &[T], ceiling: Option<f64>) -> Vec<T> {
    let mut y = vec![T::ZERO; x.len()];
    let step = piece(x.len(), 1);
    let ceiling = ceiling.map(T::from_f64);
    y.par_chunks_mut(step).zip(x.par_chunks(step)).for_each(|(y, x)| {
        vectorised(
            #[inline(always)]
            || match ceiling {
                None => y.iter_mut().zip(x).for_each(|(y, x)| *y = if *x <= T::ZERO { T::ZERO } else { *x }),
                Some(top) => y.iter_mut().zip(x).for_each(|(y, x)| {
                    let low = if *x <= T::ZERO { T::ZERO } else { *x };
                    *y = if low >= top { top } else { low };
                }),
            },
        );
    });
    y
}

/// `dy` where the output is neither 0 nor at the ceiling.
pub fn backward<T: Scalar>(y: &[T], dy: &[T], ceiling: Option<f64>) -> Vec<T> {
    let mut dx = vec![T::ZERO; y.len()];
    let step = piece(y.len(), 1);
    let ceiling = ceiling.map_or(T::ZERO - T::NEG_INFINITY, T::from_f64);
    dx.par_chunks_mut(step).zip(y.par_chunks(step).zip(dy.par_chunks(step))).for_each(|(dx, (y, dy))| {
        vectorised(
            #[inline(always)]
            || {
                for (dx, (y, dy)) in dx.iter_mut().zip(y.iter().zip(dy)) {
                    *dx = if (*y <= T::ZERO) | (*y >= ceiling) { T::ZERO } else { *dy };
                }
            },
        );
    });
    dx
}
