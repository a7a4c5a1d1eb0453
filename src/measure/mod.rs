//! Measuring: the end of warm-up, the precision of a cell, and the cost of the clocks themselves.
//!
//! The method, with formulas, references and calibration figures, is in `docs/method.md`, "Measuring"; [`crate::run::simulation`] counts
//! how often its promises hold. In the order of a visit:
//!
//! - [`visit_length`]: how many steps of a visit count, from what the first block shows.
//! - [`warmup`]: which steps of a visit count: the last `k`, once they show no trend.
//! - [`interference`]: which of them other programs disturbed; a visit continues until it has enough undisturbed steps.
//! - [`precision`]: the median of a cell's block medians, its interval, and whether that is narrow enough to leave the cell.
//! - [`calibration`]: the cost of measuring on this machine; reported with each run, never subtracted.

pub mod calibration;
pub mod interference;
pub mod precision;
pub mod visit_length;
pub mod warmup;

pub use calibration::Calibration;
pub use precision::BlockMedian;
