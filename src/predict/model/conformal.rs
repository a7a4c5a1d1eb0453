//! Intervals from errors on left-out data.
//!
//! Conformal prediction (Vovk, Gammerman and Shafer, "Algorithmic learning in a random world", 2005; Lei et al., JASA 113, 2018): if the
//! next error is exchangeable with `n` earlier ones, it is at most the `ceil((n + 1) c)`-th smallest of them with a probability of at least `c`.
//! With errors of leave-one-out fits this is a simpler form of the jackknife+ of Barber et al. (Annals of Statistics
//! 49, 2021). The jackknife+ guarantees `2c - 1`; the observed coverage is near `c`, and `docs/prediction.md` shows
//! what was observed here.

/// The share of measurements that an interval should hold.
pub const COVERAGE: f64 = 0.9;

/// Normal quantile of that share, two-sided.
pub const Z: f64 = 1.644_853_626_951_472_6;

/// The distance of the truth from a prediction that is not exceeded with probability [`COVERAGE`], as `|ln(truth /
/// prediction)|`. The largest error if there are too few errors, infinite if there are none.
pub fn radius(errors: &mut [f64]) -> f64 {
    if errors.is_empty() {
        return f64::INFINITY;
    }
    errors.sort_by(f64::total_cmp);
    let rank = ((errors.len() + 1) as f64 * COVERAGE).ceil() as usize;
    errors[rank.min(errors.len()) - 1]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Rng;

    // Nine errors: rank ceil(10 * 0.9) = 9, the largest. Nineteen: rank 18.
    #[test]
    fn the_rank_matches_a_hand_calculation() {
        let errors = |n: usize| (1..=n).rev().map(|e| e as f64).collect::<Vec<_>>();
        assert_eq!(radius(&mut errors(9)), 9.0);
        assert_eq!(radius(&mut errors(19)), 18.0);
        assert_eq!(radius(&mut errors(3)), 3.0);
        assert_eq!(radius(&mut []), f64::INFINITY);
    }

    #[test]
    fn nine_in_ten_of_the_next_errors_are_within() {
        let mut rng = Rng::new(3);
        let within = (0..2000).filter(|_| {
            let mut errors: Vec<f64> = (0..39).map(|_| rng.normal().abs().powi(3)).collect();
            rng.normal().abs().powi(3) <= radius(&mut errors)
        });
        // The probability is 36/40 = 0.9; binomial sd 0.0067, four of them either way.
        assert!((0.873..=0.927).contains(&(within.count() as f64 / 2000.0)));
    }
}
