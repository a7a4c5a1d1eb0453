//! Everything that uses a GPU: memory, kernels, cuDNN, cuBLASLt, events, graphs. Only this folder and
//! [`crate::device::cuda::driver`] know cudarc.
//!
//! A step is prepared and run as follows: [`Chooser::choose`] an algorithm for each convolution, lay out and
//! [`Gpu::allocate`] the memory, make a [`Program`] of the calls, then [`Program::enqueue`] it as often as wanted,
//! eagerly or captured into a [`Graph`].
//!
//! Every call of a library is checked, and an error names the call; it is [`crate::error::Kind::Engine`] where nothing else
//! is said. An error met while something is dropped is returned by the next call that can fail.

/// Defines the owner of one kind of handle of a library, which is destroyed with it.
macro_rules! owned {
    ($name:ident, $raw:ty, $destroy:path) => {
        #[derive(Debug)]
        pub struct $name(pub $raw);

        impl Drop for $name {
            fn drop(&mut self) {
                // SAFETY: created once, destroyed once.
                let _ = unsafe { $destroy(self.0) };
            }
        }
    };
}

mod api;
pub(super) mod argument;
mod capture;
pub(super) mod compiler;
pub mod computation;
pub mod convolution;
mod device;
mod event;
mod execution;
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
mod symbols;
#[cfg(test)]
mod tests;
pub mod trial;

pub use capture::Graph;
pub use convolution::{Choice, Chooser, Policy, Search, workspace_limit};
pub use device::{Gpu, StreamId};
pub use event::{Mark, Timeline};
pub use memory::{HostBuffer, Memory};
pub use placement::{Placement, Range};
pub use program::{Program, ProgramLayout};
pub use properties::OLDEST;
