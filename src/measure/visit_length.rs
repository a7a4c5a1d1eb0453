//! How many steps of a visit count.
//!
//! n visits of k steps take `n (c_v + k c_s)` seconds and give a level with the variance `(sigma_v^2 + sigma_s^2 / k) / n` (docs/method.md says
//! what these are). The product of both is least at `k = (sigma_s / sigma_v) sqrt(c_v / c_s)` (Cochran 1977, Sampling Techniques, 10.6).
//!
//! All four are estimated from the first block of a run. One visit to each cell cannot separate sigma_v from the curve. The second
//! differences of neighbouring cells can, as the curve is smooth except in a few places. They also contain changes of the machine over time:
//! sigma_v is rather too large, and k rather too small, which costs less than the opposite if visits are cheap.

use crate::stats::quantile::median;
use crate::stats::robust::MAD_TO_SIGMA;

/// Fewest and most steps of later visits. A single step shows neither its scatter nor whether it was still warm-up.
const BOUNDS: (f64, f64) = (2.0, 20.0);
/// Fewest visits, and fewest neighbours, that scales are read from.
const FEWEST: usize = 8;
/// The variance of the median of five normal values, in units of theirs (Harter 1961).
const MEDIAN_OF_FIVE: f64 = 0.287;
/// The standard deviation of a second difference of values with standard deviation 1.
const SECOND_DIFFERENCE: f64 = 2.449_489_743;

/// A visit of the first block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FirstVisit {
    /// ln of its median step time.
    pub level: f64,
    /// The standard deviation of ln of its steps.
    pub scatter: f64,
    /// Seconds that it took beyond the steps that count, where known.
    pub overhead_s: Option<f64>,
    /// Seconds that one more step takes, which is longer than the step where other programs interrupt most of them.
    pub step_s: f64,
}

/// The best number of steps for later visits, from the first block: the visits of each series, along the batch axis. `None` where they are
/// too few to say.
pub fn best(series: &[Vec<FirstVisit>]) -> Option<usize> {
    let all = || series.iter().flatten();
    let mut overheads: Vec<f64> = all().filter_map(|visit| visit.overhead_s).collect();
    let mut second_differences: Vec<f64> = series
        .iter()
        .flat_map(|visits| visits.windows(3))
        .map(|w| (w[0].level - 2.0 * w[1].level + w[2].level).abs())
        .collect();
    if overheads.len() < FEWEST || second_differences.len() < FEWEST {
        return None;
    }
    let overhead = median(&mut overheads);
    let step = all().map(|visit| visit.step_s).sum::<f64>() / all().count() as f64;
    let within = median(&mut all().map(|visit| visit.scatter).collect::<Vec<_>>()).powi(2);
    let seen = (MAD_TO_SIGMA * median(&mut second_differences) / SECOND_DIFFERENCE).powi(2);
    let between = (seen - MEDIAN_OF_FIVE * within).max(0.0);
    let best = (within / between * overhead / step).sqrt();
    // No scatter at all, within visits or between them, is 0 / 0: nothing is gained by more steps.
    Some(if best.is_nan() { BOUNDS.0 as usize } else { best.round().clamp(BOUNDS.0, BOUNDS.1) as usize })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Rng;

    /// 70 visits to a line from 10 ms by 0.8 ms, with those deviations.
    fn visits(within: f64, between: f64, overhead_s: f64) -> Vec<FirstVisit> {
        let mut rng = Rng::new(3);
        let visit = |b: i32| {
            let step_s = 0.010 + 0.0008 * f64::from(b);
            let noise = (between * between + MEDIAN_OF_FIVE * within * within).sqrt() * rng.normal();
            FirstVisit { level: step_s.ln() + noise, scatter: within, overhead_s: Some(overhead_s), step_s }
        };
        (1..=70).map(visit).collect()
    }

    /// Mean step 38.4 ms: for equal deviations and an overhead of nine steps k is 3, for a third of the deviation between visits 9.
    #[test]
    fn the_number_of_steps_is_cochrans() {
        assert_eq!(best(&[visits(0.01, 0.01, 9.0 * 0.0384)]), Some(3));
        let nine = best(&[visits(0.03, 0.01, 9.0 * 0.0384)]).expect("enough visits");
        // The scale of 68 second differences has an error of some 15 %.
        assert!((5..=14).contains(&nine), "{nine}");
    }

    #[test]
    fn cheap_visits_have_two_steps_and_quiet_ones_many() {
        assert_eq!(best(&[visits(0.01, 0.01, 0.001)]), Some(2));
        assert_eq!(best(&[visits(0.05, 0.0, 3.0)]), Some(20));
        assert_eq!(best(&[visits(0.0, 0.0, 3.0)]), Some(2));
    }

    #[test]
    fn a_first_block_may_be_too_short_to_say() {
        assert_eq!(best(&[]), None);
        assert_eq!(best(&[visits(0.01, 0.01, 0.1)[..6].to_vec()]), None);
        let unknown = visits(0.01, 0.01, 0.1).into_iter().map(|visit| FirstVisit { overhead_s: None, ..visit });
        assert_eq!(best(&[unknown.collect()]), None);
    }
}
