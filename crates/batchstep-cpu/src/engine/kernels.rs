//! What a step runs inside: the kernels of a GPU, or the operators of a library on a processor, as a profiler saw them.

use serde::{Deserialize, Serialize};

/// All calls in one step of one kernel with one grid, or of one operator with operands of the same shapes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KernelTime {
    pub name: String,
    /// Blocks along x, y and z; `None`: not a kernel of a GPU.
    pub grid: Option<[u32; 3]>,
    /// Threads of a block along x, y and z.
    pub block: Option<[u32; 3]>,
    /// The shapes of an operator's operands, as JSON: `[[15,32,16,16],[64,32,3,3]]`.
    pub shapes: Option<String>,
    pub count: u64,
    /// The time of all calls together; for an operator without the operators that it calls.
    pub seconds: f64,
}
