//! The products of a fully connected layer, cut so that the weights, by far the largest operand, are read once and in
//! order.

use rayon::prelude::*;

use crate::engine::candle::op::parallel::{Shared, for_each_task};
use crate::engine::candle::op::product::{Matrix, MatrixMut, Target, multiply};
use crate::engine::candle::op::scalar::Scalar;

/// Batch, features in, features out.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    pub batch: usize,
    pub features: usize,
    pub outputs: usize,
}

/// Rows or columns of the weights for one task.
fn block(len: usize) -> usize {
    len.div_ceil(4 * rayon::current_num_threads()).clamp(16, 256).next_multiple_of(16)
}

/// `y = x w^T + bias`, computed as `y^T = w x^T`: the product's vectors then run along the batch, and the weights are read
/// as they lie in memory.
pub fn forward<T: Scalar>(s: Sizes, x: &[T], weight: &[T], bias: Option<&[T]>) -> Vec<T> {
    let stride = s.batch.next_multiple_of(16);
    let mut columns = vec![T::ZERO; s.features * stride];
    columns.par_chunks_mut(stride).with_min_len(256).enumerate().for_each(|(feature, column)| {
        column.iter_mut().zip(x[feature..].iter().step_by(s.features)).for_each(|(to, from)| *to = *from);
    });
    let columns = Matrix::new(&columns, (s.features, stride), stride);
    let mut y = vec![T::ZERO; s.batch * s.outputs];
    let (shared, block) = (Shared::new(&mut y), block(s.outputs).min(64));
    for_each_task(
        s.outputs.div_ceil(block),
        || vec![T::ZERO; block * stride],
        |product, task| {
            let start = task * block;
            let rows = block.min(s.outputs - start);
            let filters = Matrix::new(&weight[start * s.features..], (rows, s.features), s.features);
            multiply(MatrixMut::new(product, (rows, stride), stride), filters, columns, Target::Overwrite);
            for image in 0..s.batch {
                // SAFETY: these outputs belong to this task.
                let y = unsafe { shared.slice(image * s.outputs + start, rows) };
                for (i, y) in y.iter_mut().enumerate() {
                    *y = product[i * stride + image] + bias.map_or(T::ZERO, |bias| bias[start + i]);
                }
            }
        },
    );
    y
}

/// Outputs in one product of the input's gradient: as many rows of the weights as stay in the second-level cache, although
/// their distance may be a power of two.
const OUTPUTS: usize = 64;

/// `dx = dy w`; a task owns some features.
pub fn input_gradient<T: Scalar>(s: Sizes, weight: &[T], dy: &[T]) -> Vec<T> {
    let mut dx = vec![T::ZERO; s.batch * s.features];
    let (shared, block) = (Shared::new(&mut dx), block(s.features));
    for_each_task(
        s.features.div_ceil(block),
        || (),
        |(), task| {
            let start = task * block;
            let columns = block.min(s.features - start);
            for first in (0..s.outputs).step_by(OUTPUTS) {
                let rows = OUTPUTS.min(s.outputs - first);
                // SAFETY: these features belong to this task.
                let target = unsafe { MatrixMut::shared(&shared, start, (s.batch, columns), s.features) };
                let weights = Matrix::new(&weight[first * s.features + start..], (rows, columns), s.features);
                multiply(target, Matrix::new(&dy[first..], (s.batch, rows), s.outputs), weights, Target::AddTo);
            }
        },
    );
    dx
}

/// `dw = dy^T x`; a task owns some outputs.
pub fn weight_gradient<T: Scalar>(s: Sizes, x: &[T], dy: &[T]) -> Vec<T> {
    let mut dw = vec![T::ZERO; s.outputs * s.features];
    let block = block(s.outputs);
    let x = Matrix::new(x, (s.batch, s.features), s.features);
    let shared = Shared::new(&mut dw);
    for_each_task(
        s.outputs.div_ceil(block),
        || (),
        |(), task| {
            let start = task * block;
            let rows = block.min(s.outputs - start);
            // SAFETY: these outputs belong to this task.
            let target = unsafe { MatrixMut::shared(&shared, start * s.features, (rows, s.features), s.features) };
            let slopes = Matrix::new(&dy[start..], (s.batch, rows), s.outputs).transposed();
            multiply(target, slopes, x, Target::Overwrite);
        },
    );
    dw
}

/// For each output the sum over the batch.
pub fn bias_gradient<T: Scalar>(s: Sizes, dy: &[T]) -> Vec<T> {
    let mut db = vec![T::ZERO; s.outputs];
    for row in dy.chunks_exact(s.outputs) {
        db.iter_mut().zip(row).for_each(|(db, dy)| *db += *dy);
    }
    db
}
