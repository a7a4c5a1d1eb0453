//! Whether a step of the model is real: thresholds, p-values, the alternative of correlated errors, all conditions
//! together, and power.

pub(super) mod autoregressive;
pub(super) mod examination;
pub(super) mod p_value;
pub(super) mod power;
pub(super) mod threshold;
