//! Sizes of the jumps, and their intervals.

pub(super) mod blocks;
pub(super) mod interval;
pub(super) mod sizes;
