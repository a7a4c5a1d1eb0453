//! The fully connected layer: `x w^T + bias`, `x` N x I, `weight` O x I, `bias` O, as `torch.nn.functional.linear`. Its products are
//! cut so that the weights, which are by far the largest operand, are read once and in order.

mod narrow;

use crate::engine::cpu::blocking::{Blocking, Factors};
use crate::engine::cpu::op::filters::Filters;
use crate::engine::cpu::op::parallel::{Shared, for_each, for_each_piece, for_each_task, threads};
use crate::engine::cpu::op::product::{Matrix, MatrixMut, Write, multiply_by_strips, transpose};
use crate::engine::cpu::op::scalar::{Scalar, add_up, vectorised};
use crate::engine::cpu::op::scratch::Scratch;
pub use narrow::suits as is_narrow;

/// Batch, features in, features out.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    pub batch: usize,
    pub features: usize,
    pub outputs: usize,
    pub blocking: Blocking,
}

impl Sizes {
    /// What products round their factors to.
    pub fn factors(self) -> Factors {
        self.blocking.factors(self.batch)
    }
}

/// Rows or columns of the weights for one task.
fn block(len: usize) -> usize {
    len.div_ceil(4 * threads()).clamp(16, 256).next_multiple_of(16)
}

/// Features whose inputs a task transposes.
const FEATURES: usize = 256;

/// `y = rectifier(x w^T + bias)`, computed as `y^T = w x^T`: the product's vectors then run along the batch, and the weights are read
/// as they lie in memory.
pub fn forward<T: Scalar>(s: Sizes, x: &[T], filters: Filters<'_, T>, y: &mut [T]) {
    if narrow::suits(s) {
        return narrow::forward(s, x, filters, y);
    }
    assert!(x.len() == s.batch * s.features, "{} numbers are not {} x {}", x.len(), s.batch, s.features);
    let stride = s.blocking.dense_columns(s.batch);
    let mut columns = Scratch::new(s.features * stride);
    for_each_piece(&mut columns, FEATURES * stride, |number, columns| {
        let (first, features) = (number * FEATURES, columns.len() / stride);
        // SAFETY: these features of every example are inside of `x`, by the assertion, and a row of `columns` has room for all examples.
        vectorised(
            #[inline(always)]
            || unsafe {
                let from = x.as_ptr().add(first);
                transpose::copy(from, [1, s.features], [features, s.batch], columns.as_mut_ptr(), stride);
            },
        );
        columns.chunks_exact_mut(stride).for_each(|column| column[s.batch..].fill(T::ZERO));
    });
    let columns = Matrix::new(&columns, s.features, stride, stride);
    let (shared, block, range) = (Shared::new(y), block(s.outputs).min(64), filters.rectifier.range());
    for_each_task(
        s.outputs.div_ceil(block),
        || Scratch::new(block * stride),
        |product, task| {
            let start = task * block;
            let rows = block.min(s.outputs - start);
            let weight = Matrix::new(&filters.weight[start * s.features..], rows, s.features, s.features);
            let target = MatrixMut::new(product, rows, stride, stride);
            multiply_by_strips(target, weight, columns, Write::Overwrite, s.factors(), s.blocking.product_columns);
            for image in 0..s.batch {
                // SAFETY: these outputs belong to this task.
                let y = unsafe { shared.slice(image * s.outputs + start, rows) };
                for (i, y) in y.iter_mut().enumerate() {
                    *y = range.clamp(product[i * stride + image] + filters.bias(start + i));
                }
            }
        },
    );
}

/// Outputs in one product of the input's gradient: as many rows of the weights as stay in the second-level cache, even
/// if the distance between them is a power of two.
const OUTPUTS: usize = 64;

/// `dx = dy w`; a task owns some features.
pub fn input_gradient<T: Scalar>(s: Sizes, weight: &[T], dy: &[T], dx: &mut [T]) {
    if narrow::suits(s) {
        return narrow::input_gradient(s, weight, dy, dx);
    }
    let (shared, block) = (Shared::new(dx), block(s.features));
    for_each(s.features.div_ceil(block), |task| {
        let start = task * block;
        let columns = block.min(s.features - start);
        for first in (0..s.outputs).step_by(OUTPUTS) {
            let rows = OUTPUTS.min(s.outputs - first);
            // SAFETY: these features belong to this task.
            let target = unsafe { MatrixMut::shared(&shared, start, s.batch, columns, s.features) };
            let weights = Matrix::new(&weight[first * s.features + start..], rows, columns, s.features);
            let mode = if first == 0 { Write::Overwrite } else { Write::AddTo };
            let slopes = Matrix::new(&dy[first..], s.batch, rows, s.outputs);
            multiply_by_strips(target, slopes, weights, mode, s.factors(), s.blocking.product_columns);
        }
    });
}

/// `dw = dy^T x`; a task owns some outputs.
pub fn weight_gradient<T: Scalar>(s: Sizes, x: &[T], dy: &[T], dw: &mut [T]) {
    if narrow::suits(s) {
        return narrow::weight_gradient(s, x, dy, dw);
    }
    let block = block(s.outputs);
    let x = Matrix::new(x, s.batch, s.features, s.features);
    let shared = Shared::new(dw);
    for_each(s.outputs.div_ceil(block), |task| {
        let start = task * block;
        let rows = block.min(s.outputs - start);
        // SAFETY: these outputs belong to this task.
        let target = unsafe { MatrixMut::shared(&shared, start * s.features, rows, s.features, s.features) };
        let slopes = Matrix::new(&dy[start..], s.batch, rows, s.outputs).transposed();
        multiply_by_strips(target, slopes, x, Write::Overwrite, s.factors(), s.blocking.product_columns);
    });
}

/// `db`: for each output the sum over the batch.
pub fn bias_gradient<T: Scalar>(s: Sizes, dy: &[T], db: &mut [T]) {
    if narrow::suits(s) {
        return narrow::bias_gradient(s, dy, db);
    }
    add_up(dy.chunks_exact(s.outputs), db);
}
