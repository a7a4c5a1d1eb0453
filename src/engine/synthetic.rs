//! A known truth.
