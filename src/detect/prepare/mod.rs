//! From observations to one value and one error for each x: grouped, drift taken out, repetitions reduced.

pub(super) mod factor;
pub(super) mod prepared;
pub(super) mod reduce;
pub(super) mod scaled;
pub(super) mod unfitted;
pub(super) mod visits;
