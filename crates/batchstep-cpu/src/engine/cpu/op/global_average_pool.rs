//! The mean of each feature map: N x C x H x W to N x C, as `torch.mean(x, (2, 3))`.

use crate::engine::cpu::op::parallel::{for_each_piece, part, piece};
use crate::engine::cpu::op::scalar::{Scalar, sum, vectorised};

/// `y`: the mean of each plane of `pixels` values.
pub fn forward<T: Scalar>(x: &[T], pixels: usize, y: &mut [T]) {
    let step = piece(y.len(), pixels);
    let count = T::from_f64(pixels as f64);
    for_each_piece(y, step, |number, y| {
        let x = part(x, number, step * pixels);
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
    for_each_piece(dx, step * pixels, |number, dx| {
        for (dx, dy) in dx.chunks_exact_mut(pixels).zip(part(dy, number, step)) {
            dx.fill(*dy / count);
        }
    });
}
