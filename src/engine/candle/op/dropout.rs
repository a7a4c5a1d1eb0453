//! Dropout with the masks that every engine draws. candle-nn's own dropout draws from a generator that cannot be seeded
//! on a CPU.

use candle_core::{Result, Tensor};
use rayon::prelude::*;

use crate::engine::dropout::Mask;

/// Zeroes the elements that the mask of `key` drops, and scales the others by `1 / (1 - rate)`. The mask is made on the host
/// within the step, as candle-nn makes its own.
pub fn dropout(x: &Tensor, rate: f64, key: u64) -> Result<Tensor> {
    let mask = Mask::new(rate, key);
    let kept: Vec<f32> = (0..x.elem_count()).into_par_iter().map(|at| f32::from(u8::from(mask.keeps(at)))).collect();
    let kept = Tensor::from_vec(kept, x.dims(), x.device())?.to_dtype(x.dtype())?;
    x * (kept * mask.scale)?
}
