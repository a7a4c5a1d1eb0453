//! Numbers with four indices.

use rayon::prelude::*;

use crate::network::{Extent, Padding, Shape};

/// N x C x H x W numbers in that order; a flat vector of features has H = W = 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    pub batch: usize,
    pub channels: usize,
    pub height: usize,
    pub width: usize,
    pub values: Vec<f64>,
}

impl Array {
    /// Zeros for a batch of `shape`.
    pub fn zeros(batch: usize, shape: Shape) -> Self {
        let (channels, Extent { height, width }) = (shape.channels(), shape.extent());
        Self { batch, channels, height, width, values: vec![0.0; batch * shape.count()] }
    }

    /// Zeros for a batch of arrays like this one.
    pub fn zeros_like(&self) -> Self {
        Self { values: vec![0.0; self.values.len()], ..*self }
    }

    /// H x W numbers of channel `c` of example `n`.
    pub fn plane(&self, n: usize, c: usize) -> &[f64] {
        let size = self.height * self.width;
        &self.values[(n * self.channels + c) * size..][..size]
    }

    /// Row `y` of that plane.
    pub fn row(&self, n: usize, c: usize, y: usize) -> &[f64] {
        &self.plane(n, c)[y * self.width..][..self.width]
    }

    /// C x H x W numbers of example `n`.
    pub fn example(&self, n: usize) -> &[f64] {
        let size = self.values.len() / self.batch;
        &self.values[n * size..][..size]
    }

    /// Calls `fill(n, example)` for every example, on all threads.
    pub fn for_each_example(&mut self, fill: impl Fn(usize, &mut [f64]) + Sync) {
        let size = self.values.len() / self.batch;
        self.values.par_chunks_mut(size).enumerate().for_each(|(n, example)| fill(n, example));
    }

    /// Calls `fill(n, c, plane)` for every plane, on all threads.
    pub fn for_each_plane(&mut self, fill: impl Fn(usize, usize, &mut [f64]) + Sync) {
        let (channels, size) = (self.channels, self.height * self.width);
        let planes = self.values.par_chunks_mut(size).enumerate();
        planes.for_each(|(number, plane)| fill(number / channels, number % channels, plane));
    }

    /// The same array with `value` around each plane.
    pub fn padded(&self, padding: Padding, value: f64) -> Self {
        let Padding { top, bottom, left, right } = padding;
        let (height, width) = (self.height + top + bottom, self.width + left + right);
        let values = vec![value; self.batch * self.channels * height * width];
        let mut padded = Self { height, width, values, ..*self };
        padded.for_each_plane(|n, c, plane| {
            for y in 0..self.height {
                plane[(y + top) * width + left..][..self.width].copy_from_slice(self.row(n, c, y));
            }
        });
        padded
    }

    /// Undoes [`Array::padded`].
    pub fn cropped(&self, padding: Padding) -> Self {
        let Padding { top, bottom, left, right } = padding;
        let (height, width) = (self.height - top - bottom, self.width - left - right);
        let mut cropped =
            Self { height, width, values: vec![0.0; self.batch * self.channels * height * width], ..*self };
        cropped.for_each_plane(|n, c, plane| {
            for (y, row) in plane.chunks_exact_mut(width).enumerate() {
                row.copy_from_slice(&self.row(n, c, y + top)[left..][..width]);
            }
        });
        cropped
    }
}
