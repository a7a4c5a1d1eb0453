//! The scatter between runs at single cells: a few runs say little about the variance of one cell, and all cells together say how much to
//! trust it.
//!
//! Variances of cells are taken to be `d0 s0^2 / chi^2(d0)`; d0 and s0 come from the mean and the variance of ln s^2 over the cells. The moderated
//! variance of a cell, `(d0 s0^2 + d s^2) / (d0 + d)`, has d0 + d degrees of freedom (Smyth 2004, Linear models and empirical Bayes
//! methods for assessing differential expression, section 6). Cells whose variances differ no more than by chance share one.

use super::welch::{mean, squares};
use crate::stats::quantile::median;

/// A variance smaller than this share of the median counts as this share: rounded times can agree to the last digit.
const LEAST: f64 = 1e-5;

/// Replaces `variances`, each with `freedom` degrees of freedom, by their moderated values; returns the degrees of freedom of these, which are at
/// most `most`, those of all cells together.
pub(super) fn moderate(variances: &mut [f64], freedom: f64, most: f64) -> f64 {
    let middle = median(&mut variances.to_vec());
    // Without scatter in most cells there is nothing to learn from them.
    if variances.len() < 2 || middle <= 0.0 {
        return freedom.min(most);
    }
    let n = variances.len() as f64;
    let half = 0.5 * freedom;
    let logs: Vec<f64> = variances.iter().map(|s| s.max(LEAST * middle).ln() - digamma(half) + half.ln()).collect();
    let center = mean(&logs);
    let spread = squares(&logs) / (n - 1.0) - trigamma(half);
    if spread <= 0.0 {
        variances.fill(mean(variances));
        return most;
    }
    let prior = 2.0 * trigamma_inverse(spread);
    let typical = (center + digamma(0.5 * prior) - (0.5 * prior).ln()).exp();
    variances.iter_mut().for_each(|s| *s = (prior * typical + freedom * *s) / (prior + freedom));
    (prior + freedom).min(most)
}

/// From here on the asymptotic series is exact to 1e-10.
const FAR: f64 = 10.0;

/// The derivative of ln Gamma, for x > 0 (Abramowitz & Stegun 6.3.5 and 6.3.18).
fn digamma(mut x: f64) -> f64 {
    let mut sum = 0.0;
    while x < FAR {
        sum -= x.recip();
        x += 1.0;
    }
    let r = (x * x).recip();
    sum + x.ln() - 0.5 / x - r * (1.0 / 12.0 - r * (1.0 / 120.0 - r * (1.0 / 252.0 - r / 240.0)))
}

/// Its derivative (6.4.6 and 6.4.12).
fn trigamma(mut x: f64) -> f64 {
    let mut sum = 0.0;
    while x < FAR {
        sum += (x * x).recip();
        x += 1.0;
    }
    let r = (x * x).recip();
    sum + (1.0 + 0.5 / x + r * (1.0 / 6.0 - r * (1.0 / 30.0 - r * (1.0 / 42.0 - r / 30.0)))) / x
}

/// The x with trigamma(x) = y, by bisection of ln x.
fn trigamma_inverse(y: f64) -> f64 {
    let (mut low, mut high) = (-20.0f64, 20.0f64);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if trigamma(middle.exp()) > y { low = middle } else { high = middle }
    }
    low.exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCIPY: [(f64, f64, f64); 4] = [
        (0.5, -1.9635100260214235, 4.93480220054468),
        (2.0, 0.42278433509846713, 0.6449340668482266),
        (4.5, 1.388870926359529, 0.24872510303901035),
        (37.0, 3.597343531893106, 0.027395547002757686),
    ];

    // Expected numbers: SciPy 1.17, `scipy.special.digamma` and `polygamma(1, x)`.
    #[test]
    fn the_derivatives_of_ln_gamma_agree_with_scipy() {
        for (x, first, second) in SCIPY {
            assert!((digamma(x) - first).abs() < 1e-9, "{x}: {}", digamma(x));
            assert!((trigamma(x) / second - 1.0).abs() < 1e-9, "{x}: {}", trigamma(x));
            assert!((trigamma_inverse(second) / x - 1.0).abs() < 1e-8, "{x}");
        }
    }

    #[test]
    fn cells_that_differ_by_chance_share_a_variance_and_others_keep_a_part_of_theirs() {
        let mut alike = [1.0, 1.2, 0.8, 1.1];
        assert_eq!(moderate(&mut alike, 4.0, 12.0), 12.0);
        assert!(alike.iter().all(|s| (s - 1.025).abs() < 1e-12), "{alike:?}");
        let mut apart = VARIANCES;
        let freedom = moderate(&mut apart, 4.0, 28.0);
        assert!((freedom - FREEDOM).abs() < 1e-6, "{freedom}");
        for (found, expected) in apart.iter().zip(MODERATED) {
            assert!((found / expected - 1.0).abs() < 1e-7, "{found}, expected {expected}");
        }
        // Nothing to learn: no scatter at all, or one cell.
        let (mut none, mut one) = ([0.0, 0.0, 0.0], [0.5]);
        assert_eq!((moderate(&mut none, 4.0, 8.0), moderate(&mut one, 4.0, 0.0)), (4.0, 0.0));
        assert_eq!((none, one), ([0.0; 3], [0.5]));
    }

    /// Cells with very different scatter. Expected: the formulas of limma's `fitFDist` and `squeezeVar` in Python with SciPy's digamma and trigamma;
    /// its inverse by `scipy.optimize.brentq`.
    const VARIANCES: [f64; 8] = [1.0, 0.01, 3.0, 0.2, 40.0, 0.05, 7.0, 0.6];
    const FREEDOM: f64 = 4.847454577340447;
    const MODERATED: [f64; 8] = [
        0.8590274941068399,
        0.042103903216246866,
        2.5093781827747046,
        0.198887218639694,
        33.0408659231302,
        0.07511091698960416,
        5.810079560110434,
        0.5289573563732669,
    ];
}
