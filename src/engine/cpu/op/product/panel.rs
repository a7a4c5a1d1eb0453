//! Products whose right side is short enough to be read where it lies. `gemm` first copies both sides into the order in which it reads
//! them, which pays off where each is read many times; these are not.

use pulp::{Arch, Simd, WithSimd};

use super::{Matrix, MatrixMut, assert_fit};
use crate::engine::cpu::blocking::VECTOR;
use crate::engine::cpu::op::scalar::Scalar;

/// Rows of the target in registers at a time.
const ROWS: usize = 4;

/// `target = a b`, where the rows of `b` are contiguous, and whole registers long.
pub fn multiply_in_place<T: Scalar>(target: MatrixMut<'_, T>, a: Matrix<'_, T>, b: Matrix<'_, T>) {
    assert_fit(&target, &a, &b);
    assert!(b.column_stride == 1 && b.columns.is_multiple_of(VECTOR), "rows that are no whole registers");
    Arch::new().dispatch(Product { target, a, b });
}

struct Product<'a, T> {
    target: MatrixMut<'a, T>,
    a: Matrix<'a, T>,
    b: Matrix<'a, T>,
}

impl<T: Scalar> WithSimd for Product<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let registers = self.b.columns / T::lanes::<S>();
        let mut first = 0;
        // As many columns as registers hold the sums of, beside those of a row of `b`.
        while first < registers {
            let left = registers - first;
            first += match if S::REGISTER_COUNT >= 32 { left } else { left.min(2) } {
                1 => self.columns::<S, 1>(simd, first),
                2 => self.columns::<S, 2>(simd, first),
                3 => self.columns::<S, 3>(simd, first),
                _ => self.columns::<S, 4>(simd, first),
            };
        }
    }
}

impl<T: Scalar> Product<'_, T> {
    /// The columns of `V` registers from one on, in all rows.
    #[inline(always)]
    fn columns<S: Simd, const V: usize>(&self, simd: S, first: usize) -> usize {
        let column = first * T::lanes::<S>();
        let whole = self.target.rows / ROWS * ROWS;
        for row in (0..whole).step_by(ROWS) {
            // SAFETY: these rows and columns are inside of the matrices, whose constructors checked that their elements are.
            unsafe { self.block::<S, ROWS, V>(simd, row, column) };
        }
        for row in whole..self.target.rows {
            // SAFETY: as above.
            unsafe { self.block::<S, 1, V>(simd, row, column) };
        }
        V
    }

    /// # Safety
    /// There must be `R` rows from `row` on, and `V` registers from `column` on.
    #[inline(always)]
    unsafe fn block<S: Simd, const R: usize, const V: usize>(&self, simd: S, row: usize, column: usize) {
        let lanes = T::lanes::<S>();
        let a = self.a.elements.as_ptr().wrapping_add(row * self.a.row_stride);
        let b = self.b.elements.as_ptr().wrapping_add(column);
        let zero = T::splat(simd, T::ZERO);
        let mut sums = [[zero; V]; R];
        for k in 0..self.a.columns {
            let mut values = [zero; V];
            for (v, values) in values.iter_mut().enumerate() {
                // SAFETY: by the caller's promise.
                *values = unsafe { b.add(k * self.b.row_stride + v * lanes).cast::<T::Vector<S>>().read_unaligned() };
            }
            for (r, sums) in sums.iter_mut().enumerate() {
                // SAFETY: by the caller's promise.
                let factor = unsafe { *a.add(r * self.a.row_stride + k * self.a.column_stride) };
                let factor = T::splat(simd, factor);
                for (sum, values) in sums.iter_mut().zip(values) {
                    *sum = T::multiply_add(simd, factor, values, *sum);
                }
            }
        }
        for (r, sums) in sums.iter().enumerate() {
            for (v, sum) in sums.iter().enumerate() {
                // SAFETY: by the caller's promise; the target is not aliased.
                unsafe {
                    let to = self.target.pointer.add((row + r) * self.target.stride + column + v * lanes);
                    to.cast::<T::Vector<S>>().write_unaligned(*sum);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Every element against its sum, for rows and registers that are and are not multiples of a block, from the left side and its
    // transpose. Small integers: no sum is rounded.
    fn exact<T: Scalar>() {
        for (rows, inner, columns) in [(1, 1, 16), (4, 3, 64), (6, 17, 48), (9, 32, 80), (3, 5, 112), (4, 0, 16)] {
            let number = |i: usize| T::from_f64((i * 7 % 11) as f64 - 5.0);
            let (stride, wide) = (inner + 2, columns + 3);
            let a: Vec<T> = (0..rows.max(inner) * (stride + rows)).map(number).collect();
            let b: Vec<T> = (0..inner * wide + 1).map(|i| number(i + 3)).collect();
            for turned in [false, true] {
                let left = match turned {
                    false => Matrix::new(&a, rows, inner, stride),
                    true => Matrix::new(&a, inner, rows, rows + 1).transposed(),
                };
                let mut y = vec![T::from_f64(99.0); rows * wide];
                multiply_in_place(
                    MatrixMut::new(&mut y, rows, columns, wide),
                    left,
                    Matrix::new(&b, inner, columns, wide),
                );
                for (at, y) in y.iter().enumerate() {
                    let (row, column) = (at / wide, at % wide);
                    let of_left = |k: usize| if turned { a[k * (rows + 1) + row] } else { a[row * stride + k] };
                    let sum = (0..inner).fold(T::ZERO, |sum, k| sum + of_left(k) * b[k * wide + column]);
                    let want = if column < columns { sum } else { T::from_f64(99.0) };
                    assert!(*y == want, "{rows} x {inner} x {columns}, {turned}, at {row}, {column}");
                }
            }
        }
    }

    #[test]
    fn every_element_is_its_sum() {
        exact::<f32>();
        exact::<f64>();
    }
}
