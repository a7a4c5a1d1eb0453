//! A plan with the memory that it works on.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::cuda::{Gpu, Layout, Memory, Placement, Program, StreamId};
use super::memory_guard::{self, Guarded};
use super::plan::StepPlan;
use crate::error::Result;

/// A plan, and where its buffers lie on the device.
#[derive(Debug)]
pub(super) struct Placed {
    pub plan: StepPlan,
    pub memory: Rc<Memory>,
    pub placement: Placement,
    /// The placement with the batch and the next batch exchanged, where the plan has two.
    pub other_placement: Option<Placement>,
    /// The workspaces, and the memory that no call may write.
    pub guarded: Guarded,
}

impl Placed {
    /// Fills all memory with NaN, so that a read of memory that nothing wrote is seen in the results, then gives every
    /// kept buffer its initial value.
    pub fn begin(&self, gpu: &Gpu) -> Result<()> {
        let choices = BTreeMap::new();
        let layout = Layout::in_turn(&self.placement, &choices, self.guarded.workspaces[0]);
        let initial = Program::new(gpu, &self.plan.initial, layout)?;
        gpu.enqueue_fill(StreamId::Compute, self.memory.address(), memory_guard::FILL, self.memory.bytes())?;
        initial.enqueue(0..initial.len())?;
        gpu.synchronize(StreamId::Compute)
    }

    /// # Errors
    /// [`crate::error::Kind::Device`] where a call wrote what no call may.
    pub fn check_guards(&self, gpu: &Gpu) -> Result<()> {
        self.guarded.check(|address, bytes| gpu.read(address, bytes))
    }
}
