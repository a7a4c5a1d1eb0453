//! Everything that uses a GPU: memory, kernels, cuDNN, cuBLASLt, events, graphs. Only this folder and
//! [`crate::device::cuda::driver`] know cudarc.
//!
//! A step is prepared and run as follows: [`Chooser::choose`] an algorithm for each convolution, lay out and
//! [`Gpu::allocate`] the memory, make a [`Program`] of the calls, then [`Program::enqueue`] it as often as wanted,
//! eagerly or captured into a [`Graph`].
//!
//! Every call of a library is checked, and an error names the call. An error met while something is dropped is returned
//! by the next call that can fail.

mod api;
mod argument;
mod capture;
mod compiler;
pub mod convolution;
mod device;
mod event;
mod kernel_node;
mod memory;
mod module;
pub mod opened;
mod placement;
pub mod product;
mod program;
mod properties;
mod remedy;
#[cfg(test)]
mod resources;
mod status;
#[cfg_attr(feature = "candle-cuda", allow(dead_code))] // The linker looks them up.
mod symbols;
#[cfg(test)]
mod tests;
pub mod trial;

pub use capture::Graph;
pub use convolution::{Choice, Chooser, Policy, Search, workspace_limit};
pub use device::{Gpu, StreamId};
pub use event::{Event, Mark, PhaseTimes, Stopwatch, Timeline};
pub use memory::{HostBuffer, Memory};
pub use module::SourceOf;
pub use placement::{Placement, Range};
pub use program::{Execution, Layout, Program};
pub use properties::{OLDEST, Properties};
