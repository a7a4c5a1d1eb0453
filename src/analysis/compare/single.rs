//! Tables with one value for each size: the scatter among equal sizes is the yardstick for the others.
//!
//! With d the logarithms of the ratios, sorted, the shortest interval that holds half of them is taken to be of sizes that do not differ
//! (Rousseeuw 1984, Least median of squares regression). Half its length over 0.6745 is the standard deviation of a normal distribution with
//! that half, corrected for few values by 1 + 5 / (n - 1) (Rousseeuw & Leroy 1987). Student's distribution with n / 2 - 1 degrees of freedom
//! allows for the error of that scatter. If more than half of the sizes differ, the yardstick is too long, and fewer differences are found.
//! Ratios that agree to the last digit do not scatter: each is then known to the rounding of its two values.
//!
//! All sizes share one scatter with normal tails. Where small sizes scatter more, or a few values are slow by chance, equal tables have a size named in
//! many comparisons; one value for each size does not show it.

use super::difference::WelchTest;
use super::welch::Welch;
use crate::error::{Error, Result};
use crate::stats::quantile::median;

/// With fewer sizes, half of them show nothing about the scatter.
const FEWEST: usize = 6;

/// Gives every difference the error that the scatter of all shows; returns it, relative (its median, where it comes from rounding).
///
/// # Errors
/// [`crate::error::Kind::Data`] where there are too few sizes.
pub(super) fn judge(differences: &mut [&mut WelchTest]) -> Result<f64> {
    let mut apart: Vec<f64> = differences.iter().map(|one| one.second - one.first).collect();
    let n = apart.len();
    if n < FEWEST {
        let sizes = if n == 1 { "1 size".to_string() } else { format!("{n} sizes") };
        return Err(Error::data(format!("one value for each of {sizes}: nothing tells a difference from noise"))
            .hint(format!("give repetitions, a row for each, or at least {FEWEST} sizes")));
    }
    apart.sort_by(f64::total_cmp);
    let half = n / 2 + 1;
    let shortest = apart.windows(half).map(|part| part[half - 1] - part[0]).fold(f64::INFINITY, f64::min);
    let scale = 0.5 * shortest / 0.6745 * (1.0 + 5.0 / (n - 1) as f64);
    let mut errors = Vec::with_capacity(n);
    for one in differences {
        one.welch = Welch { error: scale, freedom: (n / 2 - 1) as f64 }.or_rounded(one.rounding);
        one.p = one.welch.two_sided(one.second - one.first);
        errors.push(one.welch.error);
    }
    Ok(median(&mut errors).exp_m1())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(ratios: &[f64]) -> Result<(f64, Vec<f64>)> {
        rounded(ratios, 0.0)
    }

    /// The error of the ratios and the p-value of each, where rounding may move each by the share `rounding`.
    fn rounded(ratios: &[f64], rounding: f64) -> Result<(f64, Vec<f64>)> {
        let welch = Welch { error: f64::INFINITY, freedom: 1.0 };
        let apart = |ratio: &f64| WelchTest { first: 0.0, second: ratio.ln(), welch, p: 1.0, rounding };
        let mut all: Vec<WelchTest> = ratios.iter().map(apart).collect();
        let error = judge(&mut all.iter_mut().collect::<Vec<_>>())?;
        Ok((error, all.iter().map(|one| one.p).collect()))
    }

    #[test]
    fn the_sizes_that_do_not_differ_are_the_yardstick() {
        let (error, p) = judged(&[1.001, 0.999, 1.002, 0.998, 1.0, 1.001, 0.999, 1.4, 1.38, 1.41]).expect("judged");
        assert!(error > 0.0005 && error < 0.01, "{error}");
        assert!(p[7..].iter().all(|p| *p < 1e-3) && p[..7].iter().all(|p| *p > 0.05), "{p:?}");
    }

    #[test]
    fn a_difference_of_all_sizes_does_not_count_as_scatter() {
        let (error, p) = judged(&[0.841, 0.842, 0.84, 0.839, 0.841, 0.843, 0.838, 0.84]).expect("judged");
        assert!(error < 0.01 && p.iter().all(|p| *p < 1e-3), "{error} {p:?}");
    }

    /// By hand: ln 1.02 is 2 errors of 0.01, whose p-value is 0.046; ln 1.5 is 40 errors, and ln 2 of all is 69.
    #[test]
    fn ratios_that_agree_to_the_last_digit_are_known_to_their_rounding() {
        let (error, p) = rounded(&[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.02, 1.5], 0.01).expect("judged");
        assert!((error - 0.01).abs() < 1e-3, "{error}");
        assert!((p[6] - 0.0477).abs() < 1e-3 && p[7] < 1e-9 && p[..6].iter().all(|p| *p > 0.99), "{p:?}");
        let (error, p) = rounded(&[2.0; 40], 0.01).expect("judged");
        assert!((error - 0.01).abs() < 1e-3 && p.iter().all(|p| *p < 1e-9), "{error} {p:?}");
    }

    #[test]
    fn equal_tables_and_few_sizes_prove_nothing() {
        let (error, p) = judged(&[1.0; 8]).expect("judged");
        assert_eq!((error, p), (0.0, vec![1.0; 8]));
        let error = judged(&[1.0, 1.5]).expect_err("too few").to_string();
        assert!(error.contains("one value for each of 2 sizes") && error.contains("repetitions"), "{error}");
    }
}
