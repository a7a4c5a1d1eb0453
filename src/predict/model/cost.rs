//! What a step time means for a training: epochs, hours, energy, money; and the batch size to choose.

use super::Estimate;
use super::conformal::Z;
use crate::stats::distribution::normal_upper;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Job {
    pub examples: f64,
    pub epochs: f64,
}

impl Job {
    /// Steps of one epoch; a last, partial batch counts as a step.
    pub fn steps(&self, batch: f64) -> f64 {
        (self.examples / batch).ceil()
    }

    /// Seconds of one epoch, by the time of a step.
    pub fn epoch(&self, batch: f64, step: Estimate) -> Estimate {
        step.times(self.steps(batch))
    }

    pub fn total(&self, batch: f64, step: Estimate) -> Estimate {
        self.epoch(batch, step).times(self.epochs)
    }
}

/// The probability that an estimated amount is at most `limit`, if its logarithm is normal with the estimate's
/// interval; `None` if the error of the estimate is unknown.
pub fn certainty(estimate: Estimate, limit: f64) -> Option<f64> {
    let sd = estimate.radius() / Z;
    if sd == 0.0 {
        return Some(if estimate.seconds <= limit { 1.0 } else { 0.0 });
    }
    sd.is_finite().then(|| normal_upper((estimate.seconds / limit).ln() / sd))
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JobOption {
    /// Seconds.
    pub total: Estimate,
    /// Money, where a price is known.
    pub usd: Option<f64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limits {
    pub usd: Option<f64>,
    pub seconds: Option<f64>,
}

/// The option to choose among those within both limits: the cheapest if there is a deadline, else the fastest; with the
/// probability that it keeps both limits. Of options that have no price, the fastest is chosen, but only where none within
/// the limits has one. `None` if no option is within them.
pub fn choice(options: impl Iterator<Item = (usize, JobOption)>, limits: Limits) -> Option<Choice> {
    let affordable = |option: &JobOption| match limits.usd {
        None => true,
        Some(limit) => option.usd.is_some_and(|usd| usd <= limit),
    };
    let in_time = |option: &JobOption| limits.seconds.is_none_or(|limit| option.total.seconds <= limit);
    let within = options.filter(|(_, option)| affordable(option) && in_time(option));
    // Money is compared with money only.
    let amount = |option: &JobOption| match (limits.seconds, option.usd) {
        (Some(_), Some(usd)) => (0, usd),
        _ => (1, option.total.seconds),
    };
    let order = |a: (u8, f64), b: (u8, f64)| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1));
    let (place, best) = within.min_by(|a, b| order(amount(&a.1), amount(&b.1)))?;
    // At a known price, money is time, so both limits are limits of time: the tighter one counts.
    let by_money = limits.usd.zip(best.usd).map(|(limit, usd)| best.total.seconds * limit / usd);
    let limit = by_money.into_iter().chain(limits.seconds).reduce(f64::min);
    Some(Choice { place, certainty: limit.map_or(Some(1.0), |limit| certainty(best.total, limit)) })
}

/// The index of an option, and the probability that it keeps the limits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Choice {
    pub place: usize,
    /// `None`: not known.
    pub certainty: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn option(hours: f64, radius: f64, usd: f64) -> JobOption {
        JobOption { total: Estimate::around(3600.0 * hours, radius), usd: Some(usd) }
    }

    // 60,000 examples in batches of 64 are 937.5, so 938 steps; at 10 ms, 9.38 s an epoch.
    #[test]
    fn an_epoch_matches_a_hand_calculation() {
        let job = Job { examples: 60_000.0, epochs: 10.0 };
        let step = Estimate { seconds: 0.010, low: 0.009, high: 0.011 };
        assert_eq!(job.steps(64.0), 938.0);
        let total = job.total(64.0, step);
        assert!((total.seconds - 93.8).abs() < 1e-9 && (total.high - 103.18).abs() < 1e-9);
    }

    // The upper end of a 90 % interval is exceeded once in twenty.
    #[test]
    fn the_upper_end_is_kept_nineteen_times_in_twenty() {
        let estimate = Estimate::around(100.0, 0.2);
        let of = |limit| certainty(estimate, limit).unwrap();
        assert!((of(estimate.high) - 0.95).abs() < 1e-6 && (of(100.0) - 0.5).abs() < 1e-9);
        assert_eq!(certainty(Estimate::around(100.0, f64::INFINITY), 200.0), None);
    }

    #[test]
    fn a_deadline_takes_the_cheapest_and_a_budget_the_fastest() {
        let all = [option(1.0, 0.1, 30.0), option(4.0, 0.1, 8.0), option(9.0, 0.1, 5.0)];
        let taken = |usd, hours: Option<f64>| {
            choice(all.into_iter().enumerate(), Limits { usd, seconds: hours.map(|hours| 3600.0 * hours) })
                .map(|choice| choice.place)
        };
        assert_eq!(taken(None, Some(5.0)), Some(1));
        assert_eq!(taken(Some(10.0), None), Some(1));
        assert_eq!(taken(Some(100.0), None), Some(0));
        assert_eq!(taken(Some(6.0), Some(5.0)), None);
        let sure =
            choice(all.into_iter().enumerate(), Limits { usd: None, seconds: Some(4.0 * 3600.0) }).unwrap().certainty;
        assert!(sure.is_some_and(|sure| (sure - 0.5).abs() < 1e-9), "{sure:?}");
    }

    // 3.6 s are fewer than 30 dollars, and 20,000 dollars more than 14,400 s.
    #[test]
    fn dollars_are_not_compared_with_seconds() {
        let unpriced = |hours| JobOption { usd: None, ..option(hours, 0.1, 0.0) };
        let taken = |all: &[JobOption], hours: f64| {
            choice(all.iter().copied().enumerate(), Limits { usd: None, seconds: Some(3600.0 * hours) })
                .map(|choice| choice.place)
        };
        let some = [unpriced(0.001), option(1.0, 0.1, 30.0), option(2.0, 0.1, 12.0)];
        assert_eq!((taken(&some, 5.0), taken(&some, 0.5)), (Some(2), Some(0)));
        assert_eq!(taken(&[unpriced(4.0), option(1.0, 0.1, 20_000.0)], 5.0), Some(1));
        assert_eq!(taken(&[unpriced(4.0), unpriced(3.0)], 5.0), Some(1), "the fastest where nothing is priced");
    }
}
