//! The two number types of the operators.

use std::ops::Neg;

use candle_core::WithDType;

/// float32, which is fast, or float64, which checks it.
pub trait Scalar: WithDType + Neg<Output = Self> + Default {
    const ZERO: Self;
    const ONE: Self;
    const NEG_INFINITY: Self;

    fn exp(self) -> Self;
    fn ln(self) -> Self;
}

macro_rules! scalar {
    ($($float:ident),+) => {$(
        impl Scalar for $float {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const NEG_INFINITY: Self = $float::NEG_INFINITY;

            #[inline(always)]
            fn exp(self) -> Self {
                $float::exp(self)
            }

            #[inline(always)]
            fn ln(self) -> Self {
                $float::ln(self)
            }
        }
    )+};
}
scalar!(f32, f64);

/// Runs `work` compiled for the widest vectors of this processor. Plain loops inside it are vectorised by the compiler,
/// provided that every function on the way to them is inlined.
#[inline(always)]
pub fn vectorised<R>(work: impl FnOnce() -> R) -> R {
    pulp::Arch::new().dispatch(work)
}

/// How many partial sums a vectorised reduction keeps: four registers of AVX-512 in float32.
pub const LANES: usize = 64;

/// Sums `term(i)` for `i` in `0..count`; to be called inside [`vectorised`].
#[inline(always)]
pub fn sum<T: Scalar>(count: usize, term: impl Fn(usize) -> T) -> T {
    let mut lanes = [T::ZERO; LANES];
    let whole = count - count % LANES;
    for start in (0..whole).step_by(LANES) {
        for (lane, partial) in lanes.iter_mut().enumerate() {
            *partial += term(start + lane);
        }
    }
    for i in whole..count {
        lanes[i - whole] += term(i);
    }
    // Pairwise, so that the order of additions does not depend on the width of the registers.
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
