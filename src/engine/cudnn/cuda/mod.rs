//! Everything that touches a GPU: memory, kernels, cuDNN, cuBLASLt, events, graphs. Only this folder and [`crate::device::cuda::driver`]
//! know cudarc.
//!
//! The way of a step: [`Chooser::choose`] an algorithm for each convolution, lay out and [`Gpu::allocate`] the memory, make a
//! [`Program`] of the calls, then [`Program::enqueue`] it as often as wanted, eagerly or captured into a [`Graph`].
//!
//! Every call of a library is checked, and an error names the call. What is freed too late to tell an error tells it at the
//! next call that can.

mod argument;
mod cache;
mod capture;
mod compiler;
pub mod convolution;
mod device;
mod event;
mod kernel_node;
mod memory;
mod module;
mod placement;
pub mod product;
mod program;
mod properties;
#[cfg(test)]
mod resources;
mod status;
#[cfg(test)]
mod tests;

pub use capture::Graph;
pub use convolution::{Choice, Chooser, Policy, Search, workspace_limit};
pub use device::{Gpu, StreamId};
pub use event::{Event, Mark, Phases, Stopwatch, Timeline};
pub use memory::{HostBuffer, Memory};
pub use module::SourceOf;
pub use placement::{Placement, Range};
pub use program::{Execution, Layout, Program};
pub use properties::{OLDEST, Properties};
