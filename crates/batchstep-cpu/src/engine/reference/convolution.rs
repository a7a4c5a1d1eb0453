//! Convolution with groups; a depthwise convolution has one group for each channel.
//!
//! `y[n, o, p, q] = bias[o] + sum over i, r, s of weight[o, i, r, s] x[n, g I + i, p stride + r, q stride + s]`, where `x` is
//! padded with zeros, I is the number of input channels of a group, and g the group of `o`. The numbers that an output uses lie apart
//! in `x`, so they are copied first, in the order of the weights: [`windows`].

use std::ops::Range;

use rayon::prelude::*;

use super::array::Array;
use crate::network::{Conv2d, Extent, Shape};

/// The output, of the shape `output` for each example.
pub fn forward(x: &Array, weight: &[f64], bias: Option<&[f64]>, conv: &Conv2d, output: Shape) -> Array {
    let x = x.padded(conv.padding, 0.0);
    let mut y = Array::zeros(x.batch, output);
    let (height, width, channels) = (y.height, y.width, conv.out_channels);
    let [group_out, of_output, of_window] = sizes(&x, conv);
    // For each place in a window the weights of all outputs of its group.
    let by_place = weight
        .chunks(group_out * of_output)
        .flat_map(|group| (0..of_output).flat_map(move |place| group.iter().skip(place).step_by(of_output).copied()))
        .collect::<Vec<f64>>();
    y.for_each_example(|n, y| {
        for p in 0..height {
            let windows = windows(&x, conv, n, p, width);
            let mut sums = bias.map_or_else(|| vec![0.0; channels], <[f64]>::to_vec).repeat(width);
            for (place, weights) in by_place.chunks(group_out).enumerate() {
                let group = place / of_output * group_out;
                for (sums, window) in sums.chunks_mut(channels).zip(windows.chunks(of_window)) {
                    add(&mut sums[group..group + group_out], window[place], weights);
                }
            }
            for (i, sum) in sums.into_iter().enumerate() {
                y[(i % channels * height + p) * width + i / channels] = sum;
            }
        }
    });
    y
}

/// The gradient of `x`: each product of the forward sum contributes to the value of `x` that it used.
pub fn input_gradient(x: &Array, weight: &[f64], dy: &Array, conv: &Conv2d) -> Array {
    let padded = x.padded(conv.padding, 0.0);
    let [group_out, of_output, of_window] = sizes(&padded, conv);
    let mut dx = padded.zeros_like();
    dx.for_each_example(|n, dx| {
        for p in 0..dy.height {
            let mut windows = vec![0.0; dy.width * of_window];
            for (o, weights) in weight.chunks(of_output).enumerate() {
                let group = o / group_out * of_output;
                for (dy, window) in dy.row(n, o, p).iter().zip(windows.chunks_mut(of_window)) {
                    add(&mut window[group..group + of_output], *dy, weights);
                }
            }
            let rows = rows(&padded, conv, p, dy.width).zip(windows.chunks(conv.kernel.width));
            rows.for_each(|(row, gradients)| add(&mut dx[row], 1.0, gradients));
        }
    });
    dx.cropped(conv.padding)
}

/// The gradient of the weights.
pub fn weight_gradient(x: &Array, dy: &Array, conv: &Conv2d) -> Vec<f64> {
    let x = x.padded(conv.padding, 0.0);
    let [group_out, of_output, of_window] = sizes(&x, conv);
    let mut dw = vec![0.0; conv.out_channels * of_output];
    for (n, p) in (0..x.batch).flat_map(|n| (0..dy.height).map(move |p| (n, p))) {
        let windows = windows(&x, conv, n, p, dy.width);
        dw.par_chunks_mut(of_output).enumerate().for_each(|(o, dw)| {
            let group = o / group_out * of_output;
            for (dy, window) in dy.row(n, o, p).iter().zip(windows.chunks(of_window)) {
                add(dw, *dy, &window[group..group + of_output]);
            }
        });
    }
    dw
}

/// The gradient of the bias.
pub fn bias_gradient(dy: &Array) -> Vec<f64> {
    (0..dy.channels).map(|o| (0..dy.batch).map(|n| dy.plane(n, o).iter().sum::<f64>()).sum()).collect()
}

/// Output channels of a group; numbers that one output uses, I x R x S; numbers in a window of all input channels.
fn sizes(x: &Array, conv: &Conv2d) -> [usize; 3] {
    let of_window = x.channels * conv.kernel.area();
    [conv.out_channels / conv.groups, of_window / conv.groups, of_window]
}

/// The numbers of the padded `x` that the outputs of row `p` use: `width` windows of C x R x S.
fn windows(x: &Array, conv: &Conv2d, n: usize, p: usize, width: usize) -> Vec<f64> {
    let example = x.example(n);
    rows(x, conv, p, width).flat_map(|row| example[row].iter().copied()).collect()
}

/// Where the rows of those windows lie in an example.
fn rows(x: &Array, conv: &Conv2d, p: usize, width: usize) -> impl Iterator<Item = Range<usize>> {
    let (stride, Extent { height, width: s_count }) = (conv.stride, conv.kernel);
    let (channels, x_height, x_width) = (x.channels, x.height, x.width);
    let of_channel = move |q: usize, c: usize| {
        (0..height).map(move |r| {
            let from = (c * x_height + p * stride.height + r) * x_width + q * stride.width;
            from..from + s_count
        })
    };
    (0..width).flat_map(move |q| (0..channels).flat_map(move |c| of_channel(q, c)))
}

fn add(to: &mut [f64], factor: f64, from: &[f64]) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to += factor * from);
}
