//! Dropout with a mask that depends only on the seed and the position: nothing is stored for the backward pass.

use crate::engine::cpu::op::parallel::{for_each_piece, piece};
use crate::engine::cpu::op::scalar::{Scalar, vectorised};
use crate::engine::dropout::Mask;

/// Scales the elements that stay, and zeroes the others.
pub fn apply<T: Scalar>(mask: Mask, x: &mut [T]) {
    // A random number costs about as much as moving eight scalars.
    let step = piece(x.len(), 8);
    let scale = T::from_f64(mask.scale);
    for_each_piece(x, step, |i, x| {
        vectorised(
            #[inline(always)]
            || {
                for (at, x) in x.iter_mut().enumerate() {
                    *x = if mask.keeps(i * step + at) { *x * scale } else { T::ZERO };
                }
            },
        );
    });
}
