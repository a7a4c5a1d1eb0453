//! From observations to one value and one error for each x: steps to visits, visits grouped by x, the common factor subtracted,
//! repetitions reduced.

pub(super) mod factor;
mod first;
mod node_means;
pub(super) mod nodes;
pub(super) mod prepared;
pub(super) mod reduce;
pub(super) mod scaled;
mod spikes;
pub(super) mod unfitted;
pub(super) mod units;
pub(super) mod visits;
