//! Filters of 3 x 3 taps transformed, and their gradients transformed back.
//!
//! Transformed filters are [`COMPONENTS`] matrices of output x input channels, one after the other.

use super::tiles::{COMPONENTS, Components};
use super::transform::{SIDE, TAPS, filter, filter_adjoint};
use crate::engine::cpu::op::parallel::{Shared, for_each_task, piece};
use crate::engine::cpu::op::scalar::{Scalar, add_up, vectorised};
use crate::engine::cpu::op::scratch::Scratch;

/// The orientation of a filter on the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// As it is.
    None,
    /// By 180 degrees, as the gradient of the input sees it.
    Half,
}

/// `G w G^T` for every filter of `weight`, output x input x 3 x 3.
pub fn transformed<T: Scalar>(outputs: usize, inputs: usize, weight: &[T], turn: Turn) -> Scratch<T> {
    let mut components = Scratch::new(COMPONENTS * outputs * inputs);
    let shared = Shared::new(&mut components);
    let step = piece(outputs, inputs * COMPONENTS);
    let scratch = || Scratch::new(SIDE * TAPS * inputs);
    for_each_task(outputs.div_ceil(step), scratch, |half, task| {
        for output in task * step..((task + 1) * step).min(outputs) {
            let filters = weight[output * inputs * TAPS * TAPS..][..inputs * TAPS * TAPS].as_chunks().0;
            // SAFETY: this output's rows of all components belong to this task.
            let into = unsafe { Components::new(&shared, output * inputs, outputs * inputs) };
            vectorised(
                #[inline(always)]
                || transform(filters, turn, half, into),
            );
        }
    });
    components
}

/// Columns first, then rows; `half` is room for what lies between.
#[inline(always)]
fn transform<T: Scalar>(filters: &[[T; TAPS * TAPS]], turn: Turn, half: &mut [T], into: Components<'_, '_, T>) {
    let inputs = filters.len();
    for column in 0..TAPS {
        let [top, middle, bottom] = match turn {
            Turn::None => [column, TAPS + column, 2 * TAPS + column],
            Turn::Half => [3 * TAPS - 1 - column, 2 * TAPS - 1 - column, TAPS - 1 - column],
        };
        // Component row a of column s is row a * TAPS + s.
        let mut rows = half.chunks_exact_mut(inputs).skip(column).step_by(TAPS);
        let [a, b, c, d, e, f]: [&mut [T]; SIDE] = std::array::from_fn(|_| rows.next().unwrap_or_default());
        for (i, g) in filters.iter().enumerate() {
            [a[i], b[i], c[i], d[i], e[i], f[i]] = filter([g[top], g[middle], g[bottom]]);
        }
    }
    for (row, half) in half.chunks_exact(TAPS * inputs).take(SIDE).enumerate() {
        let [x, y, z]: [&[T]; TAPS] = std::array::from_fn(|column| &half[column * inputs..][..inputs]);
        let [a, b, c, d, e, f] = into.components::<SIDE>(row * SIDE, inputs);
        for i in 0..inputs {
            [a[i], b[i], c[i], d[i], e[i], f[i]] = filter([x[i], y[i], z[i]]);
        }
    }
}

/// `dw = G^T du G` for every filter, where `du` is the sum of several gradients of the transformed filters, added in order.
pub fn transformed_back<T: Scalar>(outputs: usize, inputs: usize, parts: &[T], dw: &mut [T]) {
    let len = COMPONENTS * outputs * inputs;
    let step = piece(outputs, inputs * COMPONENTS);
    let scratch = || (Scratch::<T>::new(SIDE * TAPS * inputs), Scratch::<T>::new(SIDE * inputs));
    let filters = inputs * TAPS * TAPS;
    let shared = Shared::new(dw);
    for_each_task(outputs.div_ceil(step), scratch, |(half, total), task| {
        // SAFETY: these filters belong to this task.
        let dw = unsafe { shared.slice(task * step * filters, step.min(outputs - task * step) * filters) };
        for (i, dw) in dw.chunks_exact_mut(filters).enumerate() {
            let row = (task * step + i) * inputs;
            vectorised(
                #[inline(always)]
                || {
                    for (side, half) in half.chunks_exact_mut(TAPS * inputs).take(SIDE).enumerate() {
                        for (column, total) in total.chunks_exact_mut(inputs).take(SIDE).enumerate() {
                            let first = (side * SIDE + column) * outputs * inputs + row;
                            add_up(parts.chunks_exact(len).map(|part| &part[first..first + inputs]), total);
                        }
                        half_back(total, inputs, half);
                    }
                    whole_back(half, inputs, dw.as_chunks_mut().0);
                },
            );
        }
    });
}

/// One row of components back to three columns.
#[inline(always)]
fn half_back<T: Scalar>(components: &[T], inputs: usize, half: &mut [T]) {
    let [a, b, c, d, e, f]: [&[T]; SIDE] = std::array::from_fn(|column| &components[column * inputs..][..inputs]);
    let (x, rest) = half.split_at_mut(inputs);
    let (y, z) = rest.split_at_mut(inputs);
    for i in 0..inputs {
        [x[i], y[i], z[i]] = filter_adjoint([a[i], b[i], c[i], d[i], e[i], f[i]]);
    }
}

/// The columns of all rows of components back to filters.
#[inline(always)]
fn whole_back<T: Scalar>(half: &[T], inputs: usize, filters: &mut [[T; TAPS * TAPS]]) {
    for column in 0..TAPS {
        let [a, b, c, d, e, f]: [&[T]; SIDE] =
            std::array::from_fn(|side| &half[(side * TAPS + column) * inputs..][..inputs]);
        for (i, dw) in filters.iter_mut().enumerate() {
            [dw[column], dw[TAPS + column], dw[2 * TAPS + column]] =
                filter_adjoint([a[i], b[i], c[i], d[i], e[i], f[i]]);
        }
    }
}
