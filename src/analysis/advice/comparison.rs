//! Multiple comparisons with the best (Hsu 1981, *Annals of Statistics* 9, 1026; Hsu 1996, *Multiple Comparisons*, chapter 4).
//!
//! A size is shown to be worse where another one beats it by more than the comparison of all others with *this* one explains: for each size
//! `i` the critical value is the 95 % quantile of the largest studentised difference to any other size. If `i` is the truly best size, no true
//! difference is in favour of another, and it is excluded with a probability of at most 5 %, however many sizes there are.
//!
//! The quantiles come from a bootstrap over whole blocks, which keeps the shared error of a block's visits together. Differences are
//! studentised anew in each draw. The variances of sizes are drawn towards their median; otherwise four visits would prove nothing.

use std::cell::OnceCell;

use super::rates::{Rates, shrunken};
use crate::random::Rng;
use crate::stats::quantile::{median, quantile};

/// Draws. The quantile's own error is then 1 % of probability.
const DRAWS: usize = 500;
const CONFIDENCE: f64 = 0.95;
const SEED: u64 = 42;
/// The rate still rises where the sweep ends if the largest size is better than every size up to this share of it.
const BEFORE_THE_END: f64 = 0.75;
/// Least variance in a draw, as a share of that of the data: draws of few different blocks would divide by nearly nothing.
const LEAST: f64 = 0.05;

/// Some sizes of a series, ascending, ready to be compared.
pub(super) struct Comparison {
    pub x: Vec<f64>,
    pub level: Vec<f64>,
    variance: Vec<f64>,
    draws: Vec<Draw>,
    /// The critical value of each size, once it was asked for.
    critical: Vec<OnceCell<f64>>,
}

/// One draw: for each size, the departure of its level and its variance.
struct Draw {
    departure: Vec<f64>,
    variance: Vec<f64>,
}

impl Comparison {
    /// The comparison of the sizes at the places `among`, which ascend.
    pub fn new(rates: &Rates, among: &[usize]) -> Self {
        let pick = |values: &[f64]| -> Vec<f64> { among.iter().map(|at| values[*at]).collect() };
        let mut rng = Rng::new(SEED);
        let all: Vec<Draw> = (0..DRAWS).map(|_| draw(rates, &mut rng)).collect();
        let of_these = |draw: Draw| Draw { departure: pick(&draw.departure), variance: pick(&draw.variance) };
        let draws = all.into_iter().map(of_these).collect();
        let critical = vec![OnceCell::new(); among.len()];
        Self { x: pick(&rates.x), level: pick(&rates.level), variance: pick(&rates.variance), draws, critical }
    }

    pub fn best(&self) -> usize {
        (0..self.x.len()).max_by(|a, b| self.level[*a].total_cmp(&self.level[*b])).unwrap_or(0)
    }

    pub fn not_worse(&self) -> Vec<usize> {
        let bounds = self.bounds();
        let worst = |at: usize, critical: f64| (0..self.x.len()).any(|other| self.is_lower(at, other, critical));
        // Few sizes come near to the best one: only these need a critical value of their own.
        let is_in = |at: &usize| !worst(*at, bounds[*at]) && !worst(*at, self.critical(*at));
        (0..self.x.len()).filter(is_in).collect()
    }

    /// The smallest size whose rate is at least 1 - `within` times the rate of every other size, by the lower ends of the intervals of their ratios.
    pub fn enough(&self, within: f64) -> Option<usize> {
        let least = (1.0 - within).ln();
        let near = self.level[self.best()] + least;
        let is_enough = |at: &usize| {
            let critical = self.critical(*at);
            let low = |other: usize| self.level[*at] - self.level[other] - critical * self.error(*at, other);
            (0..self.x.len()).all(|other| other == *at || low(other) >= least)
        };
        (0..self.x.len()).filter(|at| self.level[*at] >= near).find(is_enough)
    }

    /// Whether a size has a lower rate than another, at the critical value of either.
    pub fn is_lower(&self, at: usize, than: usize, critical: f64) -> bool {
        at != than && self.level[than] - self.level[at] > critical * self.error(at, than)
    }

    fn error(&self, at: usize, other: usize) -> f64 {
        (self.variance[at] + self.variance[other]).sqrt()
    }

    /// Whether the largest size is shown to be better than every size up to three quarters of it; then the best size is not among those.
    pub fn still_rises(&self) -> bool {
        let last = self.x.len() - 1;
        let before = self.x.partition_point(|x| *x <= BEFORE_THE_END * self.x[last]);
        before > 0 && (0..before).all(|at| self.is_lower(at, last, self.critical(last)))
    }

    /// The critical value for comparing all other sizes with this one, in either direction.
    pub fn critical(&self, at: usize) -> f64 {
        *self.critical[at].get_or_init(|| self.drawn_critical(at))
    }

    fn drawn_critical(&self, at: usize) -> f64 {
        let largest = |draw: &Draw| {
            let (own, variance) = (draw.departure[at], draw.variance[at]);
            let pairs = draw.departure.iter().zip(&draw.variance);
            // The difference of a size from itself is 0, so it changes neither maximum.
            pairs.fold([0f64, 0.0], |[up, down], (departure, other)| {
                let ratio = (departure - own) / (variance + other).sqrt();
                [up.max(ratio), down.max(-ratio)]
            })
        };
        let (mut up, mut down): (Vec<f64>, Vec<f64>) =
            self.draws.iter().map(largest).map(|[up, down]| (up, down)).unzip();
        quantile(&mut up, CONFIDENCE).max(quantile(&mut down, CONFIDENCE))
    }

    /// An upper bound on each critical value, in one pass: (a - b) / sqrt(u + v) is at most sqrt(a^2 / u + b^2 / v) (Cauchy and Schwarz).
    fn bounds(&self) -> Vec<f64> {
        let own = |draw: &Draw, at: usize| draw.departure[at].powi(2) / draw.variance[at];
        let largest = |draw: &Draw| (0..self.x.len()).map(|at| own(draw, at)).fold(0.0, f64::max);
        let largest: Vec<f64> = self.draws.iter().map(largest).collect();
        let bound = |at: usize| {
            let sums = self.draws.iter().zip(&largest).map(|(draw, largest)| (own(draw, at) + largest).sqrt());
            quantile(&mut sums.collect::<Vec<_>>(), CONFIDENCE)
        };
        (0..self.x.len()).map(bound).collect()
    }
}

/// Blocks drawn with replacement, at least two different ones.
fn draw(rates: &Rates, rng: &mut Rng) -> Draw {
    let blocks = rates.influence.len();
    let mut weights = vec![0.0; blocks];
    while weights.iter().filter(|weight| **weight > 0.0).count() < 2.min(blocks) {
        weights.fill(0.0);
        (0..blocks).for_each(|_| weights[rng.below(blocks)] += 1.0);
    }
    // The number of visits, their sum and that of their squares.
    let mut sums = vec![[0.0; 3]; rates.x.len()];
    for (weight, visits) in weights.iter().zip(&rates.influence).filter(|(weight, _)| **weight > 0.0) {
        for &(size, departure) in visits {
            let more = [*weight, weight * departure, weight * departure * departure];
            sums[size].iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
        }
    }
    let of = |(&[count, sum, squares], &visits): (&[f64; 3], &usize)| {
        let (drawn, visits) = (count.max(1.0), visits as f64);
        let mean = sum / drawn;
        let own = (squares / drawn - mean * mean).max(0.0) * visits / (visits - 1.0);
        // Draws scatter less than the estimate that they imitate, by the degree of freedom of the mean.
        (own, mean * (visits / (visits - 1.0)).sqrt())
    };
    let (own, departure): (Vec<f64>, Vec<f64>) = sums.iter().zip(&rates.visits).map(of).unzip();
    let least = LEAST * median(&mut rates.variance.clone());
    let variance = shrunken(&own, &rates.visits).into_iter().map(|variance| variance.max(least)).collect();
    Draw { departure, variance }
}
