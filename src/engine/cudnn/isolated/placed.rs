//! The parts of a plan on a GPU.

use std::collections::BTreeMap;
use std::ops::Range;

use super::PartRunner;
use crate::engine::cudnn::arena::Arena;
use crate::engine::cudnn::call::Call;
use crate::engine::cudnn::cuda::{Choice, Gpu, Program, ProgramLayout, StreamId};
use crate::engine::cudnn::placed::Placed;
use crate::engine::cudnn::plan::StepPlan;
use crate::error::Result;

/// A plan whose buffers lie apart on the GPU.
pub(in crate::engine::cudnn) struct PlacedParts {
    pub gpu: Gpu,
    pub placed: Placed,
    pub arena: Arena,
    /// The algorithm of each convolution, by the index of its call.
    pub choices: BTreeMap<usize, Choice>,
}

impl PartRunner for PlacedParts {
    fn plan(&self) -> &StepPlan {
        &self.placed.plan
    }

    fn arena(&self) -> &Arena {
        &self.arena
    }

    fn run(&mut self, calls: Range<usize>) -> Result<()> {
        let Self { gpu, placed, choices, .. } = self;
        let own = choices.range(calls.clone()).map(|(index, choice)| (index - calls.start, choice.clone()));
        let own = own.collect();
        let calls: Vec<Call> = placed.plan.calls[calls].iter().map(|planned| planned.call.clone()).collect();
        let layout = ProgramLayout::in_turn(&placed.placement, &own, placed.workspaces[0]);
        let program = Program::new(gpu, &calls, layout)?;
        program.enqueue(0..program.len())?;
        gpu.synchronize(StreamId::Compute)
    }

    fn read(&self, bytes: Range<usize>) -> Result<Vec<u8>> {
        self.gpu.read(self.placed.memory.address() + bytes.start as u64, bytes.len())
    }
}
