//! From images to columns and back (im2col, col2im), a tile at a time.

use std::ops::Range;

use super::geometry::Geometry;
use crate::engine::cpu::op::parallel::Shared;
use crate::engine::cpu::op::scalar::{Scalar, vectorised};
use crate::engine::cpu::op::scratch::List;

/// Columns of a tile whose values follow each other (at the distance of the stride) in a channel's plane.
#[derive(Clone, Copy, Debug)]
struct ColumnRun {
    /// The first value, counted from the channel's plane in the first image.
    from: usize,
    /// The first column.
    to: usize,
    len: usize,
}

/// A range of columns (counted over the whole batch, image by image): for each place in the kernel, the runs of columns
/// for which it is inside the image. They are the same for all channels.
pub struct Tile {
    runs: List<ColumnRun>,
    /// The runs of each place, in row-major order.
    places: List<Range<usize>>,
}

impl Tile {
    pub fn new(g: &Geometry, columns: Range<usize>) -> Self {
        let mut tile = Self { runs: List::with_capacity(g.taps()), places: List::with_capacity(g.taps()) };
        for place in 0..g.taps() {
            let first = tile.runs.len();
            tile.add_place(g, place, columns.clone());
            tile.places.push(first..tile.runs.len());
        }
        tile
    }

    fn add_place(&mut self, g: &Geometry, place: usize, columns: Range<usize>) {
        let (row, column) = (place / g.kernel.width, place % g.kernel.width);
        let first_run = self.runs.len();
        // 0 <= out * stride + column - left < width
        let left = g.padding.left.saturating_sub(column).div_ceil(g.stride.width);
        let right = (g.width + g.padding.left).saturating_sub(column).div_ceil(g.stride.width);
        let mut at = columns.start;
        while at < columns.end {
            let (image, position) = (at / g.positions(), at % g.positions());
            let (out_row, start) = (position / g.out_width, position % g.out_width);
            let end = g.out_width.min(start + columns.end - at);
            let y = (out_row * g.stride.height + row).checked_sub(g.padding.top).filter(|&y| y < g.height);
            let (first, last) = (left.max(start), right.min(end));
            if let (Some(y), true) = (y, first < last) {
                let x = first * g.stride.width + column - g.padding.left;
                let from = (image * g.in_channels * g.height + y) * g.width + x;
                self.push(g, first_run, ColumnRun { from, to: at - columns.start + first - start, len: last - first });
            }
            at += end - start;
        }
    }

    /// Adds a run; extends the last run where the new one continues it.
    fn push(&mut self, g: &Geometry, first_run: usize, run: ColumnRun) {
        match self.runs[first_run..].last_mut() {
            Some(last) if g.stride.width == 1 && last.from + last.len == run.from && last.to + last.len == run.to => {
                last.len += run.len;
            }
            _ => self.runs.push(run),
        }
    }
}

/// Some rows of a group's column matrix.
pub struct ColumnRows {
    pub group: usize,
    pub rows: Range<usize>,
}

/// Copies without a function call: for most runs a call would take longer than the copy, and the compiler would turn a
/// plain loop into one.
#[inline(always)]
pub(super) fn copy<T: Scalar>(to: &mut [T], from: &[T]) {
    let (to, to_rest) = to.as_chunks_mut::<16>();
    let (from, from_rest) = from.as_chunks::<16>();
    to.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
    let (to, to_rest) = to_rest.as_chunks_mut::<4>();
    let (from, from_rest) = from_rest.as_chunks::<4>();
    for (to, from) in to.iter_mut().zip(from).take(3) {
        *to = *from;
    }
    if let ([to, ..], [from, ..]) = (&mut *to_rest, from_rest) {
        *to = *from;
    }
    if let ([_, to, ..], [_, from, ..]) = (&mut *to_rest, from_rest) {
        *to = *from;
    }
    if let ([_, _, to], [_, _, from]) = (to_rest, from_rest) {
        *to = *from;
    }
}

/// Copies every second number of `from`, from the first to the last. The step is known to the compiler, so it uses
/// whole vectors.
#[inline(always)]
fn copy_evens<T: Scalar>(to: &mut [T], from: &[T]) {
    let (pairs, last) = from.as_chunks::<2>();
    to.iter_mut().zip(pairs).for_each(|(to, [from, _])| *to = *from);
    if let (Some(to), [from]) = (to.last_mut(), last) {
        *to = *from;
    }
}

/// The reverse of [`copy_evens`]: adds to every second number.
#[inline(always)]
fn add_to_evens<T: Scalar>(to: &mut [T], from: &[T]) {
    let (pairs, last) = to.as_chunks_mut::<2>();
    // Both numbers are written, because a vector holds both.
    pairs.iter_mut().zip(from).for_each(|(to, from)| *to = [to[0] + *from, to[1]]);
    if let ([to], Some(from)) = (last, from.last()) {
        *to += *from;
    }
}

/// Writes these rows, restricted to the tile, to `out`, whose rows are `stride` long. What
/// lies between the tile's end and the row's end becomes zero.
pub fn unfold<T: Scalar>(g: &Geometry, x: &[T], rows: ColumnRows, tile: &Tile, out: &mut [T], stride: usize) {
    let ColumnRows { group, rows } = rows;
    let step = g.stride.width;
    vectorised(
        #[inline(always)]
        || {
            let (mut channel, mut place) = (group * g.group_in() + rows.start / g.taps(), rows.start % g.taps());
            for out in out.chunks_exact_mut(stride).take(rows.len()) {
                let x = &x[channel * g.height * g.width..];
                let mut end = 0;
                for run in &tile.runs[tile.places[place].clone()] {
                    out[end..run.to].fill(T::ZERO);
                    end = run.to + run.len;
                    let (out, x) = (&mut out[run.to..end], &x[run.from..][..(run.len - 1) * step + 1]);
                    match step {
                        1 => copy(out, x),
                        2 => copy_evens(out, x),
                        _ => out.iter_mut().zip(x.iter().step_by(step)).for_each(|(to, from)| *to = *from),
                    }
                }
                out[end..].fill(T::ZERO);
                place += 1;
                if place == g.taps() {
                    (channel, place) = (channel + 1, 0);
                }
            }
        },
    );
}

/// Adds these rows to the input positions from which they were unfolded.
///
/// # Safety
/// No other task may use these rows' channels of the tile's images.
pub unsafe fn fold_back<T: Scalar>(
    g: &Geometry,
    dx: &Shared<'_, T>,
    rows: &ColumnRows,
    tile: &Tile,
    columns: &[T],
    stride: usize,
) {
    let ColumnRows { group, rows } = rows;
    let step = g.stride.width;
    vectorised(
        #[inline(always)]
        || {
            let (mut channel, mut place) = (group * g.group_in() + rows.start / g.taps(), rows.start % g.taps());
            for row in columns.chunks_exact(stride).take(rows.len()) {
                for run in &tile.runs[tile.places[place].clone()] {
                    let row = &row[run.to..run.to + run.len];
                    let start = channel * g.height * g.width + run.from;
                    // SAFETY: by the caller's promise.
                    let target = unsafe { dx.slice(start, (run.len - 1) * step + 1) };
                    match step {
                        1 => target.iter_mut().zip(row).for_each(|(target, value)| *target += *value),
                        2 => add_to_evens(target, row),
                        _ => target.iter_mut().step_by(step).zip(row).for_each(|(target, value)| *target += *value),
                    }
                }
                place += 1;
                if place == g.taps() {
                    (channel, place) = (channel + 1, 0);
                }
            }
        },
    );
}
