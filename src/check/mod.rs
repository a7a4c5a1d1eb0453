//! What is checked before anything is timed: operators, the steps of a plan, this machine.

pub mod doctor;
pub mod precheck;
pub mod selftest;
