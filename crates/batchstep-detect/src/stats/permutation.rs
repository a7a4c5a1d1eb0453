//! The p-value of a permutation test.

/// (exceeding + 1) / (resamples + 1), where `exceeding` of the `resamples` random orders of the data are at least as extreme as
/// the data (Phipson & Smyth 2010, *Permutation p-values should never be zero*).
pub fn p_value(exceeding: usize, resamples: usize) -> f64 {
    (exceeding + 1) as f64 / (resamples + 1) as f64
}
