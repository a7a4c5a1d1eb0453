//! The memory of a pass. All of it is allocated and written to before the first step, so that no step has page faults.

use super::memory_plan::{MemoryPlan, Move, MoveKind};
use super::room::{Memory, Piece};
use crate::engine::cpu::op::activation::cpu::add_to;
use crate::engine::cpu::op::batch_norm::cpu::Moments;
use crate::engine::cpu::op::scalar::Scalar;
use crate::network::{Network, Operation};

/// What lives from the forward pass to the backward pass, and the gradients.
#[derive(Debug)]
pub struct Buffers<T> {
    /// Each layer's output; empty where another layer's buffer holds it, and for the input.
    pub outputs: Vec<Piece<T>>,
    /// The position of each maximum of a max-pooling.
    pub winners: Vec<Piece<u32>>,
    /// The moments that a batch norm normalised with.
    pub moments: Vec<Piece<Moments>>,
    /// Gradients of outputs.
    pub slots: Vec<Piece<T>>,
    /// Gradients of each layer's parameters, in the order of [`Network::parameters_of`].
    pub parameters: Vec<Vec<Piece<T>>>,
    /// What all but the last of them are cut from.
    of_batch: Memory,
    of_parameters: Memory,
}

impl<T: Scalar> Buffers<T> {
    /// Allocates the gradients of the parameters; the rest depends on the batch size.
    pub fn new(network: &Network) -> Self {
        let layers = network.layers.len();
        let mut buffers = Self {
            outputs: nothing(layers),
            winners: nothing(layers),
            moments: nothing(layers),
            slots: Vec::new(),
            parameters: Vec::new(),
            of_batch: Memory::default(),
            of_parameters: Memory::default(),
        };
        buffers.of_parameters.cut(|cutter| {
            let mut gradients = |index| {
                let trainable = network.parameters_of(index).into_iter().filter(|parameter| parameter.trainable);
                trainable.map(|parameter| cutter.piece(parameter.count())).collect()
            };
            buffers.parameters = (0..layers).map(&mut gradients).collect();
        });
        buffers
    }

    /// Allocates the memory for batches of `batch` examples, in that of earlier batches where it is large enough.
    pub fn fit(&mut self, network: &Network, plan: &MemoryPlan, batch: usize) {
        let layers = network.layers.len();
        let Self { outputs, winners, moments, slots, .. } = self;
        (*outputs, *winners, *moments, *slots) =
            (nothing(layers), nothing(layers), nothing(layers), nothing(plan.slots.len()));
        self.of_batch.cut(|cutter| {
            for (index, layer) in network.layers.iter().enumerate().skip(1) {
                let values = batch * layer.output.count();
                if plan.layers[index].output.holder == index {
                    outputs[index] = cutter.piece(values);
                }
                match layer.operation {
                    Operation::MaxPool2d(_) => winners[index] = cutter.piece(values),
                    Operation::BatchNorm(_) => moments[index] = cutter.piece(layer.output.channels()),
                    _ => {}
                }
            }
            for (slot, size) in slots.iter_mut().zip(&plan.slots) {
                *slot = cutter.piece(batch * size);
            }
        });
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
        self.of_batch.bytes() + self.of_parameters.bytes()
    }
}

fn nothing<N>(count: usize) -> Vec<Piece<N>> {
    std::iter::repeat_with(Piece::default).take(count).collect()
}
