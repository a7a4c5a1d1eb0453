//! Passes over all numbers of a tensor: from bytes and to bytes, and in another order. A network has tens of millions of parameters, and this crate is
//! optimised in tests too.

use half::{bf16, f16};

/// Float32 numbers from their bytes, the low byte first.
pub fn from_f32(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks().0.iter().map(|&four| f32::from_le_bytes(four)).collect()
}

/// Float16 numbers from their bytes.
pub fn from_f16(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks().0.iter().map(|&pair| f16::from_le_bytes(pair).to_f32()).collect()
}

/// Bfloat16 numbers from their bytes.
pub fn from_bf16(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks().0.iter().map(|&pair| bf16::from_le_bytes(pair).to_f32()).collect()
}

/// The bytes of float32 numbers, the low byte first.
pub fn to_f32(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// The bytes of the nearest float16 numbers, ties to even.
pub fn to_f16(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| f16::from_f32(*value).to_le_bytes()).collect()
}

/// The bytes of the nearest bfloat16 numbers, ties to even.
pub fn to_bf16(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| bf16::from_f32(*value).to_le_bytes()).collect()
}

/// The same numbers in double precision.
pub fn widened(values: &[f32]) -> Vec<f64> {
    values.iter().copied().map(f64::from).collect()
}

/// The nearest float32 numbers.
pub fn narrowed(values: &[f64]) -> Vec<f32> {
    values.iter().map(|value| *value as f32).collect()
}

/// A number of a tensor.
pub trait Number: Copy {
    /// Each matrix of `rows` x `columns` becomes one of `columns` x `rows`; several may follow each other.
    fn transposed(matrices: &[Self], rows: usize, columns: usize) -> Vec<Self>;
}

impl Number for f32 {
    fn transposed(matrices: &[Self], rows: usize, columns: usize) -> Vec<Self> {
        transposed(matrices, rows, columns)
    }
}

impl Number for f64 {
    fn transposed(matrices: &[Self], rows: usize, columns: usize) -> Vec<Self> {
        transposed(matrices, rows, columns)
    }
}

fn transposed<V: Copy>(matrices: &[V], rows: usize, columns: usize) -> Vec<V> {
    let mut turned = Vec::with_capacity(matrices.len());
    for matrix in matrices.chunks_exact((rows * columns).max(1)) {
        for column in 0..columns {
            turned.extend((0..rows).map(|row| matrix[row * columns + column]));
        }
    }
    turned
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1.5 is 1.1 in binary, sign 0, exponent 127 or 15, and the first bit of the fraction; 1.5 and half a unit of the last place is nearer to the even 1.5.
    #[test]
    fn numbers_of_every_width_are_their_bytes() {
        assert_eq!(from_f32(&0x3FC0_0000u32.to_le_bytes()), [1.5]);
        assert_eq!(from_f16(&0x3E00u16.to_le_bytes()), [1.5]);
        assert_eq!(from_bf16(&0x3FC0u16.to_le_bytes()), [1.5]);
        assert_eq!(to_f32(&[1.5]), 0x3FC0_0000u32.to_le_bytes());
        assert_eq!(to_f16(&[1.5 + 0.5f32.powi(11)]), 0x3E00u16.to_le_bytes());
        assert_eq!(to_bf16(&[1.5 + 0.5f32.powi(8)]), 0x3FC0u16.to_le_bytes());
        assert_eq!(narrowed(&widened(&[0.1, f32::INFINITY])), [0.1, f32::INFINITY]);
    }

    #[test]
    fn matrices_are_turned_one_by_one() {
        // [[0, 1, 2], [3, 4, 5]], and ten more of each.
        let two: Vec<f64> = (0..6).chain(10..16).map(f64::from).collect();
        assert_eq!(f64::transposed(&two, 2, 3), [0.0, 3.0, 1.0, 4.0, 2.0, 5.0, 10.0, 13.0, 11.0, 14.0, 12.0, 15.0]);
        assert_eq!(f64::transposed(&f64::transposed(&two, 2, 3), 3, 2), two);
        assert_eq!(f32::transposed(&[], 2, 3), [0.0; 0]);
    }
}
