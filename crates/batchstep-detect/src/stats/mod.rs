//! Statistics on slices of numbers: quantiles, robust location and scale, intervals of medians, small regressions, resampling, tails.
//!
//! Nothing here uses files or devices. Values are `f64`, finite unless a function says otherwise; on an empty slice a
//! statistic is `NaN`, never a panic.

pub mod bootstrap;
pub mod common_factor;
pub mod distribution;
pub mod disturbance;
pub mod halves;
pub mod nonnegative;
pub mod order;
pub mod permutation;
pub mod quantile;
pub mod regression;
pub mod repetitions;
pub mod robust;
pub mod slow_times;
