//! The fully connected layer.

use rayon::prelude::*;

use super::array::Array;
use crate::network::Shape;

/// `y[n, o] = bias[o] + sum over i of weight[o, i] x[n, i]`.
pub fn forward(x: &Array, weight: &[f64], bias: Option<&[f64]>, output: Shape) -> Array {
    let (inputs, mut y) = (x.channels, Array::zeros(x.batch, output));
    y.for_each_plane(|n, o, y| {
        let sum: f64 = (0..inputs).map(|i| weight[o * inputs + i] * x.values[n * inputs + i]).sum();
        y[0] = sum + bias.map_or(0.0, |bias| bias[o]);
    });
    y
}

/// `dx[n, i] = sum over o of weight[o, i] dy[n, o]`.
pub fn input_gradient(x: &Array, weight: &[f64], dy: &Array) -> Array {
    let (inputs, outputs, mut dx) = (x.channels, dy.channels, x.zeros_like());
    dx.values.par_chunks_mut(inputs).enumerate().for_each(|(n, dx)| {
        for o in 0..outputs {
            for i in 0..inputs {
                dx[i] += weight[o * inputs + i] * dy.values[n * outputs + o];
            }
        }
    });
    dx
}

/// `dw[o, i] = sum over n of dy[n, o] x[n, i]`.
pub fn weight_gradient(x: &Array, dy: &Array) -> Vec<f64> {
    let (inputs, outputs) = (x.channels, dy.channels);
    let mut dw = vec![0.0; outputs * inputs];
    dw.par_chunks_mut(inputs).enumerate().for_each(|(o, dw)| {
        for n in 0..x.batch {
            for (i, dw) in dw.iter_mut().enumerate() {
                *dw += dy.values[n * outputs + o] * x.values[n * inputs + i];
            }
        }
    });
    dw
}
