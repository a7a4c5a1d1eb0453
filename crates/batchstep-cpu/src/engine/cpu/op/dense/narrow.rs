//! A fully connected layer of few features and outputs on many examples: the weights stay in the first-level cache, and
//! the examples are processed in blocks. A block is transposed first, so that vectors run along the examples and are
//! always full.

use std::ops::Range;

use super::Sizes;
use crate::engine::cpu::op::activation::Rectifier;
use crate::engine::cpu::op::activation::add_to;
use crate::engine::cpu::op::filters::Filters;
use crate::engine::cpu::op::parallel::{Shared, for_each_piece, for_each_task, part, threads};
use crate::engine::cpu::op::product::{Matrix, MatrixMut, Write, multiply, transpose::turn};
use crate::engine::cpu::op::scalar::{Scalar, add_up, sum, vectorised};
use crate::engine::cpu::op::scratch::Scratch;

/// Examples of a block.
const BLOCK: usize = 256;
/// The most features or outputs of such a layer.
const WIDEST: usize = 64;

/// Whether a layer is of this kind.
pub fn suits(s: Sizes) -> bool {
    s.features.max(s.outputs) <= WIDEST && s.batch >= 2 * BLOCK
}

/// The examples of block `task`.
fn examples(s: Sizes, task: usize) -> Range<usize> {
    task * BLOCK..((task + 1) * BLOCK).min(s.batch)
}

/// `to = weight from` for every example, block by block; `finish` is applied to each value with the number of its row.
fn by_blocks<T: Scalar>(
    s: Sizes,
    weight: Matrix<'_, T>,
    from: &[T],
    to: &mut [T],
    finish: impl Fn(usize, T) -> T + Sync,
) {
    let (from_width, to_width) = (from.len() / s.batch, to.len() / s.batch);
    let shared = Shared::new(to);
    let scratch = || (Scratch::new(from_width * BLOCK), Scratch::new(to_width * BLOCK));
    for_each_task(s.batch.div_ceil(BLOCK), scratch, |(columns, product), task| {
        let examples = examples(s, task);
        let block = &from[examples.start * from_width..examples.end * from_width];
        vectorised(
            #[inline(always)]
            || turn(block, from_width, BLOCK, columns),
        );
        let columns = Matrix::new(columns, from_width, BLOCK, BLOCK);
        multiply(MatrixMut::new(product, to_width, BLOCK, BLOCK), weight, columns, Write::Overwrite, s.factors());
        // SAFETY: these examples belong to this task.
        let block = unsafe { shared.slice(examples.start * to_width, examples.len() * to_width) };
        vectorised(
            #[inline(always)]
            || {
                for (at, row) in product.chunks_exact(BLOCK).enumerate() {
                    let places = block[at..].iter_mut().step_by(to_width);
                    places.zip(row).for_each(|(to, value)| *to = finish(at, *value));
                }
            },
        );
    });
}

/// `y = rectifier(x w^T + bias)`.
pub fn forward<T: Scalar>(s: Sizes, x: &[T], filters: Filters<'_, T>, y: &mut [T]) {
    let range = filters.rectifier.range();
    let weight = Matrix::new(filters.weight, s.outputs, s.features, s.features);
    by_blocks(s, weight, x, y, |output, value| range.clamp(value + filters.bias(output)));
}

/// `dx = dy w`.
pub fn input_gradient<T: Scalar>(s: Sizes, weight: &[T], dy: &[T], dx: &mut [T]) {
    let weight = Matrix::new(weight, s.outputs, s.features, s.features).transposed();
    by_blocks(s, weight, dy, dx, |_, value| value);
}

/// `dw = dy^T x`: several sums over parts of the batch, added in order.
pub fn weight_gradient<T: Scalar>(s: Sizes, x: &[T], dy: &[T], dw: &mut [T]) {
    let blocks = s.batch.div_ceil(BLOCK);
    let share = blocks.div_ceil(4 * threads());
    let parts = blocks.div_ceil(share);
    let mut copies = Scratch::new(parts * dw.len());
    let scratch = || (Scratch::zeros(s.features * BLOCK), Scratch::zeros(s.outputs * BLOCK));
    let (len, shared) = (dw.len(), Shared::new(&mut copies));
    for_each_task(parts, scratch, |(features, slopes), part| {
        // SAFETY: every part has one task.
        let copy = unsafe { shared.slice(part * len, len) };
        for task in part * share..((part + 1) * share).min(blocks) {
            let examples = examples(s, task);
            let (x, dy) = (
                &x[examples.start * s.features..examples.end * s.features],
                &dy[examples.start * s.outputs..examples.end * s.outputs],
            );
            vectorised(
                #[inline(always)]
                || {
                    turn(x, s.features, BLOCK, features);
                    turn(dy, s.outputs, BLOCK, slopes);
                },
            );
            let slopes = Matrix::new(slopes, s.outputs, examples.len(), BLOCK);
            let features = Matrix::new(features, s.features, examples.len(), BLOCK).transposed();
            let mode = if task == part * share { Write::Overwrite } else { Write::AddTo };
            multiply(
                MatrixMut::new(&mut *copy, s.outputs, s.features, s.features),
                slopes,
                features,
                mode,
                s.factors(),
            );
        }
    });
    dw.fill(T::ZERO);
    copies.chunks_exact(dw.len()).take(parts).for_each(|copy| add_to(Rectifier::Identity, copy, dw));
}

/// Blocks whose gradients of the bias a task adds up.
const TOGETHER: usize = 8;

/// `db`: for each output the sum over the batch.
pub fn bias_gradient<T: Scalar>(s: Sizes, dy: &[T], db: &mut [T]) {
    let mut parts = Scratch::new(s.batch.div_ceil(BLOCK) * s.outputs);
    for_each_piece(&mut parts, TOGETHER * s.outputs, |number, parts| {
        let mut columns = Scratch::new(s.outputs * BLOCK);
        for (block, sums) in (number * TOGETHER..).zip(parts.chunks_exact_mut(s.outputs)) {
            let dy = part(dy, block, BLOCK * s.outputs);
            vectorised(
                #[inline(always)]
                || {
                    turn(dy, s.outputs, BLOCK, &mut columns);
                    let examples = dy.len() / s.outputs;
                    sums.iter_mut()
                        .zip(columns.chunks_exact(BLOCK))
                        .for_each(|(to, column)| *to = sum(&column[..examples]));
                },
            );
        }
    });
    add_up(parts.chunks_exact(s.outputs), db);
}
