//! What a device reached at best, as `environment.json` holds it.

use serde::{Deserialize, Serialize};

/// What a device reached, in one precision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeasuredPeaks {
    pub engine: String,
    pub precision: String,
    /// Of a CPU's engine, where the spec sets them.
    pub threads: Option<u64>,
    /// Of a large matrix product.
    pub flops_per_s: f64,
    /// Of a copy, or a triad: bytes read and bytes written.
    pub bytes_per_s: f64,
}
