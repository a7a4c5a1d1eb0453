//! Operators that act on each number by itself: rectifiers, dropout and the sum of two arrays.

use super::array::Array;
use crate::random::{GOLDEN, Purpose, Stream, mix};

/// `max(x, 0)`.
pub fn relu(x: &Array) -> Array {
    each(x, |_, x| if x > 0.0 { x } else { 0.0 })
}

/// `dy` where `x > 0`.
pub fn relu_input_gradient(x: &Array, dy: &Array) -> Array {
    each(dy, |at, dy| if x.values[at] > 0.0 { dy } else { 0.0 })
}

/// `min(max(x, 0), 6)`.
pub fn relu6(x: &Array) -> Array {
    each(x, |_, x| x.clamp(0.0, 6.0))
}

/// `dy` where `0 < x < 6`.
pub fn relu6_input_gradient(x: &Array, dy: &Array) -> Array {
    each(dy, |at, dy| if x.values[at] > 0.0 && x.values[at] < 6.0 { dy } else { 0.0 })
}

/// `a + b`.
pub fn add(a: &Array, b: &Array) -> Array {
    each(a, |at, a| a + b.values[at])
}

/// Which numbers a dropout layer zeroes in one step.
#[derive(Clone, Copy, Debug)]
pub struct Mask {
    pub rate: f64,
    pub seed: u64,
    /// The layer's index in the network.
    pub layer: usize,
    /// Steps done before this one.
    pub step: u64,
}

impl Mask {
    /// A number is zeroed with probability `rate`, or else multiplied by 1 / (1 - rate), in the forward and the
    /// backward pass. Hashes of the layer, the step and the index decide which numbers are zeroed.
    pub fn apply(&self, x: &Array) -> Array {
        if self.rate == 0.0 {
            return x.clone();
        }
        let key = mix(Stream::new(self.seed, Purpose::Dropout, [self.layer as u64, self.step]).key());
        each(x, |index, x| {
            let bits = mix(key.wrapping_add(GOLDEN.wrapping_mul(index as u64)));
            let uniform = (bits >> 11) as f64 / (1_u64 << 53) as f64;
            if uniform < self.rate { 0.0 } else { x / (1.0 - self.rate) }
        })
    }
}

fn each(x: &Array, function: impl Fn(usize, f64) -> f64) -> Array {
    let values = x.values.iter().enumerate().map(|(at, x)| function(at, *x)).collect();
    Array { values, ..*x }
}
