//! Copies of matrices whose columns are contiguous, row by row.

use crate::engine::cpu::op::scalar::Scalar;

/// Rows whose values of one column fill a cache line in float32. The rows written meanwhile stay in the first-level
/// cache.
const LINE: usize = 16;
/// Rows and columns that are exchanged in registers.
const SIDE: usize = 4;

/// Copies `rows` and `columns` to rows that are `pitch` apart.
///
/// # Safety
/// The rows and columns must exist, `row_stride` and `column_stride` apart, and there must be room for them.
#[inline(always)]
pub unsafe fn copy<T: Scalar>(
    from: *const T,
    [row_stride, column_stride]: [usize; 2],
    [rows, columns]: [usize; 2],
    to: *mut T,
    pitch: usize,
) {
    let by_squares = row_stride == 1 && size_of::<T>() == size_of::<f32>() && cfg!(target_arch = "x86_64");
    for first in (0..rows).step_by(LINE) {
        let end = rows.min(first + LINE);
        let (squares, beside) = match by_squares {
            true => (first + (end - first) / SIDE * SIDE, columns / SIDE * SIDE),
            false => (first, 0),
        };
        for column in (0..beside).step_by(SIDE) {
            for ahead in column..column + SIDE {
                prefetch(from.wrapping_add(first + LINE + ahead * column_stride));
            }
            for row in (first..squares).step_by(SIDE) {
                let from = from.wrapping_add(row + column * column_stride);
                // SAFETY: by the caller's promise; the numbers are float32.
                unsafe { square(from.cast(), column_stride, to.wrapping_add(row * pitch + column).cast(), pitch) };
            }
        }
        for column in 0..columns {
            for row in if column < beside { squares..end } else { first..end } {
                // SAFETY: by the caller's promise.
                unsafe { *to.add(row * pitch + column) = *from.add(row * row_stride + column * column_stride) };
            }
        }
    }
}

/// Prefetches the cache line of a number that is read next. So many columns at once, each in its own page, are more
/// than a processor prefetches by itself.
#[inline(always)]
fn prefetch<T>(from: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has the instruction, which reads nothing, and does nothing where there is no memory.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(from.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = from;
}

/// A square of four rows of four numbers, by instructions that every x86-64 processor has.
///
/// # Safety
/// As for [`copy`].
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn square(from: *const f32, column_stride: usize, to: *mut f32, pitch: usize) {
    use std::arch::x86_64::{_MM_TRANSPOSE4_PS, _mm_loadu_ps, _mm_storeu_ps};
    // SAFETY: by the caller's promise.
    unsafe {
        let column = |at: usize| _mm_loadu_ps(from.add(at * column_stride));
        let [mut a, mut b, mut c, mut d] = [column(0), column(1), column(2), column(3)];
        _MM_TRANSPOSE4_PS(&mut a, &mut b, &mut c, &mut d);
        for (row, values) in [a, b, c, d].into_iter().enumerate() {
            _mm_storeu_ps(to.add(row * pitch), values);
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
unsafe fn square(_: *const f32, _: usize, _: *mut f32, _: usize) {
    unreachable!("squares are copied only on x86-64")
}

/// `columns = rows^T`: up to `wide` rows of `deep` values become `deep` rows of `wide`.
#[inline(always)]
pub fn turn<T: Scalar>(rows: &[T], deep: usize, wide: usize, columns: &mut [T]) {
    for (i, row) in columns.chunks_exact_mut(wide).take(deep).enumerate() {
        row.iter_mut().zip(rows[i..].iter().step_by(deep)).for_each(|(to, from)| *to = *from);
    }
}
