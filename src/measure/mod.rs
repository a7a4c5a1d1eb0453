//! Measuring: the host stopwatch, when warm-up ends, when a cell is known well enough, and what the clocks themselves cost.

pub mod calibration;
pub mod precision;
pub mod stopwatch;
pub mod warmup;

pub use calibration::Calibration;
pub use precision::{BlockMedian, StopReason};
pub use stopwatch::Stopwatch;
