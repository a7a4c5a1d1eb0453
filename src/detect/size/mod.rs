//! How large the jumps are, and how sure that is.

pub(super) mod blocks;
mod design;
mod effects;
pub(super) mod interval;
pub(super) mod sizes;
