//! Permutation tests: is the difference of two groups larger than chance shuffles of their labels give?
//!
//! Phipson & Smyth 2010, *Permutation p-values should never be zero*: p = (exceedances + 1) / (resamples + 1).

use crate::random::Rng;

/// Two-sided p-value of the difference of the means of `a` and `b` under exchange of labels.
///
/// 1 where either group is empty: no evidence is not evidence.
pub fn difference_of_means(a: &[f64], b: &[f64], resamples: usize, rng: &mut Rng) -> f64 {
    if a.is_empty() || b.is_empty() {
        return 1.0;
    }
    let mut pooled: Vec<f64> = a.iter().chain(b).copied().collect();
    let difference = |values: &[f64]| {
        let (left, right) = values.split_at(a.len());
        (left.iter().sum::<f64>() / left.len() as f64 - right.iter().sum::<f64>() / right.len() as f64).abs()
    };
    let observed = difference(&pooled);
    let exceeding = (0..resamples)
        .filter(|_| {
            rng.shuffle(&mut pooled);
            difference(&pooled) >= observed * (1.0 - 1e-12)
        })
        .count();
    p_value(exceeding, resamples)
}

/// (exceeding + 1) / (resamples + 1).
pub fn p_value(exceeding: usize, resamples: usize) -> f64 {
    (exceeding + 1) as f64 / (resamples + 1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_separation_of_three_and_three_has_the_exact_p_value() {
        // Of the 20 ways to pick 3 of 6, two separate {1,2,3} from {11,12,13}: p = 0.1 by enumeration.
        let p = difference_of_means(&[1.0, 2.0, 3.0], &[11.0, 12.0, 13.0], 20_000, &mut Rng::new(5));
        assert!((p - 0.1).abs() < 0.01, "{p}");
    }

    #[test]
    fn p_values_of_equal_groups_are_about_uniform() {
        let small = (0..400)
            .filter(|&seed| {
                let mut rng = Rng::new(seed);
                let a: Vec<f64> = (0..8).map(|_| rng.normal()).collect();
                let b: Vec<f64> = (0..8).map(|_| rng.normal()).collect();
                difference_of_means(&a, &b, 199, &mut rng) <= 0.1
            })
            .count();
        assert!((22..=60).contains(&small), "about 40 of 400 expected, found {small}");
    }

    #[test]
    fn an_empty_group_proves_nothing() {
        assert_eq!(difference_of_means(&[], &[1.0], 10, &mut Rng::new(1)), 1.0);
    }
}
