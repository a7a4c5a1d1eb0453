//! Products of strided matrices on one thread, by the crate `gemm`.

mod panel;

use std::ops::Range;

pub use panel::multiply_in_place;

use super::parallel::Shared;
use super::scalar::Scalar;

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
    life: std::marker::PhantomData<&'a mut T>,
}

impl<'a, T> MatrixMut<'a, T> {
    /// As [`Matrix::new`].
    pub fn new(elements: &'a mut [T], rows: usize, columns: usize, stride: usize) -> Self {
        assert!(span(rows, columns, stride, 1) <= elements.len(), "a matrix reached outside of its tensor");
        Self { pointer: elements.as_mut_ptr(), rows, columns, stride, life: std::marker::PhantomData }
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
        Self { pointer, rows, columns, stride, life: std::marker::PhantomData }
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
    multiply_by_strips(target, a, b, mode, None);
}

fn assert_fit<T>(target: &MatrixMut<'_, T>, a: &Matrix<'_, T>, b: &Matrix<'_, T>) {
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
}

/// The same by strips of at most `strip` columns of the target, one call of `gemm` for each; `None`: all columns in one.
pub fn multiply_by_strips<T: Scalar>(
    target: MatrixMut<'_, T>,
    a: Matrix<'_, T>,
    b: Matrix<'_, T>,
    mode: Write,
    strip: Option<usize>,
) {
    assert_fit(&target, &a, &b);
    let strip = strip.unwrap_or(target.columns).max(1);
    for first in (0..target.columns).step_by(strip) {
        multiply_strip(&target, a, b, mode, first..(first + strip).min(target.columns));
    }
}

/// The product's columns `columns`; the matrices fit together.
fn multiply_strip<T: Scalar>(
    target: &MatrixMut<'_, T>,
    a: Matrix<'_, T>,
    b: Matrix<'_, T>,
    mode: Write,
    columns: Range<usize>,
) {
    // SAFETY: the constructors checked that every element that the strides reach is inside its slice, and the target is
    // not aliased. A matrix without columns has no strip; one of `b` without rows is not read.
    unsafe {
        gemm::gemm(
            target.rows,
            columns.len(),
            a.columns,
            target.pointer.add(columns.start),
            1,
            target.stride as isize,
            mode == Write::AddTo,
            a.elements.as_ptr(),
            a.column_stride as isize,
            a.row_stride as isize,
            b.elements.as_ptr().wrapping_add(columns.start * b.column_stride),
            b.column_stride as isize,
            b.row_stride as isize,
            T::ONE,
            T::ONE,
            false,
            false,
            false,
            gemm::Parallelism::None,
        );
    }
}
