//! Whether a step of the model is real: thresholds, p-values, the alternative of correlated errors, and the power.

pub(super) mod autoregressive;
mod gaps;
pub(super) mod p_value;
pub(super) mod power;
pub(super) mod threshold;
