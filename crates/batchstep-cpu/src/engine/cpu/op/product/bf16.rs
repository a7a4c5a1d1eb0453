//! Products whose factors are rounded to the nearest bfloat16 and added up in float32, by the instruction VDPBF16PS,
//! which takes two factors of each side at a time.

#[cfg(target_arch = "x86_64")]
mod avx512;

pub(super) use super::kernel::Product;

/// Whether this processor has the instruction.
pub fn is_there() -> bool {
    #[cfg(target_arch = "x86_64")]
    return is_x86_feature_detected!("avx512bf16")
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw");
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// `target = a b`, or `target += a b`; the matrices fit.
///
/// # Panics
/// Where the processor does not have the instruction.
pub(super) fn multiply(product: Product<'_, f32>) {
    assert!(is_there(), "this processor has no products of bfloat16");
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the processor has the instructions, and the matrices fit.
    unsafe {
        avx512::run(&product);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Factors, Matrix, MatrixMut, Write};
    use super::*;

    // bfloat16 has 8 bits: from 1 to 2 its numbers are 1/128 apart. Calculated by hand.
    #[test]
    fn factors_are_rounded_to_the_nearest_and_sums_are_not() {
        if !is_there() {
            return eprintln!("skipped: this processor has no products of bfloat16");
        }
        let step: f32 = 1.0 / 128.0;
        let third = step / 3.0;
        let rounded = [
            (1.0 + third, 1.0),
            (1.0 + 2.0 * third, 1.0 + step),
            // Halfway between two: rounded to the even one.
            (1.0 + step / 2.0, 1.0),
            (1.0 + 1.5 * step, 1.0 + 2.0 * step),
            (-1.0 - 2.0 * third, -1.0 - step),
        ];
        let dot = |a: &[f32], b: &[f32]| {
            let mut y = [0f32];
            let (a, b) = (Matrix::new(a, 1, a.len(), a.len()), Matrix::new(b, b.len(), 1, 1));
            super::super::multiply(MatrixMut::new(&mut y, 1, 1, 1), a, b, Write::Overwrite, Factors::Bf16);
            y[0]
        };
        for (value, want) in rounded {
            assert_eq!([dot(&[value], &[1.0]), dot(&[1.0], &[value])], [want; 2], "{value}");
        }
        assert_eq!(dot(&[64.0, 1.0], &[64.0, step]), 4096.0 + step);
    }
}
