//! Max-pooling, plane by plane.

use std::ops::Range;

use candle_core::{Result, bail};
use rayon::prelude::*;

use crate::engine::candle::op::parallel::piece;
use crate::engine::candle::op::scalar::Scalar;
use crate::network::MaxPool2d;

/// The windows of one plane.
#[derive(Clone, Copy, Debug)]
pub struct Windows {
    /// Height, width.
    pub input: (usize, usize),
    pub output: (usize, usize),
    p: MaxPool2d,
}

impl Windows {
    /// # Errors
    /// Where a window does not fit on the padded plane, or could lie in the padding alone.
    pub fn new(input: (usize, usize), p: &MaxPool2d) -> Result<Self> {
        let MaxPool2d { kernel, stride, padding: pad } = *p;
        if stride.0 == 0 || stride.1 == 0 {
            bail!("max_pool2d: the stride must not be 0");
        }
        if pad.top.max(pad.bottom) >= kernel.0 || pad.left.max(pad.right) >= kernel.1 {
            bail!("max_pool2d: padding {pad:?} must be smaller than the kernel {kernel:?}");
        }
        let size = |len: usize, kernel: usize, stride: usize| len.checked_sub(kernel).map(|rest| rest / stride + 1);
        let height = size(input.0 + pad.top + pad.bottom, kernel.0, stride.0);
        let width = size(input.1 + pad.left + pad.right, kernel.1, stride.1);
        let (Some(height), Some(width)) = (height, width) else {
            bail!("max_pool2d: a {kernel:?} kernel does not fit on a padded plane of {input:?}");
        };
        if u32::try_from(input.0 * input.1).is_err() {
            bail!("max_pool2d: a plane of {input:?} is too large");
        }
        Ok(Self { input, output: (height, width), p: *p })
    }

    /// The input rows and columns under the window of an output.
    #[inline(always)]
    fn window(&self, row: usize, column: usize) -> (Range<usize>, Range<usize>) {
        let range = |at: usize, stride: usize, before: usize, kernel: usize, len: usize| {
            (at * stride).saturating_sub(before)..(at * stride + kernel - before).min(len)
        };
        let MaxPool2d { kernel, stride, padding } = self.p;
        (
            range(row, stride.0, padding.top, kernel.0, self.input.0),
            range(column, stride.1, padding.left, kernel.1, self.input.1),
        )
    }

    /// Every window lies inside of the plane and is 2x2, as in the VGG networks.
    fn is_plain_2x2(&self) -> bool {
        self.p.kernel == (2, 2) && self.p.padding == Default::default()
    }
}

/// The maxima, and where in its plane each came from.
pub fn forward<T: Scalar>(windows: &Windows, x: &[T]) -> (Vec<T>, Vec<u32>) {
    let (pixels, outputs) = (windows.input.0 * windows.input.1, windows.output.0 * windows.output.1);
    let planes = x.len() / pixels;
    let mut y = vec![T::ZERO; planes * outputs];
    let mut winners = vec![0u32; planes * outputs];
    let step = piece(planes, pixels);
    let pieces = y.par_chunks_mut(step * outputs).zip(winners.par_chunks_mut(step * outputs));
    pieces.zip(x.par_chunks(step * pixels)).for_each(|((y, winners), x)| {
        let planes = y.chunks_exact_mut(outputs).zip(winners.chunks_exact_mut(outputs));
        for ((y, winners), x) in planes.zip(x.chunks_exact(pixels)) {
            let kernel = if windows.is_plain_2x2() { plane_2x2 } else { plane };
            kernel(windows, x, y, winners);
        }
    });
    (y, winners)
}

/// True where `value` takes the place of the maximum so far: only if larger, so that the first of equals stays.
#[inline(always)]
fn beats<T: Scalar>(value: T, maximum: T) -> bool {
    #[allow(clippy::eq_op)] // Only NaN differs from itself.
    let is_nan = value != value;
    value > maximum || is_nan
}

fn plane<T: Scalar>(windows: &Windows, x: &[T], y: &mut [T], winners: &mut [u32]) {
    let width = windows.input.1;
    for (i, (y, winner)) in y.iter_mut().zip(winners).enumerate() {
        let (rows, columns) = windows.window(i / windows.output.1, i % windows.output.1);
        let mut best = (T::NEG_INFINITY, rows.start * width + columns.start);
        for row in rows {
            for at in row * width + columns.start..row * width + columns.end {
                if beats(x[at], best.0) {
                    best = (x[at], at);
                }
            }
        }
        *y = best.0;
        *winner = best.1 as u32;
    }
}

fn plane_2x2<T: Scalar>(windows: &Windows, x: &[T], y: &mut [T], winners: &mut [u32]) {
    let (width, (step_y, step_x)) = (windows.input.1, windows.p.stride);
    let rows = y.chunks_exact_mut(windows.output.1).zip(winners.chunks_exact_mut(windows.output.1));
    for (row, (y, winners)) in rows.enumerate() {
        let start = row * step_y * width;
        let (upper, lower) = (&x[start..start + width], &x[start + width..start + 2 * width]);
        for (column, (y, winner)) in y.iter_mut().zip(winners).enumerate() {
            let left = column * step_x;
            let mut best = (upper[left], 0);
            for (value, offset) in [(upper[left + 1], 1), (lower[left], width), (lower[left + 1], width + 1)] {
                best = if beats(value, best.0) { (value, offset) } else { best };
            }
            *y = best.0;
            *winner = (start + left + best.1) as u32;
        }
    }
}

/// Adds each output's gradient to the place that its maximum came from.
pub fn backward<T: Scalar>(windows: &Windows, dy: &[T], winners: &[u32]) -> Vec<T> {
    let (pixels, outputs) = (windows.input.0 * windows.input.1, windows.output.0 * windows.output.1);
    let planes = dy.len() / outputs;
    let mut dx = vec![T::ZERO; planes * pixels];
    let step = piece(planes, pixels);
    let pieces = dy.par_chunks(step * outputs).zip(winners.par_chunks(step * outputs));
    dx.par_chunks_mut(step * pixels).zip(pieces).for_each(|(dx, (dy, winners))| {
        let planes = dy.chunks_exact(outputs).zip(winners.chunks_exact(outputs));
        for (dx, (dy, winners)) in dx.chunks_exact_mut(pixels).zip(planes) {
            dy.iter().zip(winners).for_each(|(dy, winner)| dx[*winner as usize] += *dy);
        }
    });
    dx
}
