//! A plan with the memory that it works on.

use std::rc::Rc;

use super::cuda::{Memory, Placement};
use super::guard::Guarded;
use super::plan::StepPlan;

/// A plan, and where its buffers lie on the device.
#[derive(Debug)]
pub(super) struct Placed {
    pub plan: StepPlan,
    pub memory: Rc<Memory>,
    pub placement: Placement,
    /// With the batch and the next one exchanged, where the plan has two.
    pub other_placement: Option<Placement>,
    /// The workspaces, and what no call may write.
    pub guarded: Guarded,
}
