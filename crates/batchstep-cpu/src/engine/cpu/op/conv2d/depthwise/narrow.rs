//! Depthwise convolution of planes whose rows are shorter than half a register: planes lie in registers as they lie in
//! memory, row after row; where several planes fit, a register holds those of several channels. A tap reads a register
//! at an offset, without the lanes whose row or column is outside their plane.

use std::ops::Range;

use pulp::{Simd, WithSimd};

use super::{Filter, K};
use crate::engine::cpu::blocking::VECTOR;
use crate::engine::cpu::op::activation;
use crate::engine::cpu::op::conv2d::geometry::Geometry;
use crate::engine::cpu::op::lanes::Lanes;
use crate::engine::cpu::op::parallel::Shared;
use crate::engine::cpu::op::scalar::Scalar;
use crate::engine::cpu::op::scratch::List;
use crate::network::{Extent, Padding};

const TAPS: usize = K * K;

/// Whether planes are of this kind: as many outputs as inputs.
pub fn suits(g: &Geometry) -> bool {
    g.stride == Extent::square(1) && g.padding == Padding::all(1) && 2 * g.width <= VECTOR
}

/// The lanes that each tap reads, and the lanes that belong to planes.
type Masks<T, S> = ([<T as Lanes>::Mask<S>; TAPS], <T as Lanes>::Mask<S>);

/// How planes lie in registers.
#[derive(Clone, Copy)]
struct Lay {
    height: usize,
    width: usize,
    /// Planes of a group; each group begins with a new register.
    planes: usize,
    /// Registers of a group; the last one may be only partly filled.
    registers: usize,
}

impl Lay {
    fn new<T: Scalar, S: Simd>(height: usize, width: usize) -> Self {
        let (pixels, lanes) = (height * width, T::lanes::<S>());
        let planes = (lanes / pixels).max(1);
        Self { height, width, planes, registers: (planes * pixels).div_ceil(lanes) }
    }

    fn pixels(&self) -> usize {
        self.height * self.width
    }

    /// [`Lay::masks`] for the groups of `channels` channels: first for all groups but the last, then for the last.
    #[inline(always)]
    fn masks_of_all<T: Scalar, S: Simd>(&self, simd: S, channels: usize) -> [List<Masks<T, S>>; 2] {
        let whole = self.masks::<T, S>(simd, self.planes);
        let last = match (channels - 1) % self.planes + 1 {
            planes if planes == self.planes => whole.iter().copied().collect(),
            planes => self.masks::<T, S>(simd, planes),
        };
        [whole, last]
    }

    /// For each register of a group of `planes` planes: the lanes that each tap reads, and the lanes that belong to
    /// planes.
    #[inline(always)]
    fn masks<T: Scalar, S: Simd>(&self, simd: S, planes: usize) -> List<Masks<T, S>> {
        let lanes = T::lanes::<S>();
        let mask = |there: [bool; VECTOR]| {
            let flags = there.map(|there| if there { T::ONE } else { T::ZERO });
            // SAFETY: a register has no more lanes than there are flags.
            T::ones(simd, unsafe { T::load(simd, T::mask(simd, 0..lanes), flags.as_ptr()) })
        };
        let register = |register: usize| {
            let (mut there, mut rows, mut columns) = ([false; VECTOR], [0; VECTOR], [0; VECTOR]);
            for lane in 0..lanes {
                let at = register * lanes + lane;
                there[lane] = at < planes * self.pixels();
                (rows[lane], columns[lane]) = (at % self.pixels() / self.width, at % self.width);
            }
            let mut taps = [mask(there); TAPS];
            for (tap, mask_of_tap) in taps.iter_mut().enumerate() {
                let mut reads = there;
                for lane in 0..lanes {
                    let (row, column) = (rows[lane] + tap / K, columns[lane] + tap % K);
                    reads[lane] &= (row.wrapping_sub(1) < self.height) & (column.wrapping_sub(1) < self.width);
                }
                *mask_of_tap = mask(reads);
            }
            (taps, mask(there))
        };
        (0..self.registers).map(register).collect()
    }

    /// For each group of channels: their numbers, each in the lanes of its plane.
    #[inline(always)]
    fn spread<T: Scalar, S: Simd, const N: usize>(
        &self,
        simd: S,
        channels: usize,
        of: impl Fn(usize) -> [T; N],
    ) -> List<[T::Vector<S>; N]> {
        let group = |first: usize| {
            let mut vectors = [T::splat(simd, T::ZERO); N];
            if self.planes == 1 {
                let numbers = of(first);
                for (vector, number) in vectors.iter_mut().zip(numbers) {
                    *vector = T::splat(simd, number);
                }
                return vectors;
            }
            let mut values = [[T::ZERO; VECTOR]; N];
            for plane in 0..self.planes.min(channels - first) {
                for (values, number) in values.iter_mut().zip(of(first + plane)) {
                    values[plane * self.pixels()..][..self.pixels()].fill(number);
                }
            }
            for (vector, values) in vectors.iter_mut().zip(&values) {
                // SAFETY: a register has no more lanes than there are values.
                *vector = unsafe { T::load(simd, T::mask(simd, 0..T::lanes::<S>()), values.as_ptr()) };
            }
            vectors
        };
        (0..channels).step_by(self.planes).map(group).collect()
    }

    /// Each register of the planes of some channels in some images: where it begins, the number of its group, and its
    /// own number in the group.
    #[inline(always)]
    fn each<T: Scalar, S: Simd>(
        &self,
        g: &Geometry,
        channels: &Range<usize>,
        mut work: impl FnMut(usize, usize, usize),
    ) {
        for image in 0..g.batch {
            for (group, channel) in channels.clone().step_by(self.planes).enumerate() {
                let start = (image * g.in_channels + channel) * self.pixels();
                for register in 0..self.registers {
                    work(start + register * T::lanes::<S>(), group, register);
                }
            }
        }
    }

    /// The offset at which a tap reads.
    #[inline(always)]
    fn offset(&self, tap: usize) -> isize {
        (tap / K) as isize * self.width as isize + (tap % K) as isize - self.width as isize - 1
    }
}

/// The filter's values, tap by tap.
fn flat<T: Copy>(filter: Filter<T>) -> [T; TAPS] {
    std::array::from_fn(|tap| filter[tap / K][tap % K])
}

/// `to = range(first + sum over the taps of a filter times what they read)` for some channels.
pub struct Sum<'a, T, F, B> {
    pub g: &'a Geometry,
    pub channels: Range<usize>,
    /// No task writes to the channels.
    pub from: &'a Shared<'a, T>,
    /// The filter of each channel.
    pub filter: F,
    pub first: B,
    pub range: activation::Range<T>,
    /// The channels belong to the caller.
    pub to: &'a Shared<'a, T>,
}

impl<T: Scalar, F: Fn(usize) -> Filter<T>, B: Fn(usize) -> T> WithSimd for Sum<'_, T, F, B> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { g, channels, from, filter, first, range, to } = self;
        let lay = Lay::new::<T, S>(g.height, g.width);
        let (len, pixels) = (channels.len(), lay.pixels());
        let [masks, of_last] = lay.masks_of_all::<T, S>(simd, len);
        let weights = lay.spread::<T, S, TAPS>(simd, len, |channel| flat(filter(channels.start + channel)));
        let firsts = lay.spread::<T, S, 1>(simd, len, |channel| [first(channels.start + channel)]);
        let all = g.batch * g.in_channels * pixels;
        let (from, to) = (from.address(0, all), to.address(0, all));
        let groups = weights.len();
        lay.each::<T, S>(
            g,
            &channels,
            #[inline(always)]
            |start, group, register| {
                let (taps, kept) = if group + 1 == groups { &of_last[register] } else { &masks[register] };
                let zero = T::splat(simd, T::ZERO);
                // One sum for each row of the filter, so that they do not wait for each other.
                let mut totals = [firsts[group][0], zero, zero];
                for (tap, weight) in weights[group].iter().enumerate() {
                    let values = from.wrapping_add(start).wrapping_offset(lay.offset(tap));
                    // SAFETY: the mask has lanes only inside these channels' planes, to which no task writes.
                    let values = unsafe { T::load(simd, taps[tap], values) };
                    totals[tap / K] = T::multiply_add(simd, *weight, values, totals[tap / K]);
                }
                let total = T::plus(simd, T::plus(simd, totals[0], totals[1]), totals[2]);
                // SAFETY: the mask has lanes only inside these channels' planes, which belong to the caller.
                unsafe { T::store(simd, *kept, to.wrapping_add(start), range.clamp_lanes(simd, total)) };
            },
        );
    }
}

/// The filters' gradients of some channels.
pub struct WeightGradient<'a, T> {
    pub g: &'a Geometry,
    pub channels: Range<usize>,
    /// No task writes to these channels.
    pub x: &'a Shared<'a, T>,
    /// As for `x`.
    pub dy: &'a Shared<'a, T>,
}

impl<T: Scalar> WithSimd for WeightGradient<'_, T> {
    type Output = List<Filter<T>>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> List<Filter<T>> {
        let Self { g, channels, x, dy } = self;
        let lay = Lay::new::<T, S>(g.height, g.width);
        let (len, pixels, lanes) = (channels.len(), lay.pixels(), T::lanes::<S>());
        let [masks, of_last] = lay.masks_of_all::<T, S>(simd, len);
        let groups = len.div_ceil(lay.planes);
        let mut totals = List::repeat([T::splat(simd, T::ZERO); TAPS], groups);
        let all = g.batch * g.in_channels * pixels;
        let (x, dy) = (x.address(0, all).cast_const(), dy.address(0, all).cast_const());
        lay.each::<T, S>(
            g,
            &channels,
            #[inline(always)]
            |start, group, register| {
                let (taps, kept) = if group + 1 == groups { &of_last[register] } else { &masks[register] };
                // SAFETY: the masks have lanes only inside these channels' planes, to which no task writes.
                unsafe {
                    let dy = T::load(simd, *kept, dy.wrapping_add(start));
                    for (tap, total) in totals[group].iter_mut().enumerate() {
                        let values = x.wrapping_add(start).wrapping_offset(lay.offset(tap));
                        *total = T::multiply_add(simd, dy, T::load(simd, taps[tap], values), *total);
                    }
                }
            },
        );
        let mut sums = List::repeat([[T::ZERO; K]; K], len);
        for (totals, sums) in totals.iter().zip(sums.chunks_mut(lay.planes)) {
            for (tap, total) in totals.iter().enumerate() {
                if let [sum] = sums {
                    sum[tap / K][tap % K] = T::sum(simd, *total);
                    continue;
                }
                let mut values = [T::ZERO; VECTOR];
                // SAFETY: a register has no more lanes than there are values.
                unsafe { T::store(simd, T::mask(simd, 0..lanes), values.as_mut_ptr(), *total) };
                for (sum, values) in sums.iter_mut().zip(values.chunks_exact(pixels)) {
                    sum[tap / K][tap % K] = values.iter().fold(T::ZERO, |sum, value| sum + *value);
                }
            }
        }
        sums
    }
}
