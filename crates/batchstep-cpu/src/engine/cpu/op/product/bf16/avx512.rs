//! Both sides are copied, in pairs of neighbours along the inner dimension: some rows and columns of the right side into panels as wide as a block, which stay
//! in the second-level cache, and some rows of the left side. A pair is as large as a float32, so everything else is as
//! in `kernel.rs`.

use std::arch::x86_64::*;

use crate::engine::cpu::blocking::{ROWS, next_rows};
use crate::engine::cpu::op::product::{Matrix, kernel::Product, transpose};
use crate::engine::cpu::op::scratch::Scratch;

/// Lanes of a register.
const LANES: usize = 16;
/// The most registers of a row of a block, and the columns in them.
const WIDE: usize = 4;
const COLUMNS: usize = WIDE * LANES;
/// Pairs of rows of the right side that are multiplied before the next ones.
const DEPTH: usize = 256;
/// Pairs in the panels: 256 KiB, a quarter of a typical second-level cache.
const PANELS: usize = 1 << 16;
/// Rows of the left side that are copied at a time: 96 KiB.
const LEFT: usize = 16 * ROWS;

/// Where pairs lie: the distances from one line to the next and from one pair of a line to the next, in numbers.
#[derive(Clone, Copy)]
struct Pairs {
    start: *const f32,
    line: usize,
    pair: usize,
    /// Pairs of a line.
    count: usize,
}

/// Some rows of the left side, times the columns of a panel, to their place in the target, whose rows are `stride` apart.
#[derive(Clone, Copy)]
struct Block {
    columns: usize,
    left: Pairs,
    panel: *const f32,
    to: *mut f32,
    stride: usize,
    adds: bool,
}

/// # Safety
/// The processor must have the instructions, and the matrices must fit.
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
pub(super) unsafe fn run(product: &Product<'_, f32>) {
    let Product { target, a, b, adds } = product;
    let (rows, columns, inner) = (target.rows, target.columns, b.rows);
    let depth = DEPTH.min(inner.div_ceil(2)).max(1);
    let group = (PANELS / depth / COLUMNS * COLUMNS).min(columns.next_multiple_of(COLUMNS)).max(COLUMNS);
    let (mut panels, mut left) = (Scratch::<f32>::new(depth * group), Scratch::<f32>::new(room(depth)));
    let mut first = 0;
    // Runs once even where there is nothing to add up: the target becomes zero.
    loop {
        let inner = (2 * depth).min(inner - first);
        for column in (0..columns).step_by(group) {
            let width = group.min(columns - column);
            for at in (0..width).step_by(COLUMNS) {
                let from = b.elements.as_ptr().wrapping_add((column + at) * b.column_stride);
                let (panel, size) = (panels.as_mut_ptr().wrapping_add(at * depth), [inner, COLUMNS.min(width - at)]);
                // SAFETY: these rows and columns are inside the matrix, and there is room for them.
                unsafe {
                    match b.places {
                        Some(places) => across(|row| places.row(from, first + row), size, panel, COLUMNS),
                        None => copy_right(from.wrapping_add(first * b.row_stride), b, size, panel),
                    }
                }
            }
            for row in (0..rows).step_by(LEFT) {
                let from = a.elements.as_ptr().wrapping_add(row * a.row_stride + first * a.column_stride);
                // SAFETY: as above.
                let left = unsafe { copy_left(from, a, [LEFT.min(rows - row), inner], left.as_mut_ptr()) };
                let to = target.pointer.wrapping_add(row * target.stride + column);
                for at in (0..width).step_by(COLUMNS) {
                    let panel = panels.as_ptr().wrapping_add(at * depth);
                    let (columns, to, adds) = (COLUMNS.min(width - at), to.wrapping_add(at), *adds || first > 0);
                    let block = Block { columns, left, panel, to, stride: target.stride, adds };
                    // SAFETY: as above; the target is not aliased.
                    unsafe { all_rows(LEFT.min(rows - row), block) };
                }
            }
        }
        first += inner;
        if first >= b.rows {
            break;
        }
    }
}

/// The numbers that the copied rows of the left side take, whichever way they are read.
fn room(depth: usize) -> usize {
    LEFT * depth.next_multiple_of(LANES)
}

/// Some rows and columns of the left side.
///
/// # Safety
/// The rows and columns must exist, and there must be room for them.
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
unsafe fn copy_left(from: *const f32, a: &Matrix<'_, f32>, [rows, inner]: [usize; 2], to: *mut f32) -> Pairs {
    let count = inner.div_ceil(2);
    // SAFETY: by the caller's promise.
    unsafe {
        if a.column_stride == 1 {
            let line = count.next_multiple_of(LANES);
            for row in 0..rows {
                along(from.wrapping_add(row * a.row_stride), inner, to.wrapping_add(row * line));
            }
            return Pairs { start: to, line, pair: 1, count };
        }
        across(|at| from.wrapping_add(at * a.column_stride), [inner, rows], to, LEFT);
    }
    Pairs { start: to, line: 1, pair: LEFT, count }
}

/// Some rows and columns, at most a panel of them, of the right side.
///
/// # Safety
/// The rows and columns must exist, and there must be room for them.
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
unsafe fn copy_right(from: *const f32, b: &Matrix<'_, f32>, [inner, columns]: [usize; 2], to: *mut f32) {
    if b.column_stride == 1 {
        // SAFETY: by the caller's promise.
        return unsafe { across(|row| from.wrapping_add(row * b.row_stride), [inner, columns], to, COLUMNS) };
    }
    let mut square = [0f32; COLUMNS * LANES];
    for first in (0..inner).step_by(2 * LANES) {
        let inner = (2 * LANES).min(inner - first);
        // SAFETY: by the caller's promise.
        unsafe {
            for column in 0..columns {
                let from = from.wrapping_add(first + column * b.column_stride);
                along(from, inner, square.as_mut_ptr().add(column * LANES));
            }
            let to = to.wrapping_add(first / 2 * COLUMNS);
            transpose::copy(square.as_ptr(), [1, LANES], [inner.div_ceil(2), columns], to, COLUMNS);
        }
    }
}

/// Pairs of numbers that lie one after the other. Whole registers are written.
///
/// # Safety
/// The numbers must exist, and there must be room for them.
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
unsafe fn along(from: *const f32, len: usize, to: *mut f32) {
    for first in (0..len).step_by(2 * LANES) {
        let [low, high] = [first, first + LANES].map(|at| mask(len.saturating_sub(at)));
        let from = from.wrapping_add(first);
        // SAFETY: the masks have the numbers that are there.
        unsafe {
            let (low, high) = (_mm512_maskz_loadu_ps(low, from), _mm512_maskz_loadu_ps(high, from.wrapping_add(LANES)));
            let pairs = bits(_mm512_cvtne2ps_pbh(high, low));
            _mm512_storeu_si512(to.wrapping_add(first / 2).cast(), pairs);
        }
    }
}

/// Pairs of neighbouring lines. `line` says where a line begins; its numbers lie one after the other. A last line
/// without a neighbour is paired with zeros. Whole registers are written.
///
/// # Safety
/// The numbers must exist, and there must be room for them.
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
unsafe fn across(line: impl Fn(usize) -> *const f32, [lines, len]: [usize; 2], to: *mut f32, pitch: usize) {
    // Interleaves two registers: the first of each, the second of each, and so on.
    let order = _mm512_add_epi32(
        _mm512_mullo_epi32(
            _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0),
            _mm512_set1_epi32(0x0001_0001),
        ),
        _mm512_set1_epi32(0x0010_0000),
    );
    for pair in 0..lines.div_ceil(2) {
        let first = line(2 * pair);
        let second = line((2 * pair + 1).min(lines - 1));
        for at in (0..len).step_by(LANES) {
            let there = mask(len - at);
            let beside = if 2 * pair + 1 < lines { there } else { 0 };
            // SAFETY: the masks have the numbers that are there.
            unsafe {
                let low = _mm512_maskz_loadu_ps(there, first.wrapping_add(at));
                let high = _mm512_maskz_loadu_ps(beside, second.wrapping_add(at));
                let pairs = _mm512_permutexvar_epi16(order, bits(_mm512_cvtne2ps_pbh(high, low)));
                _mm512_storeu_si512(to.wrapping_add(pair * pitch + at).cast(), pairs);
            }
        }
    }
}

/// The first lanes of a register.
fn mask(lanes: usize) -> u16 {
    ((1u32 << lanes.min(LANES)) - 1) as u16
}

fn bits(pairs: __m512bh) -> __m512i {
    // SAFETY: both are 64 bytes, and every bit pattern is a value.
    unsafe { std::mem::transmute(pairs) }
}

fn pairs(bits: __m512i) -> __m512bh {
    // SAFETY: both are 64 bytes, and every bit pattern is a value.
    unsafe { std::mem::transmute(bits) }
}

/// Multiplies some rows of the left side by a panel.
///
/// # Safety
/// The rows must exist; the target must be writable.
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
unsafe fn all_rows(rows: usize, panel: Block) {
    let mut row = 0;
    while row < rows {
        let count = next_rows(rows - row);
        let left = Pairs { start: panel.left.start.wrapping_add(row * panel.left.line), ..panel.left };
        let block = Block { left, to: panel.to.wrapping_add(row * panel.stride), ..panel };
        // SAFETY: by the caller's promise.
        unsafe {
            match count {
                1 => registers::<1>(block),
                2 => registers::<2>(block),
                3 => registers::<3>(block),
                4 => registers::<4>(block),
                5 => registers::<5>(block),
                _ => registers::<ROWS>(block),
            }
        }
        row += count;
    }
}

/// # Safety
/// As for [`all_rows`].
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
unsafe fn registers<const R: usize>(at: Block) {
    // SAFETY: by the caller's promise.
    unsafe {
        match at.columns.div_ceil(LANES) {
            1 => block::<R, 1>(at),
            2 => block::<R, 2>(at),
            3 => block::<R, 3>(at),
            _ => block::<R, WIDE>(at),
        }
    }
}

/// One block: `R` rows of the left side times the columns of a panel, in `V` registers.
///
/// # Safety
/// As for [`all_rows`].
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
unsafe fn block<const R: usize, const V: usize>(at: Block) {
    let Block { columns, left, panel, to, stride, adds } = at;
    let mut sums = [[_mm512_setzero_ps(); V]; R];
    for k in 0..left.count {
        let panel = panel.wrapping_add(k * COLUMNS);
        let a = left.start.wrapping_add(k * left.pair);
        let mut values = [_mm512_setzero_si512(); V];
        for (v, values) in values.iter_mut().enumerate() {
            // SAFETY: by the caller's promise.
            *values = unsafe { _mm512_loadu_si512(panel.wrapping_add(v * LANES).cast()) };
        }
        for (r, sums) in sums.iter_mut().enumerate() {
            // SAFETY: by the caller's promise.
            let factor = _mm512_set1_epi32(unsafe { *a.wrapping_add(r * left.line).cast::<i32>() });
            for (sum, values) in sums.iter_mut().zip(values) {
                *sum = _mm512_dpbf16_ps(*sum, pairs(factor), pairs(values));
            }
        }
    }
    for (r, sums) in sums.iter().enumerate() {
        for (v, sum) in sums.iter().enumerate() {
            let (to, mask) = (to.wrapping_add(r * stride + v * LANES), mask(columns - v * LANES));
            // SAFETY: by the caller's promise, and the mask has the columns that are there.
            unsafe {
                let sum = if adds { _mm512_add_ps(*sum, _mm512_maskz_loadu_ps(mask, to)) } else { *sum };
                _mm512_mask_storeu_ps(to, mask, sum);
            }
        }
    }
}
