//! What a device reached at best, as `environment.json` holds it.

use serde::{Deserialize, Serialize};

/// What a device reached, in one precision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeasuredPeaks {
    pub engine: String,
    pub precision: String,
    /// The threads of a CPU engine, where the spec sets them.
    pub threads: Option<u64>,
    /// The rate of a large matrix product.
    pub flops_per_s: f64,
    /// The rate of a copy or a triad, which counts the bytes read and the bytes written.
    pub bytes_per_s: f64,
}
