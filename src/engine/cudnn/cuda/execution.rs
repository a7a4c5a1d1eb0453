//! What is reported of a call that is made ready.

/// How a call was executed, for `layers.parquet`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Execution {
    /// `graph:eng28{..}`, `legacy:..`, `cublaslt:66{..}`, `kernel:max_pool2d/forward`, `memset`.
    pub algorithm: String,
    pub workspace_bytes: u64,
    /// As the library reports it; `None` for our own kernels.
    pub math_mode: Option<String>,
    pub remark: Option<String>,
}
