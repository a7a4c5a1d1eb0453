//! The batch: where the step reads it from, and how it is copied there.

use super::op::scalar::Scalar;
use crate::engine::Workload;
use crate::network::{Network, Shape, data};
use crate::settings::DataPath;

/// A batch in the memory that the step reads, and, for data that is copied in each step, the source of the copy.
#[derive(Debug)]
pub struct Batch<T> {
    /// N x the network's input.
    pub inputs: Vec<T>,
    /// N x the network's output.
    pub targets: Vec<T>,
    /// Inputs and targets in ordinary host memory.
    host: Option<[Vec<T>; 2]>,
}

impl<T: Scalar> Batch<T> {
    /// Draws the batch of a workload, see [`data`].
    pub fn new(workload: &Workload) -> Self {
        let [inputs, targets] = [data::inputs(workload), data::targets(workload)]
            .map(|values| values.into_iter().map(T::from).collect::<Vec<T>>());
        let host = match workload.settings.data {
            DataPath::Resident => None,
            _ => Some([inputs.clone(), targets.clone()]),
        };
        Self { inputs, targets, host }
    }

    /// Room for a batch; written here, so that the pages exist before the first step.
    pub fn zeros(network: &Network, examples: usize) -> Self {
        let zeros = |shape: Shape| std::iter::repeat_n(T::ZERO, examples * shape.count()).collect();
        Self { inputs: zeros(network.input()), targets: zeros(network.output()), host: None }
    }

    /// Copies the batch from ordinary host memory in one thread, as a data loader does, if the setting `data` asks for it;
    /// returns whether it did.
    pub fn upload(&mut self) -> bool {
        let Some([inputs, targets]) = &self.host else { return false };
        self.inputs.copy_from_slice(inputs);
        self.targets.copy_from_slice(targets);
        true
    }
}
