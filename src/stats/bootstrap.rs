//! Resampling with replacement, and the seeded generator of random numbers that all resampling here shares.
//!
//! Efron & Tibshirani 1993, *An Introduction to the Bootstrap*. Generator: SplitMix64 (Steele, Lea & Flood 2014), a counter
//! passed through a mixer: tiny, of period 2^64, and the same on every machine.

/// A seeded generator of random numbers.
#[derive(Clone, Debug)]
pub struct Rng {
    state: u64,
}

impl Rng {
    /// A generator whose whole sequence follows from `seed`.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Uniform in [0, 1).
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Uniform in `0..count`, by Lemire's multiplication; `count` 0 gives 0.
    pub fn below(&mut self, count: usize) -> usize {
        ((u128::from(self.bits()) * count as u128) >> 64) as usize
    }

    /// A standard normal number (Box & Muller 1958).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// Puts `values` in a random order (Fisher & Yates).
    pub fn shuffle<T>(&mut self, values: &mut [T]) {
        for last in (1..values.len()).rev() {
            values.swap(last, self.below(last + 1));
        }
    }
}

/// The percentile interval of `statistic` at `confidence` (0 to 1) over `resamples` resamples of `values`.
///
/// Returns (low, high); `NaN` where there are no values. Cost: `resamples` calls of `statistic`.
pub fn interval(
    values: &[f64],
    statistic: impl Fn(&mut [f64]) -> f64,
    resamples: usize,
    confidence: f64,
    rng: &mut Rng,
) -> (f64, f64) {
    if values.is_empty() {
        return (f64::NAN, f64::NAN);
    }
    let mut sample = values.to_vec();
    let mut found: Vec<f64> = (0..resamples.max(1))
        .map(|_| {
            for slot in &mut sample {
                *slot = values[rng.below(values.len())];
            }
            statistic(&mut sample)
        })
        .collect();
    percentiles(&mut found, confidence)
}

/// The central `confidence` share of `values`: (low, high), as [`super::quantile::quantile`] has them. Reorders them; O(n).
pub fn percentiles(values: &mut [f64], confidence: f64) -> (f64, f64) {
    let tail = 0.5 * (1.0 - confidence);
    (selected(values, tail), selected(values, 1.0 - tail))
}

/// The `level` quantile by selection.
fn selected(values: &mut [f64], level: f64) -> f64 {
    let Some(last) = values.len().checked_sub(1) else {
        return f64::NAN;
    };
    let place = level.clamp(0.0, 1.0) * last as f64;
    let (_, below, above) = values.select_nth_unstable_by(place as usize, f64::total_cmp);
    let next = above.iter().copied().fold(f64::INFINITY, f64::min);
    if next.is_finite() { *below + place.fract() * (next - *below) } else { *below }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::quantile::median;

    #[test]
    fn the_generator_gives_the_published_sequence() {
        // SplitMix64 with seed 1234567: the reference values of rosettacode.org/wiki/Pseudo-random_numbers/Splitmix64
        let mut rng = Rng::new(1_234_567);
        let expected = [6_457_827_717_110_365_317_u64, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!([rng.bits(), rng.bits(), rng.bits()], expected);
    }

    #[test]
    fn selected_percentiles_equal_sorted_ones() {
        let mut rng = Rng::new(21);
        for n in 1..40 {
            let values: Vec<f64> = (0..n).map(|_| rng.normal()).collect();
            let (low, high) = percentiles(&mut values.clone(), 0.9);
            let sorted = |level| crate::stats::quantile::quantile(&values, level);
            assert!((low - sorted(0.05)).abs() < 1e-12 && (high - sorted(0.95)).abs() < 1e-12, "{n}");
        }
    }

    #[test]
    fn the_interval_of_the_mean_is_near_the_normal_one() {
        let mut rng = Rng::new(11);
        let values: Vec<f64> = (0..400).map(|_| rng.normal()).collect();
        let mean = |v: &mut [f64]| v.iter().sum::<f64>() / v.len() as f64;
        let center = mean(&mut values.clone());
        let (low, high) = interval(&values, mean, 2000, 0.95, &mut rng);
        assert!((high - center - 0.098).abs() < 0.015, "1.96 / sqrt(400) = 0.098, found {}", high - center);
        assert!((center - low - 0.098).abs() < 0.015);
    }

    #[test]
    fn intervals_of_the_median_cover_it() {
        let covered = (0..200)
            .filter(|&seed| {
                let mut rng = Rng::new(seed);
                let values: Vec<f64> = (0..30).map(|_| rng.normal()).collect();
                let (low, high) = interval(&values, median, 300, 0.95, &mut rng);
                low <= 0.0 && 0.0 <= high
            })
            .count();
        assert!(covered >= 180, "{covered} of 200");
    }
}
