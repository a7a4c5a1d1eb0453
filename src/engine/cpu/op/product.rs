//! Products of strided matrices on one thread.

mod kernel;
mod transpose;

use std::marker::PhantomData;

use pulp::Arch;

use super::parallel::Shared;
use super::scalar::Scalar;
use kernel::Product;

/// A strided view of a matrix.
#[derive(Clone, Copy)]
pub struct Matrix<'a, T> {
    elements: &'a [T],
    rows: usize,
    columns: usize,
    row_stride: usize,
    column_stride: usize,
}

impl<'a, T> Matrix<'a, T> {
    /// A `rows x columns` matrix whose rows begin `stride` elements apart.
    pub fn new(elements: &'a [T], rows: usize, columns: usize, stride: usize) -> Self {
        assert!(span(rows, columns, stride, 1) <= elements.len(), "a matrix reached outside of its tensor");
        Self { elements, rows, columns, row_stride: stride, column_stride: 1 }
    }

    /// Some of the columns.
    fn columns(self, first: usize, columns: usize) -> Self {
        let start = first * self.column_stride;
        let elements = if self.rows == 0 { self.elements } else { &self.elements[start..] };
        Self { elements, columns, ..self }
    }

    /// Rows for columns.
    pub fn transposed(self) -> Self {
        let Self { elements, rows, columns, row_stride, column_stride } = self;
        Self { elements, rows: columns, columns: rows, row_stride: column_stride, column_stride: row_stride }
    }
}

/// A strided matrix that a product is written to; its rows are contiguous.
pub struct MatrixMut<'a, T> {
    pointer: *mut T,
    rows: usize,
    columns: usize,
    stride: usize,
    life: PhantomData<&'a mut T>,
}

impl<'a, T> MatrixMut<'a, T> {
    /// As [`Matrix::new`].
    pub fn new(elements: &'a mut [T], rows: usize, columns: usize, stride: usize) -> Self {
        assert!(span(rows, columns, stride, 1) <= elements.len(), "a matrix reached outside of its tensor");
        Self { pointer: elements.as_mut_ptr(), rows, columns, stride, life: PhantomData }
    }

    /// The matrix that begins at element `start` of a slice which other tasks write to as well.
    ///
    /// # Safety
    /// No other task may use the matrix' elements while it lives.
    pub unsafe fn shared(
        elements: &'a Shared<'_, T>,
        start: usize,
        rows: usize,
        columns: usize,
        stride: usize,
    ) -> Self {
        let pointer = elements.address(start, span(rows, columns, stride, 1));
        Self { pointer, rows, columns, stride, life: PhantomData }
    }
}

/// The number of elements from the first to the last of a strided matrix.
fn span(rows: usize, columns: usize, row_stride: usize, column_stride: usize) -> usize {
    if rows == 0 || columns == 0 { 0 } else { (rows - 1) * row_stride + (columns - 1) * column_stride + 1 }
}

/// What becomes of the elements that a product is written to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Write {
    Overwrite,
    AddTo,
}

/// `target = a b` or `target += a b`.
pub fn multiply<T: Scalar>(target: MatrixMut<'_, T>, a: Matrix<'_, T>, b: Matrix<'_, T>, mode: Write) {
    assert!(
        target.rows == a.rows && target.columns == b.columns && a.columns == b.rows,
        "matrices do not fit: {}x{} = {}x{} * {}x{}",
        target.rows,
        target.columns,
        a.rows,
        a.columns,
        b.rows,
        b.columns
    );
    Arch::new().dispatch(Product { target, a, b, adds: mode == Write::AddTo });
}

/// The same by strips of at most `strip` columns of the target, one product for each; `None`: all columns in one.
pub fn multiply_by_strips<T: Scalar>(
    target: MatrixMut<'_, T>,
    a: Matrix<'_, T>,
    b: Matrix<'_, T>,
    mode: Write,
    strip: Option<usize>,
) {
    let strip = strip.unwrap_or(target.columns).max(1);
    for first in (0..target.columns).step_by(strip) {
        let columns = strip.min(target.columns - first);
        let piece = MatrixMut { pointer: target.pointer.wrapping_add(first), columns, life: PhantomData, ..target };
        multiply(piece, a, b.columns(first, columns), mode);
    }
}

#[cfg(test)]
mod tests {
    use pulp::Simd;

    use super::*;

    /// By the widest instructions, by those of AVX2 where the processor has them, by none.
    const SETS: usize = 3;

    fn multiply_by<T: Scalar>(set: usize, target: MatrixMut<'_, T>, a: Matrix<'_, T>, b: Matrix<'_, T>, mode: Write) {
        let product = |target| Product { target, a, b, adds: mode == Write::AddTo };
        #[cfg(target_arch = "x86_64")]
        if let (1, Some(simd)) = (set, pulp::x86::V3::try_new()) {
            return Simd::vectorize(simd, product(target));
        }
        match set {
            2 => Simd::vectorize(pulp::Scalar::new(), product(target)),
            _ => multiply(target, a, b, mode),
        }
    }

    // Every element against its sum, for rows and columns that are and are not multiples of a block, from both sides as they are and turned, to and
    // beside what was there. Small integers: no sum is rounded.
    fn exact<T: Scalar>() {
        let number = |i: usize| T::from_f64((i * 7 % 11) as f64 - 5.0);
        let shapes = [
            (1, 1, 1),
            (4, 3, 64),
            (6, 17, 48),
            (9, 300, 80),
            (29, 5, 111),
            (13, 270, 49),
            (4, 0, 16),
            (17, 2100, 3),
            (14, 9, 700),
        ];
        for (rows, inner, columns) in shapes {
            let wide = columns + 3;
            let a: Vec<T> = (0..(rows + 2) * (inner + 2)).map(number).collect();
            let b: Vec<T> = (0..(inner + 1) * wide).map(|i| number(i + 3)).collect();
            for (left_turned, right_turned, mode) in [
                (false, false, Write::Overwrite),
                (true, false, Write::AddTo),
                (false, true, Write::AddTo),
                (true, true, Write::Overwrite),
            ] {
                let left = match left_turned {
                    false => Matrix::new(&a, rows, inner, inner + 2),
                    true => Matrix::new(&a, inner, rows, rows + 1).transposed(),
                };
                let right = match right_turned {
                    false => Matrix::new(&b, inner, columns, wide),
                    true => Matrix::new(&b, columns, inner, inner).transposed(),
                };
                let mut by_set = vec![vec![T::from_f64(99.0); rows * wide]; SETS];
                for (set, y) in by_set.iter_mut().enumerate() {
                    multiply_by(set, MatrixMut::new(y, rows, columns, wide), left, right, mode);
                }
                let all = by_set.iter().flat_map(|y| y.iter().enumerate());
                for (at, y) in all {
                    let (row, column) = (at / wide, at % wide);
                    let of_left = |k: usize| a[if left_turned { k * (rows + 1) + row } else { row * (inner + 2) + k }];
                    let of_right = |k: usize| b[if right_turned { column * inner + k } else { k * wide + column }];
                    let before = if mode == Write::AddTo || column >= columns { 99.0 } else { 0.0 };
                    let terms = if column < columns { 0..inner } else { 0..0 };
                    let want = terms.fold(T::from_f64(before), |sum, k| sum + of_left(k) * of_right(k));
                    assert!(
                        *y == want,
                        "{rows} x {inner} x {columns}, {left_turned}, {right_turned}, at {row}, {column}"
                    );
                }
            }
        }
    }

    #[test]
    fn every_element_is_its_sum() {
        exact::<f32>();
        exact::<f64>();
    }

    #[test]
    #[should_panic(expected = "matrices do not fit: 2x3 = 2x4 * 5x3")]
    fn matrices_that_do_not_fit_are_not_multiplied() {
        let (a, b, mut y) = ([0f32; 8], [0f32; 15], [0f32; 6]);
        let (a, b) = (Matrix::new(&a, 2, 4, 4), Matrix::new(&b, 5, 3, 3));
        multiply(MatrixMut::new(&mut y, 2, 3, 3), a, b, Write::Overwrite);
    }
}
