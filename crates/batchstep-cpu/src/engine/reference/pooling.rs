//! Max-pooling and global average pooling.

use super::array::Array;
use crate::network::{MaxPool2d, Shape};

/// `y[n, c, p, q]`: the largest of the window of `x` that begins at `p stride, q stride`, where `x` is padded with minus
/// infinities.
pub fn max_forward(x: &Array, pool: &MaxPool2d, output: Shape) -> Array {
    let x = x.padded(pool.padding, f64::NEG_INFINITY);
    let mut y = Array::zeros(x.batch, output);
    let width = y.width;
    y.for_each_plane(|n, c, y| {
        for (at, y) in y.iter_mut().enumerate() {
            *y = x.plane(n, c)[largest(&x, n, c, pool, [at / width, at % width])];
        }
    });
    y
}

/// Each output's gradient goes to the input that its value came from; among equal inputs, to the first in the order of
/// rows and columns, as in PyTorch.
pub fn max_input_gradient(x: &Array, dy: &Array, pool: &MaxPool2d) -> Array {
    let padded = x.padded(pool.padding, f64::NEG_INFINITY);
    let mut dx = padded.zeros_like();
    dx.for_each_plane(|n, c, dx| {
        for (at, dy_value) in dy.plane(n, c).iter().enumerate() {
            dx[largest(&padded, n, c, pool, [at / dy.width, at % dy.width])] += dy_value;
        }
    });
    dx.cropped(pool.padding)
}

/// The place in its plane of the largest number of output (p, q)'s window.
fn largest(x: &Array, n: usize, c: usize, pool: &MaxPool2d, [p, q]: [usize; 2]) -> usize {
    let plane = x.plane(n, c);
    let mut place = p * pool.stride.height * x.width + q * pool.stride.width;
    for r in 0..pool.kernel.height {
        for s in 0..pool.kernel.width {
            let at = (p * pool.stride.height + r) * x.width + q * pool.stride.width + s;
            if plane[at] > plane[place] {
                place = at;
            }
        }
    }
    place
}

/// `y[n, c]`: the mean of a plane.
pub fn average_forward(x: &Array, output: Shape) -> Array {
    let mut y = Array::zeros(x.batch, output);
    y.for_each_plane(|n, c, y| y[0] = x.plane(n, c).iter().sum::<f64>() / (x.height * x.width) as f64);
    y
}

/// Every number of a plane has an equal share in its mean.
pub fn average_input_gradient(x: &Array, dy: &Array) -> Array {
    let mut dx = x.zeros_like();
    dx.for_each_plane(|n, c, dx| dx.fill(dy.values[n * dy.channels + c] / (x.height * x.width) as f64));
    dx
}
