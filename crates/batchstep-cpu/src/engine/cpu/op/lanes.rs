//! Registers as wide as the processor's widest, and what kernels do with them.

use std::ops::Range;

use pulp::{MemMask, Simd};

/// A number type; a register of the instruction set `S` holds several numbers, in lanes.
pub trait Lanes: Copy {
    type Vector<S: Simd>: Copy;
    /// Some of the lanes.
    type Mask<S: Simd>: Copy;

    /// Lanes of a register.
    fn lanes<S: Simd>() -> usize;
    /// One value in all lanes.
    fn splat<S: Simd>(simd: S, value: Self) -> Self::Vector<S>;
    fn plus<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
    fn minus<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
    fn times<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
    /// `a * b + c`, rounded once or twice, whichever is faster.
    fn multiply_add<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>, c: Self::Vector<S>) -> Self::Vector<S>;
    /// Each lane of `a`, limited to the range from `low` to `high`; NaN stays.
    fn clamp<S: Simd>(simd: S, a: Self::Vector<S>, low: Self, high: Self) -> Self::Vector<S>;
    /// Each lane of `a`, or zero where `by` is not above `low` or not below `high`.
    fn stop<S: Simd>(simd: S, by: Self::Vector<S>, low: Self, high: Self, a: Self::Vector<S>) -> Self::Vector<S>;
    /// The lanes of the mask, and zero in the others.
    fn keep<S: Simd>(simd: S, mask: Self::Mask<S>, a: Self::Vector<S>) -> Self::Vector<S>;
    /// The sum of all lanes.
    fn sum<S: Simd>(simd: S, a: Self::Vector<S>) -> Self;
    /// The lanes of a range.
    fn mask<S: Simd>(simd: S, lanes: Range<usize>) -> Self::Mask<S>;
    /// The lanes that hold at least 1.
    fn ones<S: Simd>(simd: S, a: Self::Vector<S>) -> Self::Mask<S>;

    /// The values at `from`, zero in the lanes that the mask leaves out.
    ///
    /// # Safety
    /// The lanes of the mask must be readable.
    unsafe fn load<S: Simd>(simd: S, mask: Self::Mask<S>, from: *const Self) -> Self::Vector<S>;

    /// Writes the lanes of the mask.
    ///
    /// # Safety
    /// They must be writable.
    unsafe fn store<S: Simd>(simd: S, mask: Self::Mask<S>, to: *mut Self, values: Self::Vector<S>);

    /// Four registers, each with every fourth value of `a`, beginning with the first, second, third and fourth. The
    /// order of the values depends on the processor and is the same in all four registers.
    fn apart<S: Simd>(simd: S, a: [Self::Vector<S>; 4]) -> [Self::Vector<S>; 4];

    /// The inverse of [`Lanes::apart`].
    fn together<S: Simd>(simd: S, a: [Self::Vector<S>; 4]) -> [Self::Vector<S>; 4];
}

/// Methods that `pulp` has under other names.
macro_rules! forward {
    ($($method:ident($($argument:ident: $type:ty),+) -> $result:ty = $own:ident;)+) => {$(
        #[inline(always)]
        fn $method<S: Simd>(simd: S, $($argument: $type),+) -> $result {
            simd.$own($($argument),+)
        }
    )+};
}

macro_rules! lanes {
    ($float:ident, $vector:ident, $mask:ident, $index:ident, $lanes:ident: $splat:ident $add:ident $sub:ident $mul:ident $fma:ident $le:ident $ge:ident
     $select:ident $sum:ident $between:ident $load:ident $store:ident $apart:ident $together:ident) => {
        impl Lanes for $float {
            type Vector<S: Simd> = S::$vector;
            type Mask<S: Simd> = S::$mask;

            #[inline(always)]
            fn lanes<S: Simd>() -> usize {
                S::$lanes
            }

            forward! {
                splat(value: Self) -> S::$vector = $splat;
                plus(a: S::$vector, b: S::$vector) -> S::$vector = $add;
                minus(a: S::$vector, b: S::$vector) -> S::$vector = $sub;
                times(a: S::$vector, b: S::$vector) -> S::$vector = $mul;
                multiply_add(a: S::$vector, b: S::$vector, c: S::$vector) -> S::$vector = $fma;
                sum(a: S::$vector) -> Self = $sum;
                apart(a: [S::$vector; 4]) -> [S::$vector; 4] = $apart;
                together(a: [S::$vector; 4]) -> [S::$vector; 4] = $together;
            }

            #[inline(always)]
            fn clamp<S: Simd>(simd: S, a: S::$vector, low: Self, high: Self) -> S::$vector {
                let (low, high) = (simd.$splat(low), simd.$splat(high));
                let a = simd.$select(simd.$le(a, low), low, a);
                simd.$select(simd.$ge(a, high), high, a)
            }

            #[inline(always)]
            fn stop<S: Simd>(simd: S, by: S::$vector, low: Self, high: Self, a: S::$vector) -> S::$vector {
                let (low, high, zero) = (simd.$splat(low), simd.$splat(high), simd.$splat(0.0));
                let a = simd.$select(simd.$le(by, low), zero, a);
                simd.$select(simd.$ge(by, high), zero, a)
            }

            #[inline(always)]
            fn keep<S: Simd>(simd: S, mask: S::$mask, a: S::$vector) -> S::$vector {
                simd.$select(mask, a, simd.$splat(0.0))
            }

            #[inline(always)]
            fn mask<S: Simd>(simd: S, lanes: Range<usize>) -> S::$mask {
                simd.$between(lanes.start as $index, lanes.end as $index).mask()
            }

            #[inline(always)]
            fn ones<S: Simd>(simd: S, a: S::$vector) -> S::$mask {
                simd.$ge(a, simd.$splat(1.0))
            }

            #[inline(always)]
            unsafe fn load<S: Simd>(simd: S, mask: S::$mask, from: *const Self) -> S::$vector {
                // SAFETY: by the caller's promise.
                unsafe { simd.$load(MemMask::new(mask), from) }
            }

            #[inline(always)]
            unsafe fn store<S: Simd>(simd: S, mask: S::$mask, to: *mut Self, values: S::$vector) {
                // SAFETY: by the caller's promise.
                unsafe { simd.$store(MemMask::new(mask), to, values) }
            }
        }
    };
}

lanes!(f32, f32s, m32s, u32, F32_LANES: splat_f32s add_f32s sub_f32s mul_f32s mul_add_e_f32s less_than_or_equal_f32s greater_than_or_equal_f32s
    select_f32s reduce_sum_f32s mask_between_m32s mask_load_ptr_f32s mask_store_ptr_f32s
    deinterleave_shfl_f32s interleave_shfl_f32s);
lanes!(f64, f64s, m64s, u64, F64_LANES: splat_f64s add_f64s sub_f64s mul_f64s mul_add_e_f64s less_than_or_equal_f64s greater_than_or_equal_f64s
    select_f64s reduce_sum_f64s mask_between_m64s mask_load_ptr_f64s mask_store_ptr_f64s
    deinterleave_shfl_f64s interleave_shfl_f64s);
