//! Is a step of the model real? Thresholds and p-values, and what else may have made it.

pub(super) mod autoregressive;
mod gaps;
pub(super) mod p_value;
pub(super) mod power;
pub(super) mod threshold;
