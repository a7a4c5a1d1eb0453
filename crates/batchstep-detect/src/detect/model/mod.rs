//! The terms of a curve, and a least-squares fit of chosen terms.

pub(super) mod basis;
pub(super) mod boundary;
pub(super) mod candidates;
pub(super) mod fit;
pub(super) mod grid;
pub(super) mod moves;
pub(super) mod neighbourhood;
pub(super) mod place;
pub(super) mod problem;
mod shapes;
pub(super) mod simd;

#[cfg(test)]
mod tests;
