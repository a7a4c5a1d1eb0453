//! Convolutions as products without unfolding (implicit GEMM). A row of the right side has the values that one tap of a
//! filter reads from one channel. It is read from the channel's plane itself, with the zeros around it ([`sheet`]), at
//! an offset for each tap.
//!
//! The gradient of the input is the same product with turned filters. The gradient of the weights is, for each tap, a
//! product of the output's gradient with such planes, transposed.

mod gradient;
mod sheet;

use std::ops::Range;

use super::cpu::{cut, enough_tasks};
use super::geometry::Geometry;
use crate::engine::cpu::blocking::VECTOR;
use crate::engine::cpu::op::activation::Range as Values;
use crate::engine::cpu::op::filters::Filters;
use crate::engine::cpu::op::parallel::{Shared, for_each_task, threads};
use crate::engine::cpu::op::product::{Factors, Matrix, MatrixMut, Write, multiply};
use crate::engine::cpu::op::scalar::{Scalar, vectorised};
use crate::engine::cpu::op::scratch::{List, Scratch};
use crate::network::Direction;
pub use gradient::weight_gradient;
use sheet::{Axis, Sheet};

/// About how many positions of an image one product computes.
const COLUMNS: usize = 512;
/// The fewest target channels of a task: each task lays out the planes for itself.
const BLOCK: usize = 16;
/// The fewest channels on either side: in the weights' gradient they lie along vectors.
const FEWEST: usize = 16;
/// The most channels: with more, unfolding costs little compared with the product, and its right side then lies closer
/// together (measured: docs/cpu-engine.md).
const MOST: usize = 64;
/// The fewest positions of an image: each image is a product by itself.
const POSITIONS: usize = 128;

/// Whether this way is faster than unfolding the images.
pub fn suits(g: &Geometry) -> bool {
    let is_between = |channels| (FEWEST..=MOST).contains(&channels);
    g.is_dense()
        && g.taps() > 1
        && [g.in_channels, g.out_channels].into_iter().all(is_between)
        && g.positions() >= POSITIONS
}

/// Which inputs each output reads.
fn axes(g: &Geometry) -> [Axis; 2] {
    [
        Axis { len: g.height, taps: g.kernel.height, before: g.padding.top, outputs: g.out_height },
        Axis { len: g.width, taps: g.kernel.width, before: g.padding.left, outputs: g.out_width },
    ]
}

/// Which gradients of outputs each input's gradient reads.
fn turned_axes(g: &Geometry) -> [Axis; 2] {
    let (kernel, pad) = (g.kernel, g.padding);
    [
        Axis { len: g.out_height, taps: kernel.height, before: kernel.height - 1 - pad.top, outputs: g.height },
        Axis { len: g.out_width, taps: kernel.width, before: kernel.width - 1 - pad.left, outputs: g.width },
    ]
}

/// Rows of outputs that are computed at a time.
fn bands(rows: Axis, columns: Axis) -> List<Range<usize>> {
    cut(rows.outputs, (rows.outputs * columns.outputs).div_ceil(COLUMNS), 1).collect()
}

/// `y = rectifier(w * x + bias)`.
pub fn forward<T: Scalar>(g: &Geometry, x: &[T], filters: Filters<'_, T>, y: &mut [T]) {
    let channels = [g.in_channels, g.out_channels];
    Correlation { images: g.batch, channels, axes: axes(g), filters, factors: g.factors() }.run(x, &Shared::new(y));
}

/// `dx`: the correlation of `dy` with turned filters.
pub fn input_gradient<T: Scalar>(g: &Geometry, weight: &[T], dy: &[T], dx: &mut [T]) {
    let mut turned = Scratch::new(weight.len());
    for (at, to) in turned.chunks_exact_mut(g.taps()).enumerate() {
        let (channel, output) = (at / g.out_channels, at % g.out_channels);
        let filter = &weight[(output * g.in_channels + channel) * g.taps()..][..g.taps()];
        to.iter_mut().zip(filter.iter().rev()).for_each(|(to, from)| *to = *from);
    }
    let (channels, filters) = ([g.out_channels, g.in_channels], Filters::plain(&turned));
    let correlation = Correlation { images: g.batch, channels, axes: turned_axes(g), filters, factors: g.factors() };
    correlation.run(dy, &Shared::new(dx));
}

struct Correlation<'a, T> {
    images: usize,
    /// The channels of the source and of the target.
    channels: [usize; 2],
    axes: [Axis; 2],
    /// For each target channel a filter for each source channel, and what comes after the sums.
    filters: Filters<'a, T>,
    factors: Factors,
}

/// A task for each of some blocks of the target channels of each of some bands of each image.
fn bands_and_blocks(images: usize, [rows, columns]: [Axis; 2], to: usize, threads: usize) -> [List<Range<usize>>; 2] {
    let bands = bands(rows, columns);
    let pieces = enough_tasks(threads).div_ceil(images * bands.len()).min(to.div_ceil(BLOCK));
    [bands, cut(to, pieces, BLOCK).collect()]
}

/// The lengths of the tasks' work in one direction, in the order in which they are taken.
pub(super) fn pieces(g: &Geometry, direction: Direction, threads: usize) -> Vec<usize> {
    let of = |axes, to| {
        let [bands, blocks] = bands_and_blocks(g.batch, axes, to, threads);
        let of_an_image = bands.iter().flat_map(|band| blocks.iter().map(|block| band.len() * block.len()));
        of_an_image.collect::<Vec<_>>().repeat(g.batch)
    };
    match direction {
        Direction::Forward => of(axes(g), g.out_channels),
        Direction::BackwardData => of(turned_axes(g), g.in_channels),
        Direction::BackwardWeights => gradient::pieces(g, threads),
    }
}

impl<T: Scalar> Correlation<'_, T> {
    fn run(&self, source: &[T], target: &Shared<'_, T>) {
        let Self { images, channels: [from, to], axes: [rows, columns], filters, factors } = *self;
        let [bands, blocks] = bands_and_blocks(images, self.axes, to, threads());
        let most = bands.iter().map(Range::len).max().unwrap_or(1);
        let sheet = Sheet::new(rows, columns, most);
        let (places, stride) = (sheet.places(), sheet.sums(most).next_multiple_of(VECTOR));
        let (plane, depth) = (rows.len * columns.len, from * places.len());
        let longest = blocks.iter().map(Range::len).max().unwrap_or(0);
        for_each_task(
            images * bands.len() * blocks.len(),
            || (Scratch::new(from * sheet.len), Scratch::new(longest * stride)),
            |(planes, sums), task| {
                let (rest, block) = (task / blocks.len(), &blocks[task % blocks.len()]);
                let (image, band) = (rest / bands.len(), &bands[rest % bands.len()]);
                let source = source[image * from * plane..][..from * plane].chunks_exact(plane);
                let to_planes = planes.chunks_exact_mut(sheet.len);
                source.zip(to_planes).for_each(|(source, to)| sheet.fill(source, band, to));
                let columns = sheet.sums(band.len());
                multiply(
                    MatrixMut::new(sums, block.len(), columns, stride),
                    Matrix::new(&filters.weight[block.start * depth..], block.len(), depth, depth),
                    Matrix::views(planes, &places, from, sheet.len, columns),
                    Write::Overwrite,
                    factors,
                );
                for (channel, sums) in block.clone().zip(sums.chunks_exact(stride)) {
                    // SAFETY: these rows of this channel of the image belong to this task.
                    unsafe { self.store(image, channel, band, (sums, sheet.pitch), target) };
                }
            },
        );
    }

    /// Writes the sums of a band of one channel to their places.
    ///
    /// # Safety
    /// No other task may use these places.
    unsafe fn store(
        &self,
        image: usize,
        channel: usize,
        band: &Range<usize>,
        (sums, pitch): (&[T], usize),
        target: &Shared<'_, T>,
    ) {
        let Self { axes: [rows, columns], filters, .. } = self;
        let (values, bias): (Values<T>, _) = (filters.rectifier.range(), filters.bias(channel));
        let plane = (image * self.channels[1] + channel) * rows.outputs;
        vectorised(
            #[inline(always)]
            || {
                for (sums, row) in sums.chunks(pitch).zip(band.clone()) {
                    // SAFETY: by the caller's promise.
                    let to = unsafe { target.slice((plane + row) * columns.outputs, columns.outputs) };
                    to.iter_mut().zip(sums).for_each(|(to, sum)| *to = values.clamp(*sum + bias));
                }
            },
        );
    }
}
