//! The two number types of the operators.

use std::fmt::{Debug, Display};
use std::ops::Neg;

use num_traits::NumAssign;

use super::exponential;
use super::lanes::Lanes;
use super::parallel::{for_each_piece, part, piece};

/// float32, or float64 as a reference for it.
pub trait Scalar:
    Lanes + NumAssign + Neg<Output = Self> + PartialOrd + Default + Debug + Display + From<f32> + Send + Sync + 'static
{
    const ZERO: Self;
    const ONE: Self;
    const INFINITY: Self;
    const NEG_INFINITY: Self;

    /// Rounded.
    fn from_f64(value: f64) -> Self;
    fn to_f64(self) -> f64;
    fn exp(self) -> Self;
    fn ln(self) -> Self;
}

macro_rules! scalar {
    ($($float:ident with $exp:path),+) => {$(
        impl Scalar for $float {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const INFINITY: Self = $float::INFINITY;
            const NEG_INFINITY: Self = $float::NEG_INFINITY;

            #[inline(always)]
            fn from_f64(value: f64) -> Self {
                value as $float
            }

            #[inline(always)]
            fn to_f64(self) -> f64 {
                f64::from(self)
            }

            #[inline(always)]
            fn exp(self) -> Self {
                $exp(self)
            }

            #[inline(always)]
            fn ln(self) -> Self {
                $float::ln(self)
            }
        }
    )+};
}
scalar!(f32 with exponential::exp, f64 with f64::exp);

pub fn doubles<T: Scalar>(values: &[T]) -> Vec<f64> {
    values.iter().map(|value| value.to_f64()).collect()
}

/// Runs `work` compiled for the widest vectors of this processor. Plain loops inside it are vectorised by the compiler,
/// provided that every function on the way to them is inlined.
#[inline(always)]
pub fn vectorised<R>(work: impl FnOnce() -> R) -> R {
    pulp::Arch::new().dispatch(work)
}

/// Sets each of the values `y` to `value(y, a, b)`, with the values of `a` and `b` at its place, on all threads; one
/// takes as long as moving `cost` scalars.
pub fn set_each<T: Scalar>(y: &mut [T], cost: usize, [a, b]: [&[T]; 2], value: impl Fn(T, T, T) -> T + Sync) {
    let step = piece(y.len(), cost);
    for_each_piece(y, step, |number, y| {
        let (a, b) = (part(a, number, step), part(b, number, step));
        vectorised(
            #[inline(always)]
            || y.iter_mut().zip(a.iter().zip(b)).for_each(|(y, (a, b))| *y = value(*y, *a, *b)),
        );
    });
}

/// The number of partial sums of a vectorised reduction: two registers of AVX-512 in float32.
const LANES: usize = 32;
/// With fewer terms, the partial sums cost more than they save.
const SHORT: usize = 16;

/// The largest of a slice; to be called inside [`vectorised`].
#[inline(always)]
pub fn largest<T: Scalar>(a: &[T]) -> T {
    let larger = |a: T, b: T| if b <= a { a } else { b };
    let mut lanes = [T::NEG_INFINITY; LANES];
    let mut whole = a.chunks_exact(LANES);
    for a in &mut whole {
        lanes.iter_mut().zip(a).for_each(|(lane, a)| *lane = larger(*lane, *a));
    }
    whole.remainder().iter().chain(&lanes).fold(T::NEG_INFINITY, |a, b| larger(a, *b))
}

/// The sum of a slice; to be called inside [`vectorised`].
#[inline(always)]
pub fn sum<T: Scalar>(a: &[T]) -> T {
    sum_of_pairs(a, a, |a, _| a)
}

/// The sum of several rows, element by element in their order.
#[inline(always)]
pub fn add_up<'a, T: Scalar>(mut rows: impl Iterator<Item = &'a [T]>, total: &mut [T]) {
    if let Some(row) = rows.next() {
        total.copy_from_slice(row);
    }
    for row in rows {
        total.iter_mut().zip(row).for_each(|(total, value)| *total += *value);
    }
}

/// The sum of `term(a, b)` over two slices of one length; to be called inside [`vectorised`].
#[inline(always)]
pub fn sum_of_pairs<T: Scalar>(a: &[T], b: &[T], term: impl Fn(T, T) -> T) -> T {
    if a.len() < SHORT {
        return a.iter().zip(b).fold(T::ZERO, |total, (a, b)| total + term(*a, *b));
    }
    let mut lanes = [T::ZERO; LANES];
    let (mut a, mut b) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    for (a, b) in (&mut a).zip(&mut b) {
        for lane in 0..LANES {
            lanes[lane] += term(a[lane], b[lane]);
        }
    }
    for (lane, (a, b)) in lanes.iter_mut().zip(a.remainder().iter().zip(b.remainder())) {
        *lane += term(*a, *b);
    }
    total(lanes)
}

/// Pairwise, so that the order of additions does not depend on the width of the registers.
#[inline(always)]
fn total<T: Scalar>(mut lanes: [T; LANES]) -> T {
    let mut width = LANES / 2;
    while width > 0 {
        for lane in 0..width {
            let other = lanes[lane + width];
            lanes[lane] += other;
        }
        width /= 2;
    }
    lanes[0]
}
