//! The common period of the jumps, and whether they are work or a slower clock.

pub(super) mod coincidence;
pub(super) mod period;
pub(super) mod slope;
pub(super) mod verdict;
