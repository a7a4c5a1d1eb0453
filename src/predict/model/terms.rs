//! A time as a sum of terms, each with a factor >= 0.

use crate::stats::nonnegative::least_squares;

/// The factors, by the relative errors of measured times: each row has the terms as shares of its time, so that the target is 1.
pub fn fitted<const N: usize>(shares: &[[f64; N]]) -> [f64; N] {
    least_squares(shares, &vec![1.0; shares.len()])
}

pub fn sum<const N: usize>(terms: &[f64; N], factors: &[f64; N]) -> f64 {
    terms.iter().zip(factors).map(|(term, factor)| term * factor).sum()
}
