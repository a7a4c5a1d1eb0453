//! Filters of 3 x 3 taps transformed, and their gradients transformed back.
//!
//! Transformed filters are [`COMPONENTS`] matrices of output x input channels, one after the other.

use std::ops::Range;

use pulp::{Arch, Simd, WithSimd};

use super::tiles::{COMPONENTS, Components};
use super::transform::{SIDE, TAPS, filter, filter_adjoint};
use crate::engine::cpu::op::parallel::{Shared, for_each, for_each_piece, piece};
use crate::engine::cpu::op::product::{Matrix, transpose};
use crate::engine::cpu::op::scalar::Scalar;
use crate::engine::cpu::op::scratch::Scratch;
use crate::engine::cpu::op::vector::Register;

/// Filters of output x input x 3 x 3 taps, as they lie in memory.
#[derive(Clone, Copy)]
pub struct Weights<'a, T> {
    pub values: &'a [T],
    pub outputs: usize,
    pub inputs: usize,
    /// Whether they are turned by 180 degrees, as the gradient of the input needs them.
    pub turned: bool,
}

impl<T: Scalar> Weights<'_, T> {
    /// `G w G^T` for every filter.
    pub fn transformed(&self) -> Scratch<T> {
        let Self { outputs, inputs, .. } = *self;
        let mut components = Scratch::new(COMPONENTS * outputs * inputs);
        let shared = Shared::new(&mut components);
        let step = piece(outputs, inputs * COMPONENTS);
        for_each(outputs.div_ceil(step), |task| {
            let some = task * step..((task + 1) * step).min(outputs);
            let first = some.start * inputs;
            // SAFETY: these outputs' rows of all components belong to this task.
            unsafe { self.transform(some, 0..inputs, &shared, (first, outputs * inputs)) };
        });
        components
    }

    /// Transforms the filters of some outputs and inputs. `into` gets a row for each output; the first row is at
    /// `first`, and its components are `stride` apart.
    ///
    /// # Safety
    /// No other task may use these rows.
    pub unsafe fn transform(
        &self,
        outputs: Range<usize>,
        inputs: Range<usize>,
        into: &Shared<'_, T>,
        (first, stride): (usize, usize),
    ) {
        for (row, output) in outputs.enumerate() {
            let start = (output * self.inputs + inputs.start) * TAPS * TAPS;
            let filters = &self.values[start..][..inputs.len() * TAPS * TAPS];
            // SAFETY: by the caller's promise.
            let into = unsafe { Components::new(into, first + row * inputs.len(), stride) };
            Arch::new().dispatch(Transform { filters, turned: self.turned, into });
        }
    }

    /// The filters from some source channels to some target channels, transformed into `room`.
    pub fn matrices<'b>(&self, targets: Range<usize>, sources: Range<usize>, room: &'b mut [T]) -> Matrices<'b, T> {
        let turned = self.turned;
        let (some, of) = if turned { (sources, targets) } else { (targets, sources) };
        let (outputs, inputs) = (some.len(), of.len());
        // SAFETY: only the caller uses the room.
        unsafe { self.transform(some, of, &Shared::new(&mut *room), (0, outputs * inputs)) };
        Matrices { components: room, outputs, inputs, turned }
    }
}

/// Transformed filters, as matrices of target x source channels.
pub struct Matrices<'a, T> {
    pub components: &'a [T],
    /// Rows and columns as they lie in memory.
    pub outputs: usize,
    pub inputs: usize,
    pub turned: bool,
}

impl<T> Matrices<'_, T> {
    /// Some target channels of a component.
    pub fn rows(&self, component: usize, rows: Range<usize>) -> Matrix<'_, T> {
        let Self { outputs, inputs, .. } = *self;
        let component = &self.components[component * outputs * inputs..][..outputs * inputs];
        match self.turned {
            true => Matrix::new(&component[rows.start..], outputs, rows.len(), inputs).transposed(),
            false => Matrix::new(&component[rows.start * inputs..], rows.len(), inputs, inputs),
        }
    }
}

/// `dw = G^T du G` for every filter, where `du` is the sum of several gradients of the transformed filters, added in order.
pub fn transformed_back<T: Scalar>(outputs: usize, inputs: usize, parts: &[T], dw: &mut [T]) {
    let len = COMPONENTS * outputs * inputs;
    let step = piece(outputs, inputs * COMPONENTS);
    for_each_piece(dw, step * inputs * TAPS * TAPS, |number, dw| {
        for (i, dw) in dw.chunks_exact_mut(inputs * TAPS * TAPS).enumerate() {
            let (first, stride) = ((number * step + i) * inputs, outputs * inputs);
            Arch::new().dispatch(TransformBack { parts: parts.chunks_exact(len), first, stride, dw });
        }
    });
}

/// Filters that are transformed at a time: each of their taps gets a row, so that a lane holds a filter.
const CHUNK: usize = 64;

/// A register of zeros.
#[inline(always)]
fn zero<T: Scalar, S: Simd>(simd: S) -> Register<T, S> {
    Register { simd, values: T::splat(simd, T::ZERO) }
}

struct Transform<'a, T> {
    filters: &'a [T],
    turned: bool,
    into: Components<'a, T>,
}

impl<T: Scalar> WithSimd for Transform<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { filters, turned, into } = self;
        let (count, lanes) = (filters.len() / (TAPS * TAPS), T::lanes::<S>());
        let mut to = [[std::ptr::null_mut(); SIDE]; SIDE];
        for (row, to) in to.iter_mut().enumerate() {
            *to = into.row(row, count);
        }
        let (all, mut taps) = (T::mask(simd, 0..lanes), [T::ZERO; TAPS * TAPS * CHUNK]);
        assert!(CHUNK.is_multiple_of(lanes), "a register reaches beyond the taps");
        for first in (0..count).step_by(CHUNK) {
            let chunk = CHUNK.min(count - first);
            let from = filters[first * TAPS * TAPS..][..chunk * TAPS * TAPS].as_ptr();
            // SAFETY: there are `chunk` filters, and rows for all their taps.
            unsafe { transpose::copy(from, [1, TAPS * TAPS], [TAPS * TAPS, chunk], taps.as_mut_ptr(), CHUNK) };
            for at in (0..chunk).step_by(lanes) {
                let mut columns = [[zero::<T, S>(simd); SIDE]; TAPS];
                for (column, transformed) in columns.iter_mut().enumerate() {
                    let mut values = [zero(simd); TAPS];
                    for (row, values) in values.iter_mut().enumerate() {
                        let tap = row * TAPS + column;
                        let tap = if turned { TAPS * TAPS - 1 - tap } else { tap };
                        // SAFETY: whole registers fill the row of a tap.
                        values.values = unsafe { T::load(simd, all, taps[tap * CHUNK + at..].as_ptr()) };
                    }
                    *transformed = filter(values);
                }
                let mask = T::mask(simd, 0..lanes.min(chunk - at));
                for (row, to) in to.iter().enumerate() {
                    let transformed = filter([columns[0][row], columns[1][row], columns[2][row]]);
                    for (to, transformed) in to.iter().zip(transformed) {
                        // SAFETY: the mask has the lanes of filters that are there, and the components have room for all of them.
                        unsafe { T::store(simd, mask, to.add(first + at), transformed.values) };
                    }
                }
            }
        }
    }
}

/// Transforms back one row of filters: its first component begins at `first` in each of the parts, and the components
/// are `stride` apart.
pub struct TransformBack<'a, T, P> {
    pub parts: P,
    pub first: usize,
    pub stride: usize,
    pub dw: &'a mut [T],
}

impl<'a, T: Scalar, P: Iterator<Item = &'a [T]> + Clone> WithSimd for TransformBack<'_, T, P> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { parts, first: start, stride, dw } = self;
        let (count, lanes) = (dw.len() / (TAPS * TAPS), T::lanes::<S>());
        let (all, mut taps) = (T::mask(simd, 0..lanes), [T::ZERO; TAPS * TAPS * CHUNK]);
        assert!(CHUNK.is_multiple_of(lanes), "a register reaches beyond the taps");
        for first in (0..count).step_by(CHUNK) {
            let chunk = CHUNK.min(count - first);
            for at in (0..chunk).step_by(lanes) {
                let mask = T::mask(simd, 0..lanes.min(chunk - at));
                let mut rows = [[zero::<T, S>(simd); TAPS]; SIDE];
                for (row, half) in rows.iter_mut().enumerate() {
                    let mut sums = [zero(simd); SIDE];
                    for (column, sum) in sums.iter_mut().enumerate() {
                        let place = start + (row * SIDE + column) * stride + first + at;
                        for part in parts.clone() {
                            // SAFETY: the mask has the lanes of filters that are there.
                            let values =
                                unsafe { T::load(simd, mask, part[place..place + lanes.min(chunk - at)].as_ptr()) };
                            *sum = *sum + Register { simd, values };
                        }
                    }
                    *half = filter_adjoint(sums);
                }
                let [a, b, c, d, e, f] = rows;
                for column in 0..TAPS {
                    let half = [a[column], b[column], c[column], d[column], e[column], f[column]];
                    for (row, values) in filter_adjoint(half).into_iter().enumerate() {
                        let tap = &mut taps[(row * TAPS + column) * CHUNK + at..][..lanes];
                        // SAFETY: a register's values.
                        unsafe { T::store(simd, all, tap.as_mut_ptr(), values.values) };
                    }
                }
            }
            let to = dw[first * TAPS * TAPS..][..chunk * TAPS * TAPS].as_mut_ptr();
            // SAFETY: there are `chunk` filters, and the taps of all of them.
            unsafe { transpose::copy(taps.as_ptr(), [1, CHUNK], [chunk, TAPS * TAPS], to, TAPS * TAPS) };
        }
    }
}
