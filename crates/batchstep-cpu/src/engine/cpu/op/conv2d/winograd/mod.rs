//! Convolutions of 3 x 3 taps and stride 1 by Winograd's algorithm F(4 x 4, 3 x 3): a quarter of the multiplications.
//!
//! An output tile of 4 x 4 is made from an input tile of 6 x 6. Tiles and filters are transformed, in 36 components each; for each
//! component the products over the channels are one matrix product, filters x channels by channels x tiles; and the products are
//! transformed back. Lavin & Gray, Fast algorithms for convolutional neural networks, CVPR 2016.
//!
//! The gradient of the input is the same algorithm with turned filters. The gradient of the weights is the algorithm's
//! adjoint: the transformed filters' gradient is a product over the tiles, and one of its sides is the same transformed
//! input.

mod filters;
mod gradient;
mod grid;
mod tiles;
mod transform;

use std::ops::Range;

use pulp::Arch;

use super::WinogradThreshold;
use super::cpu::{cut, enough_tasks};
use super::geometry::Geometry;
use crate::engine::cpu::blocking::VECTOR;
use crate::engine::cpu::op::activation::{self, Rectifier};
use crate::engine::cpu::op::filters::Filters;
use crate::engine::cpu::op::parallel::{Shared, for_each, for_each_task, threads};
use crate::engine::cpu::op::product::{Factors, MatrixMut, Write, multiply_by_strips};
use crate::engine::cpu::op::scalar::Scalar;
use crate::engine::cpu::op::scratch::{List, Scratch};
use crate::network::{Direction, Extent};
use filters::{Matrices, Weights};
pub use gradient::weight_gradient;
use grid::Grid;
use tiles::{COMPONENTS, Components, OutputTiles, Planes, Strips, TileKind, TileSource, Tiles};
use transform::TAPS;

/// About how many tiles a task takes through all channels: the row length at which the products are fastest (measured
/// from 64 to 256 on a Xeon with 2 MiB of second-level cache).
const TILES: usize = 192;
/// The fewest tiles of a task. It applies where larger tasks would be too few and there are at most [`FILTERS`] scalars
/// of filters, since each task reads them all.
const FEWEST: usize = 48;
/// The most scalars of transformed filters that each task may read, or add up, for itself: about a few times the
/// second-level cache.
const FILTERS: usize = 1 << 19;
/// The most scalars of transformed tiles that all threads work on together.
const TOGETHER: usize = 8 << 20;
/// The fewest channels on either side for which the transforms pay off.
const CHANNELS: usize = 24;
/// The least factor by which multiplications must be saved to make up for the transforms of the tiles.
const SAVED: f64 = 1.5;
/// Up to this number of tiles, every task reads all tiles and transforms some filters for itself.
const FEW_TILES: usize = 64;
/// The most target channels of such a task.
const BLOCK: usize = 32;
/// Scalars of the filters that it transforms at a time: half of a second-level cache.
const NEAR: usize = 1 << 17;
/// About how many scalars of transformed filters fit in the third-level cache: 16 MB.
const CACHED: usize = 1 << 22;

/// Whether this algorithm can compute a convolution.
pub fn fits(g: &Geometry) -> bool {
    g.is_dense() && g.kernel == Extent::square(TAPS)
}

/// Whether the algorithm is faster: the saved multiplications make up for the transforms of the tiles and, from `threshold` on, of the filters.
pub fn suits(g: &Geometry, threshold: WinogradThreshold) -> bool {
    let tiles = Grid::new(g.batch, g.out_height, g.out_width).tiles();
    // Multiplications by the definition, divided by the number that this algorithm needs.
    let saved = (TAPS * TAPS * g.columns()) as f64 / (COMPONENTS * tiles) as f64;
    let least = threshold.0[usize::from(COMPONENTS * g.in_channels * g.out_channels > CACHED)];
    let pays = g.in_channels.min(g.out_channels) >= CHANNELS && saved >= SAVED;
    fits(g) && pays && tiles as f64 * (saved - 1.0) >= least
}

fn input_planes(g: &Geometry) -> Planes {
    Planes { images: g.batch, channels: g.in_channels, height: g.height, width: g.width }
}

fn output_planes(g: &Geometry) -> Planes {
    Planes { images: g.batch, channels: g.out_channels, height: g.out_height, width: g.out_width }
}

/// The tiles of the input, and those of the output's gradient.
fn sources<'a, T>(g: &Geometry, x: &'a [T], dy: &'a [T]) -> [TileSource<'a, T>; 2] {
    let before = Extent::new(g.padding.top, g.padding.left);
    let data = TileSource { values: x, planes: input_planes(g), before, kind: TileKind::Data };
    [data, TileSource { values: dy, planes: output_planes(g), before: Extent::square(0), kind: TileKind::Slopes }]
}

/// `y = rectifier(w * x + bias)`.
pub fn forward<T: Scalar>(g: &Geometry, x: &[T], filters: Filters<'_, T>, y: &mut [T]) {
    let correlation = Correlation {
        grid: Grid::new(g.winograd_images(), g.out_height, g.out_width),
        source: sources(g, x, &[])[0],
        weights: Weights { values: filters.weight, outputs: g.out_channels, inputs: g.in_channels, turned: false },
        planes: output_planes(g),
        bias: filters.bias,
        range: filters.rectifier.range(),
        strip: g.blocking.product_columns,
    };
    correlation.run(y);
}

/// `dx`: the full correlation of `dy` with turned filters.
pub fn input_gradient<T: Scalar>(g: &Geometry, weight: &[T], dy: &[T], dx: &mut [T]) {
    let before = Extent::new(TAPS - 1 - g.padding.top, TAPS - 1 - g.padding.left);
    let correlation = Correlation {
        grid: Grid::new(g.winograd_images(), g.height, g.width),
        source: TileSource { values: dy, planes: output_planes(g), before, kind: TileKind::Data },
        weights: Weights { values: weight, outputs: g.out_channels, inputs: g.in_channels, turned: true },
        planes: input_planes(g),
        bias: None,
        range: Rectifier::Identity.range(),
        strip: g.blocking.product_columns,
    };
    correlation.run(dx);
}

/// The rows of tiles that each task takes through all channels, where the transformed filters have `filters` scalars;
/// `None` where there are too few tiles for each task to read all filters. Every thread gets the same number of pieces:
/// with one piece more, all other threads would wait for it.
fn pieces(grid: &Grid, filters: usize, threads: usize) -> Option<List<Range<usize>>> {
    let share = grid.tiles() / (2 * threads);
    let most = if filters <= FILTERS { share.clamp(FEWEST, TILES) } else { TILES };
    let count = grid.pieces(most).len();
    (count >= 2 * threads).then(|| grid.even_pieces(count.next_multiple_of(threads)))
}

/// The rows of tiles of each task in one direction; `None` where the threads share out channels and components instead
/// of tiles.
pub(super) fn tasks(g: &Geometry, direction: Direction, threads: usize) -> Option<List<Range<usize>>> {
    let (height, width) =
        if direction == Direction::BackwardData { (g.height, g.width) } else { (g.out_height, g.out_width) };
    let grid = Grid::new(g.winograd_images(), height, width);
    let filters = COMPONENTS * g.in_channels * g.out_channels;
    match direction {
        Direction::BackwardWeights => gradient::parts(&grid, filters, threads),
        _ => pieces(&grid, filters, threads),
    }
}

/// A correlation of all source channels with filters for each target channel.
struct Correlation<'a, T> {
    grid: Grid,
    source: TileSource<'a, T>,
    weights: Weights<'a, T>,
    /// The planes of the target.
    planes: Planes,
    bias: Option<&'a [T]>,
    range: activation::Range<T>,
    /// The most columns of a product in one call.
    strip: Option<usize>,
}

impl<T: Scalar> Correlation<'_, T> {
    fn run(&self, y: &mut [T]) {
        let y = Shared::new(y);
        let Weights { outputs, inputs, turned, .. } = self.weights;
        let pieces = pieces(&self.grid, COMPONENTS * outputs * inputs, threads());
        if pieces.is_none() && self.stride(&(0..self.grid.all_rows())) <= FEW_TILES {
            return self.run_by_filters(&y);
        }
        let components = &self.weights.transformed();
        let matrices = Matrices { components, outputs, inputs, turned };
        match pieces {
            Some(pieces) => self.run_apart(&pieces, &matrices, &y),
            None => self.run_together(&matrices, &y),
        }
    }

    /// For so few tiles that most of what is read is filters: a task takes all tiles through the filters of some target
    /// channels and transforms these filters as it needs them. If all filters were transformed at once, they would be
    /// written to memory and read back.
    fn run_by_filters(&self, y: &Shared<'_, T>) {
        let (from, to) = (self.source.planes.channels, self.planes.channels);
        let rows = 0..self.grid.all_rows();
        let mut data = Scratch::new(COMPONENTS * from * self.stride(&rows));
        let data = Shared::new(&mut data);
        let tiles = Tiles::new(self.source, self.grid, rows.clone(), &data);
        let stride = tiles.stride;
        // SAFETY: nobody uses the tiles meanwhile.
        unsafe { gather(&[&tiles]) };
        let block = to.div_ceil(4 * threads()).min(BLOCK);
        let sources: List<_> = cut(from, (COMPONENTS * block * from).div_ceil(NEAR), 1).collect();
        let scratch = || {
            let room = |columns: usize| Scratch::new(COMPONENTS * block * columns);
            (Strips::new(stride), room(stride), room(sources[0].len()))
        };
        for_each_task(to.div_ceil(block), scratch, |(strips, products, filters), task| {
            let targets = task * block..((task + 1) * block).min(to);
            let count = targets.len();
            for sources in &sources {
                let mode = if sources.start == 0 { Write::Overwrite } else { Write::AddTo };
                let matrices = self.weights.matrices(targets.clone(), sources.clone(), filters);
                for (at, product) in products.chunks_exact_mut(count * stride).take(COMPONENTS).enumerate() {
                    // SAFETY: no task writes to the data any more.
                    let data = unsafe { tiles.matrix(at, sources.clone()) };
                    let target = MatrixMut::new(product, count, stride, stride);
                    multiply_by_strips(target, matrices.rows(at, 0..count), data, mode, Factors::Exact, self.strip);
                }
            }
            let products = Shared::new(products);
            for (row, channel) in targets.enumerate() {
                // SAFETY: these channels, and the room, belong to this task.
                unsafe { self.finish(channel, &rows, (&products, row, count), strips, y) };
            }
        });
    }

    /// Many tiles: each task takes some through all channels.
    fn run_apart(&self, pieces: &[Range<usize>], filters: &Matrices<'_, T>, y: &Shared<'_, T>) {
        let (from, to) = (self.source.planes.channels, self.planes.channels);
        let longest = pieces.iter().map(|rows| self.stride(rows)).max().unwrap_or(0);
        let scratch = || {
            let room = |channels: usize| Scratch::new(COMPONENTS * channels * longest);
            (Strips::new(longest), room(from), room(to))
        };
        for_each_task(pieces.len(), scratch, |(strips, data, products), task| {
            let (data, products) = (Shared::new(data), Shared::new(products));
            let tiles = Tiles::new(self.source, self.grid, pieces[task].clone(), &data);
            // SAFETY: these rows, and the room, belong to this task, which uses it for one thing at a time.
            unsafe {
                (0..from).for_each(|channel| tiles.gather(channel, strips));
                (0..COMPONENTS).for_each(|at| self.multiply(at, 0..to, filters, &tiles, &products));
                (0..to).for_each(|channel| self.finish(channel, &pieces[task], (&products, channel, to), strips, y));
            }
        });
    }

    /// Few tiles: all threads together take all tiles, or as many as there is room for, through one stage after the
    /// other.
    fn run_together(&self, filters: &Matrices<'_, T>, y: &Shared<'_, T>) {
        let (from, to) = (self.source.planes.channels, self.planes.channels);
        let pieces = self.grid.pieces((TOGETHER / (COMPONENTS * (from + to))).max(TILES));
        let longest = pieces.iter().map(|rows| self.stride(rows)).max().unwrap_or(0);
        let (mut data, mut products) =
            (Scratch::new(COMPONENTS * from * longest), Scratch::new(COMPONENTS * to * longest));
        let (data, products) = (Shared::new(&mut data), Shared::new(&mut products));
        for rows in &pieces {
            let tiles = Tiles::new(self.source, self.grid, rows.clone(), &data);
            // SAFETY: a task has its channels, or its rows of a component, for itself, and each stage ends before the next.
            unsafe { gather(&[&tiles]) };
            // SAFETY: as above.
            for_each_block(to, |at, rows| unsafe { self.multiply(at, rows, filters, &tiles, &products) });
            let strips = || Strips::new(longest);
            for_each_channel(to, strips, |strips, channel| {
                // SAFETY: as above.
                unsafe { self.finish(channel, rows, (&products, channel, to), strips, y) };
            });
        }
    }

    /// Some rows of one component's product.
    ///
    /// # Safety
    /// No other task may write to the component's data, or use these rows of its products.
    unsafe fn multiply(
        &self,
        component: usize,
        rows: Range<usize>,
        filters: &Matrices<'_, T>,
        data: &Tiles<'_, T>,
        products: &Shared<'_, T>,
    ) {
        let start = (component * self.planes.channels + rows.start) * data.stride;
        // SAFETY: by the caller's promise.
        let (target, data) = unsafe {
            let target = MatrixMut::shared(products, start, rows.len(), data.stride, data.stride);
            (target, data.matrix(component, 0..data.channels()))
        };
        let filters = filters.rows(component, rows);
        multiply_by_strips(target, filters, data, Write::Overwrite, Factors::Exact, self.strip);
    }

    /// Transforms one target channel back in some rows of tiles. Each component has `all` rows of products, and the
    /// channel's is number `row`.
    ///
    /// # Safety
    /// No other task may use the channel's products, or its rows of the target.
    unsafe fn finish(
        &self,
        channel: usize,
        rows: &Range<usize>,
        (products, row, all): (&Shared<'_, T>, usize, usize),
        strips: &mut Strips<T>,
        y: &Shared<'_, T>,
    ) {
        let stride = self.stride(rows);
        // SAFETY: by the caller's promise.
        let products = unsafe { Components::new(products, row * stride, all * stride) };
        let (bias, rows) = (self.bias.map_or(T::ZERO, |bias| bias[channel]), rows.clone());
        let Self { grid, planes, range, .. } = *self;
        Arch::new().dispatch(OutputTiles { grid, planes, channel, rows, products, strips, bias, range, y });
    }

    /// The number of tiles in a row of a product.
    fn stride(&self, rows: &Range<usize>) -> usize {
        tiles::padded(rows.len() * self.grid.columns)
    }
}

/// Runs `work` for all channels, some neighbours in one task: threads that write to neighbouring cache lines would take
/// them from each other.
fn for_each_channel<S>(channels: usize, scratch: impl Fn() -> S + Sync, work: impl Fn(&mut S, usize) + Sync) {
    let tasks: List<_> = cut(channels, enough_tasks(threads()), 1).collect();
    for_each_task(tasks.len(), scratch, |scratch, task| tasks[task].clone().for_each(|channel| work(scratch, channel)));
}

/// Transforms the tiles of all channels, by all threads.
///
/// # Safety
/// Nobody else may use them meanwhile.
unsafe fn gather<T: Scalar>(all: &[&Tiles<'_, T>]) {
    let (channels, longest) = (all.iter().map(|tiles| tiles.channels()).sum(), all[0].stride);
    for_each_channel(
        channels,
        || Strips::new(longest),
        |strips, mut channel| {
            for tiles in all {
                if channel < tiles.channels() {
                    // SAFETY: a task has its channel for itself.
                    return unsafe { tiles.gather(channel, strips) };
                }
                channel -= tiles.channels();
            }
        },
    );
}

/// Runs `work` for all rows of each component's product, some rows of one component in one task.
fn for_each_block(rows: usize, work: impl Fn(usize, Range<usize>) + Sync) {
    let pieces = (4 * threads()).div_ceil(COMPONENTS);
    let block = rows.div_ceil(pieces).next_multiple_of(VECTOR);
    let blocks = rows.div_ceil(block);
    for_each(COMPONENTS * blocks, |task| {
        let start = task % blocks * block;
        work(task / blocks, start..(start + block).min(rows));
    });
}
