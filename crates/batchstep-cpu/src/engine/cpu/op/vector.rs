//! Vectors as wide as the processor's widest registers, for kernels that the compiler does not vectorise by itself
//! because they read a row at an offset, with zeros beyond its ends.

use std::ops::{Add, Sub};

use pulp::Simd;

use super::lanes::Lanes;
use super::scalar::Scalar;

/// A register, together with its instruction set.
#[derive(Clone, Copy)]
pub struct Register<T: Lanes, S: Simd> {
    pub simd: S,
    pub values: T::Vector<S>,
}

impl<T: Lanes, S: Simd> Add for Register<T, S> {
    type Output = Self;

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self { values: T::plus(self.simd, self.values, other.values), ..self }
    }
}

impl<T: Lanes, S: Simd> Sub for Register<T, S> {
    type Output = Self;

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        Self { values: T::minus(self.simd, self.values, other.values), ..self }
    }
}

impl<T: Scalar, S: Simd> Register<T, S> {
    #[inline(always)]
    pub fn times(self, factor: f64) -> Self {
        let factor = T::splat(self.simd, T::from_f64(factor));
        Self { values: T::times(self.simd, factor, self.values), ..self }
    }

    /// `self + factor * other`.
    #[inline(always)]
    pub fn plus(self, factor: f64, other: Self) -> Self {
        let factor = T::splat(self.simd, T::from_f64(factor));
        Self { values: T::multiply_add(self.simd, factor, other.values, self.values), ..self }
    }
}

/// The lanes of a register that begins at value `at` of a row, which may lie before its first, for which there are
/// values: the row has `len`.
#[inline(always)]
pub fn inside<T: Lanes, S: Simd>(simd: S, at: isize, len: usize) -> T::Mask<S> {
    let lanes = T::lanes::<S>() as isize;
    let from = (-at).clamp(0, lanes);
    let to = (len as isize - at).clamp(from, lanes);
    T::mask(simd, from as usize..to as usize)
}

/// Sums over the `len` values of a plane. `terms` gives the terms of the register that begins at a value; the mask has
/// the lanes inside the plane, and in all other lanes the terms must be zero.
#[inline(always)]
pub fn sums<T: Scalar, S: Simd, const N: usize>(
    simd: S,
    len: usize,
    terms: impl Fn(usize, T::Mask<S>) -> [T::Vector<S>; N],
) -> [T; N] {
    // Partial sums, so that neighbouring additions do not wait for each other.
    let mut totals = [[T::splat(simd, T::ZERO); N]; PARTIAL];
    let lanes = T::lanes::<S>();
    let all = T::mask(simd, 0..lanes);
    let mut first = 0;
    while first + PARTIAL * lanes <= len {
        for (k, totals) in totals.iter_mut().enumerate() {
            add::<T, S, N>(simd, totals, terms(first + k * lanes, all));
        }
        first += PARTIAL * lanes;
    }
    for totals in &mut totals {
        if first + lanes <= len {
            add::<T, S, N>(simd, totals, terms(first, all));
            first += lanes;
        }
    }
    if first < len {
        add::<T, S, N>(simd, &mut totals[PARTIAL - 1], terms(first, T::mask(simd, 0..len - first)));
    }
    let [mut total, rest @ ..] = totals;
    for rest in rest {
        add::<T, S, N>(simd, &mut total, rest);
    }
    // A loop instead of `map`: `map` would be a call, across which the registers are not kept.
    let mut sums = [T::ZERO; N];
    for n in 0..N {
        sums[n] = T::sum(simd, total[n]);
    }
    sums
}

#[inline(always)]
fn add<T: Scalar, S: Simd, const N: usize>(simd: S, totals: &mut [T::Vector<S>; N], terms: [T::Vector<S>; N]) {
    for n in 0..N {
        totals[n] = T::plus(simd, totals[n], terms[n]);
    }
}

/// The number of partial sums for each value.
const PARTIAL: usize = 4;

/// Sets the `len` values at `to`; `value` gives each register by its first value.
///
/// If a row is not a whole number of registers, its last register overlaps the one before. A partly written register
/// would delay the next row, since a processor cannot forward data that it has just written to a read that covers more
/// than was written.
///
/// # Safety
/// The values must be writable. `value` may read only the values that it is asked for.
#[inline(always)]
pub unsafe fn map<T: Scalar, S: Simd>(
    simd: S,
    to: *mut T,
    len: usize,
    value: impl Fn(usize, T::Mask<S>) -> T::Vector<S>,
) {
    let lanes = T::lanes::<S>();
    let mask = T::mask(simd, 0..lanes.min(len));
    let last = len.saturating_sub(lanes);
    let end = value(last, mask);
    for first in (0..last).step_by(lanes) {
        // SAFETY: the register ends before the values do.
        unsafe { T::store(simd, mask, to.add(first), value(first, mask)) };
    }
    // SAFETY: the register ends with the values, or the mask does where there are fewer.
    unsafe { T::store(simd, mask, to.add(last), end) };
}
