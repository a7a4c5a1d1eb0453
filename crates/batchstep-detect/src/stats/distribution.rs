//! Tails of the normal and t distributions, from the special functions of `statrs` (relative error up to 1e-10, from
//! 10^6 degrees of freedom on up to 1e-8), and their quantiles. If a parameter has no meaning, the answer is `NaN`.

use std::f64::consts::{FRAC_1_SQRT_2, SQRT_2};

pub use statrs::function::gamma::ln_gamma;
use statrs::function::{beta::checked_beta_reg, erf};

/// The regularised incomplete beta function I_x(a, b).
fn beta(x: f64, a: f64, b: f64) -> f64 {
    checked_beta_reg(a, b, x).unwrap_or(f64::NAN)
}

/// P(B >= `least`) of the binomial distribution of `n` trials with probability `p`; `least` is 1 or more.
pub fn binomial_upper(least: usize, n: usize, p: f64) -> f64 {
    if least > n { 0.0 } else { beta(p, least as f64, (n - least + 1) as f64) }
}

/// P(Z > z) of the standard normal.
pub fn normal_upper(z: f64) -> f64 {
    0.5 * erf::erfc(z * FRAC_1_SQRT_2)
}

/// The z with P(Z > z) = `tail`; infinite where `tail` is not between 0 and 1.
pub fn normal_upper_quantile(tail: f64) -> f64 {
    SQRT_2 * erf::erfc_inv(2.0 * tail.clamp(0.0, 1.0))
}

/// P(T > t) of Student's t with `df` degrees of freedom; infinite `df` is the normal.
pub fn t_upper(t: f64, df: f64) -> f64 {
    if df > 1e7 {
        return normal_upper(t);
    }
    let half = 0.5 * beta(df / (df + t * t), 0.5 * df, 0.5);
    if t >= 0.0 { half } else { 1.0 - half }
}

/// The t >= 0 with P(T > t) = `tail`, for 0 < `tail` <= 1/2.
///
/// By bisection of ln(1 + t), because with few degrees of freedom a small tail begins far out: with one, 1e-9 at 3.2e8, where
/// the quantile of statrs 0.19 is 6.7e7.
pub fn t_upper_quantile(tail: f64, df: f64) -> f64 {
    let (mut low, mut high) = (0.0f64, 60.0f64);
    for _ in 0..64 {
        let middle = 0.5 * (low + high);
        if t_upper(middle.exp_m1(), df) > tail { low = middle } else { high = middle }
    }
    low.exp_m1()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: f64, expected: f64) {
        assert!((found / expected - 1.0).abs() < 1e-9, "found {found}, expected {expected}");
    }

    // Expected numbers: SciPy, `scipy.stats.{norm,t}.sf`, `norm.isf`, `t.isf` and `scipy.special.gammaln`, unless
    // another source is named.

    #[test]
    fn normal_tails_agree_with_scipy() {
        near(normal_upper(0.5), 0.3085375387259869);
        near(normal_upper(4.5), 3.3976731247300535e-6);
        near(normal_upper(8.0), 6.22096057427174e-16);
        near(normal_upper(-1.0), 0.8413447460685429);
    }

    #[test]
    fn normal_quantiles_agree_with_scipy() {
        near(normal_upper_quantile(0.025), 1.9599639845400545);
        near(normal_upper_quantile(1e-6), 4.753424308822899);
        near(normal_upper_quantile(0.9), -1.2815515655446004);
        near(normal_upper_quantile(0.3), 0.5244005127080409);
        assert_eq!(normal_upper_quantile(0.0), f64::INFINITY);
        assert_eq!(normal_upper_quantile(2.0), f64::NEG_INFINITY);
    }

    #[test]
    fn t_tails_agree_with_scipy() {
        near(t_upper(2.0, 5.0), 0.050969739414929174);
        near(t_upper(4.5, 60.0), 1.5901820640775927e-5);
        near(t_upper(12.0, 3.0), 0.0006225079003946681);
        near(t_upper(-1.0, 10.0), 0.8295534338489701);
        near(t_upper(0.3, 1.5), 0.40023609840179253);
        near(t_upper(2.0, 1e5), MPMATH_T_2_1E5);
    }

    /// mpmath 1.3, 40 digits: `betainc(d / 2, 1 / 2, 0, d / (d + 4), regularized=True) / 2` with d = 10^5.
    const MPMATH_T_2_1E5: f64 = 0.022751481728757232;

    #[test]
    fn t_quantiles_agree_with_scipy() {
        near(t_upper_quantile(0.025, 1.0), 12.706204736432095);
        near(t_upper_quantile(0.025, 10.0), 2.2281388519649385);
        near(t_upper_quantile(0.0005, 2.5), 18.277893528131457);
        // With one degree of freedom t is Cauchy's: 1 / tan(pi tail).
        near(t_upper_quantile(1e-9, 1.0), 1.0 / (std::f64::consts::PI * 1e-9).tan());
    }

    #[test]
    fn a_quantile_leaves_its_tail_above_it() {
        for df in [1.0, 1.5, 2.0, 3.0, 7.5, 30.0, 1e3, 1e5, f64::INFINITY] {
            for tail in [0.4, 0.1, 0.025, 1e-4, 1e-9, 1e-14] {
                let found = t_upper(t_upper_quantile(tail, df), df);
                assert!((found / tail - 1.0).abs() < 1e-9, "{df} degrees, tail {tail}: {found}");
            }
        }
    }

    #[test]
    fn numbers_without_meaning_are_nan_and_no_panic() {
        assert!(t_upper(f64::NAN, 5.0).is_nan() && t_upper(1.0, 0.0).is_nan() && t_upper(1.0, f64::NAN).is_nan());
        assert!(normal_upper(f64::NAN).is_nan());
    }

    #[test]
    fn ln_gamma_agrees_with_scipy() {
        near(ln_gamma(0.1), 2.252712651734206);
        near(ln_gamma(0.5), 0.5723649429247);
        near(ln_gamma(3.7), 1.428072326665388);
        near(ln_gamma(100.0), 359.1342053695754);
    }
}
