//! Words and numbers for people.
pub mod human;
