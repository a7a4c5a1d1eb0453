//! The memory of a pass. All of it is allocated and written to before the first step, so that no step has page faults.

use super::arena::{ALWAYS, Cutter, PassMemory, Piece};
use super::chain::Chain;
use super::memory_plan::{MemoryPlan, Move};
use crate::engine::cpu::op::activation::{Rectifier, add_to};
use crate::engine::cpu::op::batch_norm::Moments;
use crate::engine::cpu::op::scalar::Scalar;
use crate::engine::placement::Span;
use crate::network::{Network, Operation};

/// The values that are kept from the forward pass to the backward pass, and the gradients.
#[derive(Debug)]
pub struct Buffers<T> {
    /// Each layer's output; empty where another layer's buffer holds it, and for the input.
    pub outputs: Vec<Piece<T>>,
    /// The position of each maximum of a max-pooling.
    pub winners: Vec<Piece<u32>>,
    /// The moments with which each batch norm normalised.
    pub moments: Vec<Piece<Moments>>,
    /// Gradients of outputs.
    pub slots: Vec<Piece<T>>,
    /// Gradients of each layer's parameters, in the order of [`Network::parameters_of`].
    pub parameters: Vec<Vec<Piece<T>>>,
    /// The memory from which all fields above except `parameters` are cut.
    of_batch: PassMemory,
    of_parameters: PassMemory,
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
            of_batch: PassMemory::default(),
            of_parameters: PassMemory::default(),
        };
        // SAFETY: every piece may be used at any time.
        unsafe {
            buffers.of_parameters.cut(|cutter| {
                let mut gradients = |index| {
                    network.trainable_of(index).map(|parameter| cutter.piece(parameter.count(), ALWAYS)).collect()
                };
                buffers.parameters = (0..layers).map(&mut gradients).collect();
            });
        }
        buffers
    }

    /// Allocates the memory for batches of `batch` examples; reuses the memory of earlier batches where it is large
    /// enough. The layers of a chain are computed at the same time.
    pub fn fit(&mut self, network: &Network, plan: &MemoryPlan, chains: &[Chain], batch: usize) {
        let layers = network.layers.len();
        let Self { outputs, winners, moments, slots, .. } = self;
        (*outputs, *winners, *moments, *slots) =
            (nothing(layers), nothing(layers), nothing(layers), nothing(plan.slots.len()));
        let backward = |chain: &Chain| Span {
            first: plan.backward(*chain.layers.end()),
            last: plan.backward(*chain.layers.start()),
        };
        let chains: Vec<Span> = chains.iter().map(backward).collect();
        let whole = |span: Span| {
            let touched = chains.iter().filter(|chain| chain.overlaps(span));
            touched
                .fold(span, |span, chain| Span { first: span.first.min(chain.first), last: span.last.max(chain.last) })
        };
        let cut = |cutter: &mut Cutter| {
            for (index, layer) in network.layers.iter().enumerate().skip(1) {
                let (values, span) = (batch * layer.output.count(), whole(plan.span(index)));
                if plan.outputs[index].holder == index {
                    outputs[index] = cutter.piece(values, span);
                }
                match layer.operation {
                    Operation::MaxPool2d(_) => winners[index] = cutter.piece(values, span),
                    Operation::BatchNorm(_) => moments[index] = cutter.piece(layer.output.channels(), span),
                    _ => {}
                }
            }
            for (piece, slot) in slots.iter_mut().zip(&plan.slots) {
                *piece = cutter.piece(batch * slot.scalars, whole(slot.span));
            }
        };
        // SAFETY: a pass uses an output from its layer's forward pass to its layer's backward pass, a slot while its
        // gradient lives, and all pieces of a chain together; any bits are a value of each type.
        unsafe { self.of_batch.cut(cut) };
    }

    /// Copies or adds `len` elements of one slot to another.
    pub fn apply(&mut self, one: Move, len: usize) {
        let mut target = std::mem::take(&mut self.slots[one.to]);
        let source = &self.slots[one.from][..len];
        match one.adds {
            false => target[..len].copy_from_slice(source),
            true => add_to(Rectifier::Identity, source, &mut target[..len]),
        }
        self.slots[one.to] = target;
    }

    /// Bytes that later batches of the same network reuse.
    pub fn bytes(&self) -> u64 {
        self.of_batch.bytes() + self.of_parameters.bytes()
    }
}

fn nothing<N>(count: usize) -> Vec<Piece<N>> {
    std::iter::repeat_with(Piece::default).take(count).collect()
}
