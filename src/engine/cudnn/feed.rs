//! The transfer of a batch from the host's memory to where the step reads it.

use super::cuda::{Gpu, HostBuffer, StreamId};
use super::placed::Placed;
use crate::error::Result;
use crate::settings::DataPath;

/// A batch in the host's memory and its places on the device: with prefetching two, so that the next batch is copied to
/// one while the step reads the other.
#[derive(Debug)]
pub struct Feed {
    inputs: HostBuffer,
    targets: HostBuffer,
    /// The addresses of inputs and targets; a second pair with prefetching.
    places: Vec<[u64; 2]>,
}

impl Feed {
    /// Takes the batch that is already on the device as the one to copy in every step.
    ///
    /// # Errors
    /// [`crate::error::Kind::OutOfMemory`] where the host lacks the memory.
    pub(super) fn new(gpu: &Gpu, placed: &Placed, path: DataPath) -> Result<Self> {
        let plan = &placed.plan;
        let pinned = path != DataPath::Pageable;
        let mut inputs = gpu.host_buffer(plan.inputs.bytes, pinned)?;
        let mut targets = gpu.host_buffer(plan.targets.bytes, pinned)?;
        let placements = std::iter::once(&placed.placement).chain(&placed.other_placement);
        let places = placements
            .map(|at| Ok([at.resolve(plan.inputs)?, at.resolve(plan.targets)?]))
            .collect::<Result<Vec<[u64; 2]>>>()?;
        gpu.copy_to_host(inputs.bytes_mut(), places[0][0])?;
        gpu.copy_to_host(targets.bytes_mut(), places[0][1])?;
        Ok(Self { inputs, targets, places })
    }

    /// Sets another batch to copy from now on: inputs and targets, with the numbers of float32 that the step has.
    pub fn overwrite(&mut self, inputs: &[f32], targets: &[f32]) {
        for (to, from) in [(&mut self.inputs, inputs), (&mut self.targets, targets)] {
            for (to, from) in to.bytes_mut().chunks_exact_mut(size_of::<f32>()).zip(from) {
                to.copy_from_slice(&from.to_le_bytes());
            }
        }
    }

    /// Whether each batch is copied during the step before its own.
    pub fn is_ahead(&self) -> bool {
        self.places.len() > 1
    }

    /// Starts to copy a batch: on the compute stream for step `number`, or, with prefetching, on the copy stream for
    /// the step after it.
    pub fn copy(&self, gpu: &Gpu, number: usize) -> Result<()> {
        let (id, step) = if self.is_ahead() { (StreamId::Copy, number + 1) } else { (StreamId::Compute, number) };
        let [inputs, targets] = self.places[step % self.places.len()];
        gpu.enqueue_to_device(id, inputs, &self.inputs, self.inputs.bytes().len())?;
        gpu.enqueue_to_device(id, targets, &self.targets, self.targets.bytes().len())
    }
}
