//! The parts of a step: runs of calls that compute one node in one direction, the loss, or the update.

use std::ops::Range;

use crate::engine::cudnn::call::Slice;

/// Calls, and their purpose.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedPart {
    pub calls: Range<usize>,
    pub work: Work,
}

/// Nodes are given by their index.
#[derive(Clone, Debug, PartialEq)]
pub enum Work {
    Forward {
        node: usize,
    },
    Backward {
        node: usize,
        /// The gradients of the node's output, which are summed; the calls may overwrite them.
        from: Vec<Slice>,
        /// The gradients of the outputs of layers, in the order of the node's sources.
        to: Vec<(usize, Slice)>,
    },
    Loss {
        gradient: Slice,
    },
    Update,
}
