//! How large a step must be in standard errors, given everything that a search looks at, and the corresponding p-value.

use crate::stats::distribution;

/// The size in standard errors that a step must reach.
///
/// A false step is usually accompanied by another wrong term, for which it compensates. So the threshold is corrected
/// for all pairs of a boundary and a candidate term, the `looks` (Bonferroni), at the false-positive rate of the series. If the
/// dispersion had to be estimated from the residuals, Student's t with their degrees of freedom replaces the normal
/// distribution.
pub(crate) fn threshold(looks: usize, freedom: f64, false_positive_rate: f64) -> f64 {
    let tail = 0.5 * false_positive_rate.clamp(1e-12, 1.0) / looks as f64;
    distribution::t_upper_quantile(tail, freedom)
}

/// Two-sided p-value of a size of `z` standard errors, corrected for the number of `looks` (Sidak 1967).
///
/// On series without a jump these p-values are rather too large: few series have a candidate, and the looks of a search
/// are not independent.
pub(crate) fn p_value(z: f64, freedom: f64, looks: usize) -> f64 {
    let single = (2.0 * distribution::t_upper(z, freedom)).min(1.0);
    -(looks as f64 * (-single).ln_1p()).exp_m1()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_corrected_p_value_is_sidaks() {
        // 1 - (1 - 0.05)^10 = 0.40126306..., with z = 1.959964 for 0.05
        assert!((p_value(1.959963984540054, 1e9, 10) - 0.4012630607616213).abs() < 1e-9);
        assert_eq!(p_value(0.0, 1e9, 5), 1.0);
    }
}
