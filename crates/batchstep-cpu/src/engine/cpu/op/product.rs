//! Products of strided matrices on one thread.

pub mod bf16;
mod kernel;
pub(super) mod transpose;

use std::any::TypeId;
use std::marker::PhantomData;

use pulp::Arch;

use super::parallel::Shared;
use super::scalar::Scalar;
pub use crate::engine::cpu::blocking::Factors;
use kernel::Product;

/// A strided view of a matrix.
#[derive(Clone, Copy)]
pub struct Matrix<'a, T> {
    elements: &'a [T],
    rows: usize,
    columns: usize,
    row_stride: usize,
    column_stride: usize,
    /// Where the rows begin, instead of a fixed distance.
    places: Option<Places<'a>>,
}

impl<'a, T> Matrix<'a, T> {
    /// A `rows x columns` matrix whose rows begin `stride` elements apart.
    pub fn new(elements: &'a [T], rows: usize, columns: usize, stride: usize) -> Self {
        assert!(span(rows, columns, stride, 1) <= elements.len(), "a matrix reached outside of its tensor");
        Self { elements, rows, columns, row_stride: stride, column_stride: 1, places: None }
    }

    /// Some of the columns.
    fn columns(self, first: usize, columns: usize) -> Self {
        let start = first * self.column_stride;
        let elements = if self.rows == 0 { self.elements } else { &self.elements[start..] };
        Self { elements, columns, ..self }
    }

    /// The same matrix as one of float32, if `T` is float32.
    fn of_f32(self) -> Option<Matrix<'a, f32>>
    where
        T: 'static,
    {
        let Self { elements, rows, columns, row_stride, column_stride, places } = self;
        (TypeId::of::<T>() == TypeId::of::<f32>()).then(|| {
            // SAFETY: the elements are float32.
            let elements = unsafe { std::slice::from_raw_parts(elements.as_ptr().cast(), elements.len()) };
            Matrix { elements, rows, columns, row_stride, column_stride, places }
        })
    }

    /// The transposed matrix.
    pub fn transposed(self) -> Self {
        let Self { rows, columns, row_stride, column_stride, .. } = self;
        Self { rows: columns, columns: rows, row_stride: column_stride, column_stride: row_stride, ..self }
    }

    /// A matrix, to be the right side of a product, whose rows are parts of one sheet of numbers: `columns` numbers from
    /// each of some places on, then from each place plus a `distance`, and so on, `count` times.
    pub fn views(sheet: &'a [T], places: &'a [usize], count: usize, distance: usize, columns: usize) -> Self {
        let furthest = places.iter().max().map_or(0, |place| place + columns);
        assert!(count == 0 || (count - 1) * distance + furthest <= sheet.len(), "a view reached outside of its sheet");
        let (rows, places) = (count * places.len(), Some(Places { of_each: places, distance }));
        Self { elements: sheet, rows, columns, row_stride: 0, column_stride: 1, places }
    }
}

/// A strided matrix to which a product is written; its rows are contiguous.
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

    /// The matrix that begins at element `start` of a slice to which other tasks write as well.
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

/// Where the rows of [`Matrix::views`] begin.
#[derive(Clone, Copy)]
struct Places<'a> {
    of_each: &'a [usize],
    distance: usize,
}

impl<'a> Places<'a> {
    /// Row `k` of a sheet.
    fn row<T>(self, sheet: *const T, k: usize) -> *const T {
        let place = self.of_each[k % self.of_each.len()];
        sheet.wrapping_add(k / self.of_each.len() * self.distance + place)
    }

    /// The rows of a sheet from `first` on, one after the other.
    #[inline(always)]
    fn walk<T>(self, sheet: *const T, first: usize) -> impl FnMut() -> *const T {
        let Self { of_each, distance } = self;
        let (mut sheet, mut at) = (sheet.wrapping_add(first / of_each.len() * distance), first % of_each.len());
        move || {
            let row = sheet.wrapping_add(of_each[at]);
            at += 1;
            if at == of_each.len() {
                (sheet, at) = (sheet.wrapping_add(distance), 0);
            }
            row
        }
    }
}

/// What happens to the elements to which a product is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Write {
    Overwrite,
    AddTo,
}

/// `target = a b` or `target += a b`.
///
/// # Panics
/// Where the matrices do not fit, or the factors are to be rounded to bfloat16 on a processor without the instruction
/// ([`bf16::is_there`]).
pub fn multiply<T: Scalar>(
    target: MatrixMut<'_, T>,
    a: Matrix<'_, T>,
    b: Matrix<'_, T>,
    mode: Write,
    factors: Factors,
) {
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
    if let (Factors::Bf16, Some(a), Some(b)) = (factors, a.of_f32(), b.of_f32()) {
        let MatrixMut { pointer, rows, columns, stride, .. } = target;
        let target = MatrixMut { pointer: pointer.cast(), rows, columns, stride, life: PhantomData };
        return bf16::multiply(bf16::Product { target, a, b, adds: mode == Write::AddTo });
    }
    Arch::new().dispatch(Product { target, a, b, adds: mode == Write::AddTo });
}

/// [`multiply`] in strips of at most `strip` columns of the target, one product for each; `None`: all columns in one
/// product.
pub fn multiply_by_strips<T: Scalar>(
    target: MatrixMut<'_, T>,
    a: Matrix<'_, T>,
    b: Matrix<'_, T>,
    mode: Write,
    factors: Factors,
    strip: Option<usize>,
) {
    let strip = strip.unwrap_or(target.columns).max(1);
    for first in (0..target.columns).step_by(strip) {
        let columns = strip.min(target.columns - first);
        let piece = MatrixMut { pointer: target.pointer.wrapping_add(first), columns, life: PhantomData, ..target };
        multiply(piece, a, b.columns(first, columns), mode, factors);
    }
}

#[cfg(test)]
mod tests {
    use pulp::Simd;

    use super::*;

    /// The instruction sets: the widest, AVX2 where the processor has it, none, and bfloat16 where the processor has
    /// it.
    const SETS: usize = 4;

    fn multiply_by<T: Scalar>(set: usize, target: MatrixMut<'_, T>, a: Matrix<'_, T>, b: Matrix<'_, T>, mode: Write) {
        let product = |target| Product { target, a, b, adds: mode == Write::AddTo };
        #[cfg(target_arch = "x86_64")]
        if let (1, Some(simd)) = (set, pulp::x86::V3::try_new()) {
            return Simd::vectorize(simd, product(target));
        }
        match set {
            2 => Simd::vectorize(pulp::Scalar::new(), product(target)),
            3 if bf16::is_there() => multiply(target, a, b, mode, Factors::Bf16),
            _ => multiply(target, a, b, mode, Factors::Exact),
        }
    }

    // Compares every element with its sum, for numbers of rows and columns that are multiples of a block and that are
    // not, with both sides as they are and transposed, overwriting and adding. The factors are small integers, so
    // nothing is rounded, not even in bfloat16.
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
        multiply(MatrixMut::new(&mut y, 2, 3, 3), a, b, Write::Overwrite, Factors::Exact);
    }
}
