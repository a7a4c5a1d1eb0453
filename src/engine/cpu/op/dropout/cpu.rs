//! The mask of dropout.

use rayon::prelude::*;

use crate::engine::cpu::op::parallel::piece;
use crate::engine::cpu::op::scalar::{Scalar, vectorised};
use crate::random::{GOLDEN, mix};

/// Which elements stay, and by how much they grow.
#[derive(Clone, Copy, Debug)]
pub struct Mask {
    /// An element stays where its random 53-bit number is not below this.
    threshold: u64,
    scale: f64,
    seed: u64,
}

impl Mask {
    pub fn new(rate: f64, seed: u64) -> Self {
        Self { threshold: (rate * (1u64 << 53) as f64) as u64, scale: 1.0 / (1.0 - rate), seed: mix(seed) }
    }

    #[inline(always)]
    fn keeps(&self, index: usize) -> bool {
        mix(self.seed.wrapping_add((index as u64).wrapping_mul(GOLDEN))) >> 11 >= self.threshold
    }

    /// Scales the elements that stay, and zeroes the others.
    pub fn apply<T: Scalar>(&self, x: &mut [T]) {
        // A random number costs about as much as moving eight scalars.
        let step = piece(x.len(), 8);
        let scale = T::from_f64(self.scale);
        x.par_chunks_mut(step).enumerate().for_each(|(i, x)| {
            vectorised(
                #[inline(always)]
                || {
                    for (at, x) in x.iter_mut().enumerate() {
                        *x = if self.keeps(i * step + at) { *x * scale } else { T::ZERO };
                    }
                },
            );
        });
    }
}
