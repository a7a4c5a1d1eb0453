//! Random choices.

use crate::random::Rng;

/// A seeded source of the choices of one series.
pub(super) struct Draw(Rng);

impl Draw {
    pub fn new(seed: u64) -> Self {
        Self(Rng::new(seed))
    }

    /// Uniform from `low` to `high`.
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.0.uniform()
    }

    /// Uniform in the logarithm.
    pub fn ratio(&mut self, low: f64, high: f64) -> f64 {
        low * (high / low).powf(self.0.uniform())
    }

    /// A whole number from `low` to `high`, both included.
    pub fn whole(&mut self, low: usize, high: usize) -> usize {
        low + self.0.below(high + 1 - low)
    }

    pub fn one_of<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.0.below(values.len())]
    }

    pub fn chance(&mut self, probability: f64) -> bool {
        self.0.uniform() < probability
    }

    pub fn normal(&mut self) -> f64 {
        self.0.normal()
    }

    pub fn student(&mut self) -> f64 {
        self.0.student()
    }

    /// `count` places in `low..=high`, ascending, at least `gap` apart; fewer if they do not fit.
    pub fn places(&mut self, count: usize, low: usize, high: usize, gap: usize) -> Vec<usize> {
        let mut places: Vec<usize> = Vec::new();
        for _ in 0..60 * count {
            if places.len() == count || high < low {
                break;
            }
            let place = self.whole(low, high);
            if places.iter().all(|other| place.abs_diff(*other) >= gap) {
                places.push(place);
            }
        }
        places.sort_unstable();
        places
    }
}
