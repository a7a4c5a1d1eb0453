//! Random numbers, all from SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA
//! 2014), which passes a counter through a mixer: of period 2^64, and the same on every machine.
//!
//! [`Rng`] is the generator. [`Stream`] has no state: a value is a hash of a key and an index, namely the output number
//! `index` of the generator seeded with the key. It does not matter who asks first, in what order, or on how many threads,
//! and another engine, or a script in another language, gets the same numbers.

use std::f64::consts::TAU;

/// What the generator adds to its state with each number: 2^64 over the golden ratio, made odd.
pub const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// The generator's output function: a bijection of the 64-bit words. Variant 13 of Stafford, "Better bit mixing", 2011.
#[inline(always)]
pub fn mix(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ (word >> 31)
}

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
        self.state = self.state.wrapping_add(GOLDEN);
        mix(self.state)
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
        radius * (TAU * self.uniform()).cos()
    }

    /// Student's t with three degrees of freedom.
    pub fn student(&mut self) -> f64 {
        self.normal() / ((0..3).map(|_| self.normal().powi(2)).sum::<f64>() / 3.0).sqrt()
    }

    /// Puts `values` in a random order (Fisher & Yates).
    pub fn shuffle<T>(&mut self, values: &mut [T]) {
        for last in (1..values.len()).rev() {
            values.swap(last, self.below(last + 1));
        }
    }
}

/// What a stream of numbers is for: one name for each use, so that no two uses share numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The initial values of the parameters; the parts are the layer's index and the parameter's.
    Parameters = 1,
    /// The inputs of the batch.
    Inputs = 2,
    /// The targets of the batch.
    Targets = 3,
    /// The masks of the dropout layers; the parts are the layer's index and the step.
    Dropout = 4,
    /// The synthetic engine's noise.
    Noise = 5,
    /// Digits that are drawn; the parts are the data set's part (training, test) and the image.
    Digits = 6,
    /// The order of the examples in an epoch; the first part is the epoch.
    Order = 7,
    /// Images that are drawn for a study of the input pipeline; the parts are the side and the image.
    Images = 8,
}

/// One stream of numbers, identified by a seed, a purpose and two free parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    key: u64,
}

impl Stream {
    /// The stream of `seed` and `purpose`, number `parts`: `mix(mix(mix(mix(seed + G) + purpose) + parts[0]) + parts[1])`.
    pub fn new(seed: u64, purpose: Purpose, parts: [u64; 2]) -> Self {
        let key = mix(seed.wrapping_add(GOLDEN));
        let key = mix(key.wrapping_add(purpose as u64));
        let key = mix(key.wrapping_add(parts[0]));
        Self { key: mix(key.wrapping_add(parts[1])) }
    }

    /// The key, a fit seed for a generator of another kind.
    pub fn key(self) -> u64 {
        self.key
    }

    /// 64 random bits: `mix(key + (index + 1) G)`.
    #[inline]
    pub fn bits(self, index: u64) -> u64 {
        mix(self.key.wrapping_add(index.wrapping_add(1).wrapping_mul(GOLDEN)))
    }

    /// Uniform on [0, 1), a multiple of 2^-24, so exact in float32.
    #[inline]
    pub fn uniform(self, index: u64) -> f32 {
        // 24 bits fit in an i32, which SSE2 converts, and a u64 does not.
        const SCALE: f32 = 1.0 / (1 << 24) as f32;
        (self.bits(index) >> 40) as i32 as f32 * SCALE
    }

    /// Uniform on the open interval (0, 1), in steps of 2^-53.
    pub fn uniform_f64(self, index: u64) -> f64 {
        ((self.bits(index) >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    /// Standard normal, by Box and Muller; uses the bits of 2 `index` and 2 `index` + 1.
    pub fn normal(self, index: u64) -> f64 {
        let radius = (-2.0 * self.uniform_f64(2 * index).ln()).sqrt();
        radius * (TAU * self.uniform_f64(2 * index + 1)).cos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bits_match_splitmix64() {
        // The first outputs for seed 1234567, as published with the reference implementation (Vigna,
        // prng.di.unimi.it/splitmix64.c) and on Rosetta Code.
        let published = [6457827717110365317, 3203168211198807973, 9817491932198370423];
        let mut rng = Rng::new(1234567);
        assert_eq!([rng.bits(), rng.bits(), rng.bits()], published);
        let stream = Stream { key: 1234567 };
        assert_eq!([0, 1, 2].map(|index| stream.bits(index)), published);
    }

    #[test]
    fn uniform_numbers_have_the_mean_and_variance_of_their_law() {
        let stream = Stream::new(1, Purpose::Inputs, [0, 0]);
        let n = 100_000;
        let values: Vec<f64> = (0..n).map(|index| f64::from(stream.uniform(index))).collect();
        let mean = values.iter().sum::<f64>() / n as f64;
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n as f64;
        assert!(values.iter().all(|v| (0.0..1.0).contains(v)));
        // Four standard errors: sqrt(1/12/n) = 0.0009 and sqrt(1/180/n) = 0.00024.
        assert!((mean - 0.5).abs() < 0.0036, "{mean}");
        assert!((variance - 1.0 / 12.0).abs() < 0.001, "{variance}");
    }

    #[test]
    fn normal_numbers_have_the_moments_of_their_law() {
        let stream = Stream::new(2, Purpose::Noise, [0, 0]);
        let n = 100_000;
        let values: Vec<f64> = (0..n).map(|index| stream.normal(index)).collect();
        let moment = |k: i32| values.iter().map(|v| v.powi(k)).sum::<f64>() / n as f64;
        // Four standard errors: 1, sqrt 2 and sqrt 96, each over sqrt n.
        assert!(moment(1).abs() < 0.0127 && (moment(2) - 1.0).abs() < 0.018 && (moment(4) - 3.0).abs() < 0.124);
    }

    #[test]
    fn streams_differ_by_seed_purpose_and_parts() {
        let first = |stream: Stream| stream.bits(0);
        let streams = [
            Stream::new(1, Purpose::Parameters, [0, 0]),
            Stream::new(2, Purpose::Parameters, [0, 0]),
            Stream::new(1, Purpose::Dropout, [0, 0]),
            Stream::new(1, Purpose::Parameters, [1, 0]),
            Stream::new(1, Purpose::Parameters, [0, 1]),
        ];
        for (i, a) in streams.iter().enumerate() {
            assert!(streams[..i].iter().all(|b| first(*a) != first(*b)));
        }
    }
}
