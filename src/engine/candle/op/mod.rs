//! Operators with forward and backward.
