//! The memory of a pass. All of it is allocated and written to before the first step, so that no step has page faults.

use super::memory_plan::{MemoryPlan, Move, MoveKind};
use crate::engine::cpu::op::activation::cpu::add_to;
use crate::engine::cpu::op::batch_norm::cpu::Moments;
use crate::engine::cpu::op::scalar::Scalar;
use crate::network::{Network, Operation};

/// What lives from the forward pass to the backward pass, and the gradients.
#[derive(Debug)]
pub struct Buffers<T> {
    /// Each layer's output; empty where another layer's buffer holds it, and for the input.
    pub outputs: Vec<Vec<T>>,
    /// The position of each maximum of a max-pooling.
    pub winners: Vec<Vec<u32>>,
    /// The moments that a batch norm normalised with.
    pub moments: Vec<Vec<Moments>>,
    /// Gradients of outputs.
    pub slots: Vec<Vec<T>>,
    /// Gradients of each layer's parameters, in the order of [`Network::parameters_of`].
    pub parameters: Vec<Vec<Vec<T>>>,
}

impl<T: Scalar> Buffers<T> {
    /// Allocates the gradients of the parameters; the rest depends on the batch size.
    pub fn new(network: &Network) -> Self {
        let layers = network.layers.len();
        let gradients = |index| {
            let trainable = network.parameters_of(index).into_iter().filter(|parameter| parameter.trainable);
            trainable.map(|parameter| written(parameter.count())).collect()
        };
        Self {
            outputs: (0..layers).map(|_| Vec::new()).collect(),
            winners: vec![Vec::new(); layers],
            moments: vec![Vec::new(); layers],
            slots: Vec::new(),
            parameters: (0..layers).map(gradients).collect(),
        }
    }

    /// Allocates the memory for batches of `batch` examples, reusing that of earlier batches where it is large enough.
    pub fn fit(&mut self, network: &Network, plan: &MemoryPlan, batch: usize) {
        for (index, layer) in network.layers.iter().enumerate().skip(1) {
            if plan.layers[index].output.holder == index {
                resize(&mut self.outputs[index], batch * layer.output.count());
            }
            match layer.operation {
                Operation::MaxPool2d(_) => resize(&mut self.winners[index], batch * layer.output.count()),
                Operation::BatchNorm(_) => resize(&mut self.moments[index], layer.output.channels()),
                _ => {}
            }
        }
        self.slots.resize_with(plan.slots.len(), Vec::new);
        for (slot, size) in self.slots.iter_mut().zip(&plan.slots) {
            resize(slot, batch * size);
        }
    }

    /// Copies or adds `len` elements of one slot to another.
    pub fn apply(&mut self, one: Move, len: usize) {
        let mut target = std::mem::take(&mut self.slots[one.to]);
        match one.kind {
            MoveKind::Copy => target[..len].copy_from_slice(&self.slots[one.from][..len]),
            MoveKind::Add => add_to(&mut target[..len], &self.slots[one.from][..len]),
        }
        self.slots[one.to] = target;
    }

    /// The bytes that later batches of the same network reuse.
    pub fn bytes(&self) -> u64 {
        let vectors = self.outputs.iter().chain(&self.slots).chain(self.parameters.iter().flatten());
        let scalars: usize = vectors.map(Vec::capacity).sum();
        let winners: usize = self.winners.iter().map(Vec::capacity).sum();
        (scalars * size_of::<T>() + winners * size_of::<u32>()) as u64
    }
}

/// A vector whose memory has been written to; `vec![0; len]` would leave the page faults to the first step.
fn written<N: Copy + Default>(len: usize) -> Vec<N> {
    let mut vector = Vec::with_capacity(len);
    vector.resize(len, N::default());
    vector
}

fn resize<N: Copy + Default>(vector: &mut Vec<N>, len: usize) {
    if vector.capacity() < len {
        // The old memory is freed first; its contents are not needed.
        *vector = Vec::new();
        *vector = written(len);
    } else {
        vector.resize(len, N::default());
    }
}
