//! From images to columns and back (im2col, col2im), a tile at a time.

use std::ops::Range;

use super::geometry::Geometry;
use crate::engine::candle::op::parallel::Shared;
use crate::engine::candle::op::scalar::Scalar;

/// A run of columns that lie in one row of one image's output.
#[derive(Clone, Copy, Debug)]
struct Segment {
    image: usize,
    out_row: usize,
    out_column: usize,
    len: usize,
    /// Where it begins in the tile.
    at: usize,
}

/// A range of columns (counted over the whole batch, image by image), cut at the ends of the output's rows.
pub struct Tile {
    segments: Vec<Segment>,
    /// The number of columns.
    pub len: usize,
}

impl Tile {
    pub fn new(g: &Geometry, columns: Range<usize>) -> Self {
        let mut tile = Self { segments: Vec::new(), len: columns.len() };
        let mut column = columns.start;
        while column < columns.end {
            let (image, position) = (column / g.positions(), column % g.positions());
            let (out_row, out_column) = (position / g.out_width, position % g.out_width);
            let len = (g.out_width - out_column).min(columns.end - column);
            tile.segments.push(Segment { image, out_row, out_column, len, at: column - columns.start });
            column += len;
        }
        tile
    }
}

/// One row of the column matrix: an input channel and a place in the kernel, with the output columns for which that
/// place is inside of the image.
struct Tap {
    channel: usize,
    row: usize,
    column: usize,
    inside: Range<usize>,
}

impl Tap {
    fn new(g: &Geometry, group: usize, k: usize) -> Self {
        let (channel, place) = (k / g.taps(), k % g.taps());
        let (row, column) = (place / g.kernel.1, place % g.kernel.1);
        // 0 <= out * stride + column - left < width
        let first = g.padding.left.saturating_sub(column).div_ceil(g.stride.1);
        let last = (g.width + g.padding.left).saturating_sub(column).div_ceil(g.stride.1);
        Self { channel: group * g.group_in() + channel, row, column, inside: first..last.max(first) }
    }

    /// Where the part of the segment that is inside of the image begins in the input and in the segment, and its length.
    #[inline(always)]
    fn source(&self, g: &Geometry, segment: &Segment) -> Option<(usize, usize, usize)> {
        let y = (segment.out_row * g.stride.0 + self.row).checked_sub(g.padding.top).filter(|&y| y < g.height)?;
        let first = self.inside.start.max(segment.out_column);
        let last = self.inside.end.min(segment.out_column + segment.len);
        if first >= last {
            return None;
        }
        let x = first * g.stride.1 + self.column - g.padding.left;
        let start = ((segment.image * g.in_channels + self.channel) * g.height + y) * g.width + x;
        Some((start, first - segment.out_column, last - first))
    }
}

/// Writes rows `rows` of a group's column matrix, restricted to the tile, to `out`, whose rows are `stride` long. What
/// lies between the tile's end and the row's end becomes zero.
pub fn unfold<T: Scalar>(
    g: &Geometry,
    x: &[T],
    (group, rows): (usize, Range<usize>),
    tile: &Tile,
    out: &mut [T],
    stride: usize,
) {
    for (k, out) in rows.zip(out.chunks_exact_mut(stride)) {
        let tap = Tap::new(g, group, k);
        out[tile.len..].fill(T::ZERO);
        for segment in &tile.segments {
            let out = &mut out[segment.at..segment.at + segment.len];
            let Some((start, offset, len)) = tap.source(g, segment) else {
                out.fill(T::ZERO);
                continue;
            };
            let (before, rest) = out.split_at_mut(offset);
            let (inside, after) = rest.split_at_mut(len);
            before.fill(T::ZERO);
            after.fill(T::ZERO);
            match g.stride.1 {
                1 => inside.copy_from_slice(&x[start..start + len]),
                step => {
                    let source = &x[start..start + (len - 1) * step + 1];
                    for (value, source) in inside.iter_mut().zip(source.iter().step_by(step)) {
                        *value = *source;
                    }
                }
            }
        }
    }
}

/// Adds rows `rows` of a group's column matrix to the input positions that they came from.
///
/// # Safety
/// No other task may use these rows' channels of the tile's images.
pub unsafe fn fold_back<T: Scalar>(
    g: &Geometry,
    dx: &Shared<'_, T>,
    (group, rows): (usize, Range<usize>),
    tile: &Tile,
    columns: &[T],
    stride: usize,
) {
    for (k, row) in rows.zip(columns.chunks_exact(stride)) {
        let tap = Tap::new(g, group, k);
        for segment in &tile.segments {
            let Some((start, offset, len)) = tap.source(g, segment) else { continue };
            let row = &row[segment.at + offset..segment.at + offset + len];
            // SAFETY: by the caller's promise.
            let target = unsafe { dx.slice(start, (len - 1) * g.stride.1 + 1) };
            match g.stride.1 {
                1 => target.iter_mut().zip(row).for_each(|(target, value)| *target += *value),
                step => target.iter_mut().step_by(step).zip(row).for_each(|(target, value)| *target += *value),
            }
        }
    }
}
