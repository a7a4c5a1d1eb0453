//! Planes taken apart into transformed tiles, and put together from them.
//!
//! The pixel columns of a row of tiles are transformed first, in registers that lie along the row; the results of a few
//! rows of tiles stand one after the other in strips, [`STEP`] values for each tile. Then every fourth value of a strip
//! goes into one register, so that a lane holds a tile, and the tiles' rows are transformed. The way back is the
//! reverse. The order of the tiles in a register depends on the processor and does not matter to the products.

use std::ops::Range;

use pulp::{Arch, Simd, WithSimd};

use super::grid::Grid;
use super::transform::{SIDE, STEP, data, output, output_adjoint};
use crate::engine::cpu::blocking::VECTOR;
use crate::engine::cpu::op::activation;
use crate::engine::cpu::op::parallel::Shared;
use crate::engine::cpu::op::product::Matrix;
use crate::engine::cpu::op::scalar::Scalar;
use crate::engine::cpu::op::scratch::Scratch;
use crate::engine::cpu::op::vector::{Register, inside};
use crate::network::Extent;

/// The components of a transformed tile.
pub const COMPONENTS: usize = SIDE * SIDE;

/// A batch of planes: `channels` of `height` x `width` in each of `images`. A grid may have more images, of zeros.
#[derive(Clone, Copy, Debug)]
pub struct Planes {
    pub images: usize,
    pub channels: usize,
    pub height: usize,
    pub width: usize,
}

impl Planes {
    fn start(&self, image: usize, channel: usize) -> usize {
        (image * self.channels + channel) * self.height * self.width
    }
}

/// The number of tiles, rounded up to whole registers.
pub fn padded(tiles: usize) -> usize {
    tiles.next_multiple_of(VECTOR)
}

/// Room for the strips of one channel.
pub struct Strips<T: Scalar> {
    near: Scratch<T>,
    far: Scratch<T>,
}

impl<T: Scalar> Strips<T> {
    /// For at most `tiles` tiles at a time.
    pub fn new(tiles: usize) -> Self {
        Self { near: Scratch::new(SIDE * pitch(tiles)), far: Scratch::new(SIDE * pitch(tiles)) }
    }
}

/// The distance from one strip to the next; the last register of a strip may reach beyond its tiles.
fn pitch(tiles: usize) -> usize {
    STEP * padded(tiles) + VECTOR
}

/// Where the registers of a row of `len` values begin: the last one ends with the row, where that is long enough.
#[inline(always)]
fn starts(len: usize, lanes: usize) -> impl Iterator<Item = usize> {
    let last = len.saturating_sub(lanes);
    (0..last).step_by(lanes).chain(std::iter::once(last))
}

/// What becomes of a tile.
#[derive(Clone, Copy)]
pub enum TileKind {
    /// `B^T d B`, of an input's tile.
    Data,
    /// `A dy A^T`, of a tile of an output's gradient.
    Slopes,
}

/// The planes that are taken apart, with `before` rows and columns of zeros above and to the left of each.
#[derive(Clone, Copy)]
pub struct TileSource<'a, T> {
    pub values: &'a [T],
    pub planes: Planes,
    pub before: Extent,
    pub kind: TileKind,
}

/// The transformed tiles of all channels in some rows of tiles: for each component and channel a row in `room`. Zeros
/// fill the last register, in which tiles and zeros stand in any order.
pub struct Tiles<'a, T> {
    source: TileSource<'a, T>,
    grid: Grid,
    rows: Range<usize>,
    /// The length of a row.
    pub stride: usize,
    room: &'a Shared<'a, T>,
}

impl<'a, T: Scalar> Tiles<'a, T> {
    pub fn new(source: TileSource<'a, T>, grid: Grid, rows: Range<usize>, room: &'a Shared<'a, T>) -> Self {
        let stride = padded(rows.len() * grid.columns);
        Self { source, grid, rows, stride, room }
    }

    pub fn channels(&self) -> usize {
        self.source.planes.channels
    }

    /// Transforms the tiles of one channel.
    ///
    /// # Safety
    /// No other task may use this channel's rows.
    pub unsafe fn gather(&self, channel: usize, strips: &mut Strips<T>) {
        // SAFETY: by the caller's promise.
        let into = unsafe { Components::new(self.room, channel * self.stride, self.channels() * self.stride) };
        Arch::new().dispatch(Gather { tiles: self, channel, strips, into });
    }

    /// One component of some channels.
    ///
    /// # Safety
    /// No task may write to these rows.
    pub unsafe fn matrix(&self, component: usize, channels: Range<usize>) -> Matrix<'_, T> {
        let start = (component * self.channels() + channels.start) * self.stride;
        // SAFETY: by the caller's promise.
        let tiles = unsafe { self.room.get(start, channels.len() * self.stride) };
        Matrix::new(tiles, channels.len(), self.stride, self.stride)
    }

    /// Fills the strips with the transformed columns of `N` pixel rows of every row of tiles, from `shift` pixels to the right of each
    /// tile's first; zeros where the tiles end before the registers do.
    #[inline(always)]
    fn columns<S: Simd, const N: usize>(
        &self,
        simd: S,
        channel: usize,
        shift: usize,
        strips: &mut [T],
        transform: impl Fn([Register<T, S>; N]) -> [Register<T, S>; SIDE],
    ) {
        let (grid, TileSource { values, planes, before, .. }) = (self.grid, self.source);
        let (lanes, width) = (T::lanes::<S>(), STEP * grid.columns);
        let (tiles, pitch) = (self.rows.len() * grid.columns, pitch(self.stride));
        assert!(strips.len() >= SIDE * pitch && lanes <= VECTOR, "no room for the strips");
        let strips = strips.as_mut_ptr();
        let all = T::mask(simd, 0..lanes);
        let zero = Register { simd, values: T::splat(simd, T::ZERO) };
        let Planes { images, height, width: pixels, .. } = planes;
        for (i, at) in self.rows.clone().enumerate() {
            let (image, top) = (at / grid.rows, at % grid.rows * STEP);
            let plane = if image < images { planes.start(image, channel) } else { 0 };
            let plane = &values[plane..plane + if image < images { height * pixels } else { 0 }];
            for first in starts(width, lanes) {
                let mask = inside::<T, S>(simd, (first + shift) as isize - before.width as isize, pixels);
                let mut registers = [zero; N];
                for (row, register) in registers.iter_mut().enumerate() {
                    let y = (top + row).wrapping_sub(before.height);
                    if y < height && !plane.is_empty() {
                        let from = plane.as_ptr().wrapping_add(y * pixels + first + shift).wrapping_sub(before.width);
                        // SAFETY: the mask has the lanes that are inside of the row.
                        register.values = unsafe { T::load(simd, mask, from) };
                    }
                }
                let transformed = transform(registers);
                for (side, transformed) in transformed.into_iter().enumerate() {
                    // SAFETY: a register that begins in a row of tiles ends before the next strip begins.
                    unsafe { T::store(simd, all, strips.add(side * pitch + i * width + first), transformed.values) };
                }
            }
        }
        let zeros = STEP * (self.stride - tiles);
        for side in 0..SIDE {
            // SAFETY: the end of a strip.
            unsafe { std::slice::from_raw_parts_mut(strips.add(side * pitch + STEP * tiles), zeros) }.fill(T::ZERO);
        }
    }
}

/// The values of `lanes` tiles in a strip: four registers, with each tile's first, second, third and fourth.
///
/// # Safety
/// There must be as many values at `strip`.
#[inline(always)]
unsafe fn apart<T: Scalar, S: Simd>(simd: S, strip: *const T) -> [Register<T, S>; STEP] {
    let (lanes, mut values) = (T::lanes::<S>(), [T::splat(simd, T::ZERO); STEP]);
    let all = T::mask(simd, 0..lanes);
    for (i, values) in values.iter_mut().enumerate() {
        // SAFETY: by the caller's promise.
        *values = unsafe { T::load(simd, all, strip.add(i * lanes)) };
    }
    let [a, b, c, d] = T::apart(simd, values);
    [
        Register { simd, values: a },
        Register { simd, values: b },
        Register { simd, values: c },
        Register { simd, values: d },
    ]
}

/// Writes a register for each component.
///
/// # Safety
/// There must be room.
#[inline(always)]
unsafe fn store_row<T: Scalar, S: Simd>(simd: S, into: &[*mut T; SIDE], at: usize, values: &[Register<T, S>; SIDE]) {
    let all = T::mask(simd, 0..T::lanes::<S>());
    for (into, values) in into.iter().zip(values) {
        // SAFETY: by the caller's promise.
        unsafe { T::store(simd, all, into.add(at), values.values) };
    }
}

struct Gather<'a, T: Scalar> {
    tiles: &'a Tiles<'a, T>,
    channel: usize,
    strips: &'a mut Strips<T>,
    into: Components<'a, T>,
}

impl<T: Scalar> WithSimd for Gather<'_, T> {
    type Output = ();

    // The closures stay: a function passed by name would not be inlined where it is called.
    #[allow(clippy::redundant_closure)]
    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { tiles, channel, strips: Strips { near, far }, into } = self;
        let (kind, pitch) = (tiles.source.kind, pitch(tiles.stride));
        match kind {
            TileKind::Data => {
                for (shift, strips) in [(0, &mut *near), (STEP, &mut *far)] {
                    tiles.columns(
                        simd,
                        channel,
                        shift,
                        strips,
                        #[inline(always)]
                        |values| data(values),
                    );
                }
            }
            TileKind::Slopes => tiles.columns(
                simd,
                channel,
                0,
                near,
                #[inline(always)]
                |values| output_adjoint(values),
            ),
        }
        for row in 0..SIDE {
            let into = into.row(row, tiles.stride);
            let (near, far) = (&near[row * pitch..], &far[row * pitch..]);
            for at in (0..tiles.stride).step_by(T::lanes::<S>()) {
                // SAFETY: the strips and the components hold whole registers of tiles.
                unsafe {
                    let first = apart(simd, near[STEP * at..].as_ptr());
                    let transformed = match (kind, first) {
                        (TileKind::Data, [d0, d1, d2, d3]) => {
                            let [d4, d5, ..] = apart(simd, far[STEP * at..].as_ptr());
                            data([d0, d1, d2, d3, d4, d5])
                        }
                        (TileKind::Slopes, first) => output_adjoint(first),
                    };
                    store_row(simd, &into, at, &transformed);
                }
            }
        }
    }
}

/// Where the components of one channel's tiles lie in memory.
#[derive(Clone, Copy)]
pub struct Components<'a, T> {
    values: &'a Shared<'a, T>,
    first: usize,
    stride: usize,
}

impl<'a, T> Components<'a, T> {
    /// Component 0 begins at `first`, and the components are `stride` apart.
    ///
    /// # Safety
    /// No other task may use these components while this lives.
    pub unsafe fn new(values: &'a Shared<'a, T>, first: usize, stride: usize) -> Self {
        Self { values, first, stride }
    }

    /// Addresses of the `SIDE` components of row `row`, of `tiles` tiles each.
    #[inline(always)]
    pub fn row(&self, row: usize, tiles: usize) -> [*mut T; SIDE] {
        assert!(self.stride >= tiles, "components overlap");
        let mut rows = [std::ptr::null_mut(); SIDE];
        for (i, component) in rows.iter_mut().enumerate() {
            *component = self.values.address(self.first + (row * SIDE + i) * self.stride, tiles);
        }
        rows
    }
}

/// `A^T m A` of every tile of one channel in some rows of tiles, with bias and rectifier, to its place in the output. No
/// other task uses this channel of these rows meanwhile.
pub struct OutputTiles<'a, T: Scalar> {
    pub grid: Grid,
    pub planes: Planes,
    pub channel: usize,
    pub rows: Range<usize>,
    pub products: Components<'a, T>,
    pub strips: &'a mut Strips<T>,
    pub bias: T,
    pub range: activation::Range<T>,
    pub y: &'a Shared<'a, T>,
}

impl<T: Scalar> WithSimd for OutputTiles<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { grid, planes, channel, rows, products, strips, bias, range, y } = self;
        let (lanes, tiles) = (T::lanes::<S>(), rows.len() * grid.columns);
        let (all, pitch, strips) = (T::mask(simd, 0..lanes), pitch(tiles), &mut strips.near);
        let zero = Register { simd, values: T::splat(simd, T::ZERO) };
        for row in 0..SIDE {
            let products = products.row(row, padded(tiles));
            let strip = &mut strips[row * pitch..][..STEP * padded(tiles)];
            for at in (0..tiles).step_by(lanes) {
                let mut values: [Register<T, S>; SIDE] = [zero; SIDE];
                for (values, products) in values.iter_mut().zip(products) {
                    // SAFETY: the components hold whole registers of tiles.
                    values.values = unsafe { T::load(simd, all, products.add(at)) };
                }
                let [a, b, c, d] = output(values);
                let strip = strip[STEP * at..][..STEP * lanes].as_mut_ptr();
                for (i, values) in T::together(simd, [a.values, b.values, c.values, d.values]).into_iter().enumerate() {
                    // SAFETY: there are four registers.
                    unsafe { T::store(simd, all, strip.add(i * lanes), values) };
                }
            }
        }
        assert!(strips.len() >= SIDE * pitch && lanes <= VECTOR, "no room for the strips");
        // The columns of every row of tiles.
        let (strips, bias) = (strips.as_ptr(), T::splat(simd, bias));
        let Planes { images, height, width, .. } = planes;
        let inside = T::mask(simd, 0..lanes.min(width));
        for (i, at) in rows.enumerate() {
            let (image, top) = (at / grid.rows, at % grid.rows * STEP);
            if image >= images {
                break;
            }
            let plane = y.address(planes.start(image, channel), height * width);
            for first in starts(width, lanes) {
                let mut values: [Register<T, S>; SIDE] = [zero; SIDE];
                for (side, values) in values.iter_mut().enumerate() {
                    let place = side * pitch + i * STEP * grid.columns + first;
                    // SAFETY: a register that begins in a row of tiles ends before the next strip begins.
                    values.values = unsafe { T::load(simd, all, strips.add(place)) };
                }
                for (row, values) in output(values).into_iter().enumerate().take(height - top) {
                    let value = range.clamp_lanes(simd, T::plus(simd, values.values, bias));
                    // SAFETY: inside of the plane's row, and nobody else uses this channel of these rows.
                    unsafe { T::store(simd, inside, plane.add((top + row) * width + first), value) };
                }
            }
        }
    }
}
