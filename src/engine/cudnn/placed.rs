//! A plan with the memory that it works on.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::cuda::{Gpu, Memory, Placement, Program, ProgramLayout, Range, StreamId};
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
    /// The workspaces of the main stream and of the side stream.
    pub workspaces: [Range; 2],
}

impl Placed {
    /// Fills all memory with NaN, so that a read of memory that nothing wrote is seen in the results, then gives every
    /// kept buffer its initial value.
    pub fn begin(&self, gpu: &Gpu) -> Result<()> {
        let choices = BTreeMap::new();
        let layout = ProgramLayout::in_turn(&self.placement, &choices, self.workspaces[0]);
        let initial = Program::new(gpu, &self.plan.initial, layout)?;
        gpu.enqueue_fill(StreamId::Compute, self.memory.address(), 0xFF, self.memory.bytes())?;
        initial.enqueue(0..initial.len())?;
        gpu.synchronize(StreamId::Compute)
    }
}
