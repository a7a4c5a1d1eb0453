//! Sizes of the jumps, and their intervals.

pub(super) mod blocks;
mod design;
mod effects;
pub(super) mod interval;
pub(super) mod sizes;
