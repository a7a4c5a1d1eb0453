//! What the jumps have in common, and what they come of.

pub(super) mod coincidence;
pub(super) mod period;
pub(super) mod verdict;
