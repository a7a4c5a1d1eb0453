//! The largest value of each window of N x C x H x W, as `torch.nn.functional.max_pool2d`; padding counts as minus
//! infinity, and a NaN wins. The gradient goes to the first maximum of a window in row-major order.

use std::ops::Range;

use crate::engine::cpu::op::parallel::{Shared, for_each_piece, part, piece};
use crate::engine::cpu::op::scalar::{Scalar, vectorised};
use crate::error::{Error, Result};
use crate::network::{Extent, MaxPool2d, Operation, Padding, Shape};

/// Output rows shorter than this do not fill a vector.
const SHORT_ROW: usize = 8;

/// The windows of one plane.
#[derive(Clone, Copy, Debug)]
pub struct Windows {
    pub input: Extent,
    pub output: Extent,
    p: MaxPool2d,
}

impl Windows {
    /// # Errors
    /// As [`Operation::output`], and where a plane has more places than there are numbers for them.
    pub fn new(input: Extent, p: &MaxPool2d) -> Result<Self> {
        let plane = Shape::Maps { channels: 1, height: input.height, width: input.width };
        let output = Operation::from(*p).output(&[plane])?.extent();
        if u32::try_from(input.area()).is_err() {
            return Err(Error::engine(format!("max_pool2d: a plane of {input} is too large")));
        }
        Ok(Self { input, output, p: *p })
    }

    /// Two by two pixels, side by side: the windows of most networks.
    fn is_two_by_two(&self) -> bool {
        let MaxPool2d { kernel, stride, padding } = self.p;
        kernel == Extent::square(2) && stride == kernel && padding == Padding::default()
    }

    /// The output columns for which column `j` of the window is inside the plane.
    fn inside(&self, j: usize) -> Range<usize> {
        let (left, step) = (self.p.padding.left, self.p.stride.width);
        let first = left.saturating_sub(j).div_ceil(step);
        let last = (self.input.width + left).saturating_sub(j).div_ceil(step).min(self.output.width);
        first..last.max(first)
    }

    /// The input rows and columns under the window of an output.
    #[inline(always)]
    fn window(&self, row: usize, column: usize) -> (Range<usize>, Range<usize>) {
        let range = |at: usize, stride: usize, before: usize, kernel: usize, len: usize| {
            (at * stride).saturating_sub(before)..(at * stride + kernel - before).min(len)
        };
        let MaxPool2d { kernel, stride, padding } = self.p;
        (
            range(row, stride.height, padding.top, kernel.height, self.input.height),
            range(column, stride.width, padding.left, kernel.width, self.input.width),
        )
    }
}

/// `y`: the maxima; `winners`: the position of each in its plane.
pub fn forward<T: Scalar>(windows: &Windows, x: &[T], y: &mut [T], winners: &mut [u32]) {
    let (pixels, outputs) = (windows.input.area(), windows.output.area());
    let planes = x.len() / pixels;
    let step = piece(planes, pixels);
    let winners = Shared::new(winners);
    for_each_piece(y, step * outputs, |number, y| {
        // SAFETY: every number has one task.
        let winners = unsafe { winners.slice(number * step * outputs, y.len()) };
        let x = part(x, number, step * pixels);
        let planes = y.chunks_exact_mut(outputs).zip(winners.chunks_exact_mut(outputs));
        for ((y, winners), x) in planes.zip(x.chunks_exact(pixels)) {
            vectorised(
                #[inline(always)]
                || match windows.p.stride.width {
                    _ if windows.is_two_by_two() => two_by_two(windows, x, y, winners),
                    _ if windows.output.width < SHORT_ROW => by_window(windows, x, y, winners),
                    1 => by_row::<T, 1>(windows, x, y, winners),
                    2 => by_row::<T, 2>(windows, x, y, winners),
                    _ => by_window(windows, x, y, winners),
                },
            );
        }
    });
}

/// True where `value` replaces the maximum so far: only if it is larger, so that the first of equal values stays, or if
/// it is NaN, the only value that differs from itself.
#[inline(always)]
#[allow(clippy::eq_op)]
fn beats<T: Scalar>(value: T, maximum: T) -> bool {
    (value > maximum) | (value != value)
}

/// One plane of windows side by side, each read once.
#[inline(always)]
fn two_by_two<T: Scalar>(windows: &Windows, x: &[T], y: &mut [T], winners: &mut [u32]) {
    let width = windows.input.width;
    let rows = y.chunks_exact_mut(windows.output.width).zip(winners.chunks_exact_mut(windows.output.width));
    for (row, ((y, winners), x)) in rows.zip(x.chunks_exact(2 * width)).enumerate() {
        let (top, bottom) = x.split_at(width);
        let pairs = top.as_chunks::<2>().0.iter().zip(bottom.as_chunks::<2>().0);
        for (column, ((y, winner), (top, bottom))) in y.iter_mut().zip(winners).zip(pairs).enumerate() {
            let first = (2 * row * width + 2 * column) as u32;
            let (mut maximum, mut place) = (T::NEG_INFINITY, first);
            for (value, at) in [(top[0], 0), (top[1], 1), (bottom[0], width as u32), (bottom[1], width as u32 + 1)] {
                let wins = beats(value, maximum);
                maximum = if wins { value } else { maximum };
                place = if wins { first + at } else { place };
            }
            (*y, *winner) = (maximum, place);
        }
    }
}

/// One plane, a window at a time.
#[inline(always)]
fn by_window<T: Scalar>(windows: &Windows, x: &[T], y: &mut [T], winners: &mut [u32]) {
    let width = windows.input.width;
    for (i, (y, winner)) in y.iter_mut().zip(winners).enumerate() {
        let (rows, columns) = windows.window(i / windows.output.width, i % windows.output.width);
        let (mut maximum, mut place) = (T::NEG_INFINITY, rows.start * width + columns.start);
        for row in rows {
            let start = row * width + columns.start;
            for (at, value) in x[start..start + columns.len()].iter().enumerate() {
                // Two selections instead of a branch: which value wins is not predictable.
                let wins = beats(*value, maximum);
                maximum = if wins { *value } else { maximum };
                place = if wins { start + at } else { place };
            }
        }
        *y = maximum;
        *winner = place as u32;
    }
}

/// One plane, an output row at a time: each place in the window, in row-major order, is compared with the whole row of
/// maxima, which the compiler vectorises. `STEP` is the horizontal stride.
#[inline(always)]
fn by_row<T: Scalar, const STEP: usize>(windows: &Windows, x: &[T], y: &mut [T], winners: &mut [u32]) {
    let (width, left) = (windows.input.width, windows.p.padding.left);
    let rows = y.chunks_exact_mut(windows.output.width).zip(winners.chunks_exact_mut(windows.output.width));
    for (row, (y, winners)) in rows.enumerate() {
        let sources = windows.window(row, 0).0;
        y.fill(T::NEG_INFINITY);
        for (column, winner) in winners.iter_mut().enumerate() {
            *winner = (sources.start * width + (column * STEP).saturating_sub(left)) as u32;
        }
        for source in sources {
            for j in 0..windows.p.kernel.width {
                let inside = windows.inside(j);
                if !inside.is_empty() {
                    let start = source * width + inside.start * STEP + j - left;
                    let x = &x[start..start + (inside.len() - 1) * STEP + 1];
                    challenge::<T, STEP>(x, start as u32, &mut y[inside.clone()], &mut winners[inside]);
                }
            }
        }
    }
}

/// Compares `x[0], x[STEP], ...`, which begin at `start` in their plane, with the maxima so far.
#[inline(always)]
fn challenge<T: Scalar, const STEP: usize>(x: &[T], start: u32, y: &mut [T], winners: &mut [u32]) {
    let (steps, last) = x.as_chunks::<STEP>();
    for (i, (x, (y, winner))) in steps.iter().zip(y.iter_mut().zip(winners.iter_mut())).enumerate() {
        let wins = beats(x[0], *y);
        *y = if wins { x[0] } else { *y };
        *winner = if wins { start + (i * STEP) as u32 } else { *winner };
    }
    if let (Some(x), Some(y), Some(winner)) = (last.first(), y.last_mut(), winners.last_mut())
        && beats(*x, *y)
    {
        (*y, *winner) = (*x, start + (steps.len() * STEP) as u32);
    }
}

/// `dx`: each output's gradient, added at the position of its maximum.
pub fn backward<T: Scalar>(windows: &Windows, dy: &[T], winners: &[u32], dx: &mut [T]) {
    let (pixels, outputs) = (windows.input.area(), windows.output.area());
    let planes = dy.len() / outputs;
    let step = piece(planes, pixels);
    for_each_piece(dx, step * pixels, |number, dx| {
        let (dy, winners) = (part(dy, number, step * outputs), part(winners, number, step * outputs));
        let planes = dy.chunks_exact(outputs).zip(winners.chunks_exact(outputs));
        for (dx, (dy, winners)) in dx.chunks_exact_mut(pixels).zip(planes) {
            dx.fill(T::ZERO);
            dy.iter().zip(winners).for_each(|(dy, winner)| dx[*winner as usize] += *dy);
        }
    });
}
