//! Convolution with groups; a depthwise convolution has one group for each channel.

use rayon::prelude::*;

use super::array::Array;
use crate::network::{Conv2d, Extent, Shape};

/// `y[n, o, p, q] = bias[o] + sum over i, r, s of weight[o, i, r, s] x[n, g I + i, p stride + r, q stride + s]`, where `x` is
/// padded with zeros, I is the number of input channels of a group, and g the group of `o`.
pub fn forward(x: &Array, weight: &[f64], bias: Option<&[f64]>, conv: &Conv2d, output: Shape) -> Array {
    let x = x.padded(conv.padding, 0.0);
    let mut y = Array::zeros(x.batch, output);
    let (height, width) = (y.height, y.width);
    let group_in = x.channels / conv.groups;
    y.for_each_plane(|n, o, y| {
        y.fill(bias.map_or(0.0, |bias| bias[o]));
        for i in 0..group_in {
            let x_plane = x.plane(n, group(o, conv) * group_in + i);
            for (r, s) in window(conv) {
                let weight = weight[weight_at(conv, group_in, [o, i, r, s])];
                for p in 0..height {
                    let row = &x_plane[(p * conv.stride.height + r) * x.width + s..];
                    for q in 0..width {
                        y[p * width + q] += weight * row[q * conv.stride.width];
                    }
                }
            }
        }
    });
    y
}

/// The gradient of `x`: each product of the forward sum contributes to the value of `x` that it used.
pub fn input_gradient(x: &Array, weight: &[f64], dy: &Array, conv: &Conv2d) -> Array {
    let mut dx = x.padded(conv.padding, 0.0).zeros_like();
    let (group_in, group_out, x_width) = (x.channels / conv.groups, conv.out_channels / conv.groups, dx.width);
    dx.for_each_plane(|n, c, dx| {
        for o in c / group_in * group_out..(c / group_in + 1) * group_out {
            let dy_plane = dy.plane(n, o);
            for (r, s) in window(conv) {
                let weight = weight[weight_at(conv, group_in, [o, c % group_in, r, s])];
                for p in 0..dy.height {
                    let row = &mut dx[(p * conv.stride.height + r) * x_width + s..];
                    for q in 0..dy.width {
                        row[q * conv.stride.width] += weight * dy_plane[p * dy.width + q];
                    }
                }
            }
        }
    });
    dx.cropped(conv.padding)
}

/// The gradient of the weights.
pub fn weight_gradient(x: &Array, dy: &Array, conv: &Conv2d) -> Vec<f64> {
    let x = x.padded(conv.padding, 0.0);
    let group_in = x.channels / conv.groups;
    let of_output = group_in * conv.kernel.area();
    let mut dw = vec![0.0; conv.out_channels * of_output];
    dw.par_chunks_mut(of_output).enumerate().for_each(|(o, dw)| {
        for (n, i) in (0..x.batch).flat_map(|n| (0..group_in).map(move |i| (n, i))) {
            let (x_plane, dy_plane) = (x.plane(n, group(o, conv) * group_in + i), dy.plane(n, o));
            for (r, s) in window(conv) {
                let mut sum = 0.0;
                for p in 0..dy.height {
                    let row = &x_plane[(p * conv.stride.height + r) * x.width + s..];
                    for q in 0..dy.width {
                        sum += dy_plane[p * dy.width + q] * row[q * conv.stride.width];
                    }
                }
                dw[weight_at(conv, group_in, [0, i, r, s])] += sum;
            }
        }
    });
    dw
}

/// The gradient of the bias.
pub fn bias_gradient(dy: &Array) -> Vec<f64> {
    (0..dy.channels).map(|o| (0..dy.batch).map(|n| dy.plane(n, o).iter().sum::<f64>()).sum()).collect()
}

/// The group of output channel `o`.
fn group(o: usize, conv: &Conv2d) -> usize {
    o / (conv.out_channels / conv.groups)
}

/// The rows and columns of the kernel.
fn window(conv: &Conv2d) -> impl Iterator<Item = (usize, usize)> {
    let Extent { height, width } = conv.kernel;
    (0..height).flat_map(move |r| (0..width).map(move |s| (r, s)))
}

fn weight_at(conv: &Conv2d, group_in: usize, [o, i, r, s]: [usize; 4]) -> usize {
    ((o * group_in + i) * conv.kernel.height + r) * conv.kernel.width + s
}
