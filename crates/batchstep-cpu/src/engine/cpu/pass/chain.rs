//! Chains of neighbouring layers that process each channel separately: batch norms and a depthwise convolution. Some
//! channels at a time go through all layers of a chain. Then a layer reads what the one before wrote from the
//! second-level cache instead of from memory, and the threads synchronise once per chain.

use std::mem::take;
use std::ops::{Range, RangeInclusive};

use super::arena::Piece;
use super::kernel::Kernel;
use super::memory_plan::MemoryPlan;
use super::{Pass, Task};
use crate::engine::cpu::op::batch_norm::cpu::{self as batch_norm, Moments, Norm, Planes};
use crate::engine::cpu::op::conv2d::{Convolution, Slopes};
use crate::engine::cpu::op::filters::Filters;
use crate::engine::cpu::op::parallel::{Shared, for_each_channels};
use crate::engine::cpu::op::place::ChannelPlanes;
use crate::engine::cpu::op::scalar::Scalar;
use crate::engine::cpu::op::scratch::{List, Scratch};
use crate::network::{Network, Operation};

/// Such layers, where no other layer reads what they pass on.
#[derive(Debug)]
pub struct Chain {
    /// The layers from the first to the last, including rectifiers that a batch norm applies.
    pub layers: RangeInclusive<usize>,
    /// The layers that compute.
    members: Vec<usize>,
    /// For each member: whether what it passes on is kept only for the current channels and computed again in the
    /// backward pass. Computing a batch norm's output from its input, which the backward pass reads anyway, takes less
    /// time than writing and reading it.
    pub(super) passing: Vec<bool>,
}

impl Chain {
    /// All chains of more than one member.
    pub fn all(network: &Network, plan: &MemoryPlan, kernels: &[Kernel]) -> Vec<Self> {
        let mut readers = vec![0; network.layers.len()];
        network.layers.iter().flat_map(|layer| &layer.sources).for_each(|&source| readers[source] += 1);
        let mut chains: Vec<Self> = Vec::new();
        for index in 1..network.layers.len() {
            let continued = chains.last_mut().filter(|chain| {
                let last = *chain.layers.end();
                network.layers[index].sources == [last] && readers[last] == 1
            });
            let rectifies = |chain: &Self| {
                let writer = plan.layers[index].output.writer;
                chain.members.last() == Some(&writer) && matches!(kernels[writer], Kernel::Normalisation(..))
            };
            let is_convolution = |index: usize| matches!(kernels[index], Kernel::Convolution(_));
            match continued {
                Some(chain) if rectifies(chain) => chain.layers = *chain.layers.start()..=index,
                // The gradients of two convolutions could alternate in one slot; a channel would then have two places
                // in it.
                Some(chain)
                    if is_by_channels(network, kernels, index)
                        && !(is_convolution(index) && chain.members.iter().any(|&member| is_convolution(member))) =>
                {
                    chain.layers = *chain.layers.start()..=index;
                    chain.members.push(index);
                }
                _ if is_by_channels(network, kernels, index) => {
                    chains.push(Self { layers: index..=index, members: vec![index], passing: Vec::new() });
                }
                _ => {}
            }
        }
        chains.retain(|chain| chain.members.len() > 1);
        for chain in &mut chains {
            let passes = |pair: &[usize]| match (kernels[pair[0]], kernels[pair[1]]) {
                (Kernel::Normalisation(planes, _), Kernel::Convolution(next)) => {
                    batch_norm::writes_anywhere(planes) && next.reads_anywhere()
                }
                _ => false,
            };
            chain.passing = chain.members.windows(2).map(passes).chain([false]).collect();
        }
        chains
    }
}

fn is_by_channels(network: &Network, kernels: &[Kernel], index: usize) -> bool {
    match (kernels[index], &network.layers[index].operation) {
        (Kernel::Normalisation(planes, _), _) => planes.size > 1,
        (Kernel::Convolution(convolution), Operation::Conv2d(conv)) => convolution.is_by_channels() && !conv.bias,
        _ => false,
    }
}

/// A layer of a chain with its parameters.
enum Member<'a, T> {
    Norm(Planes, Norm<'a, T>),
    Depthwise(Convolution, Filters<'a, T>),
}

impl<T: Scalar> Member<'_, T> {
    /// # Safety
    /// No other task may write to these channels of `x` meanwhile, or use those of `y` and `made`.
    unsafe fn forward(
        &self,
        channels: Range<usize>,
        x: (&Shared<'_, T>, &ChannelPlanes),
        y: (&Shared<'_, T>, &ChannelPlanes),
        made: &Shared<'_, Moments>,
    ) {
        // SAFETY: by the caller's promise.
        unsafe {
            match self {
                Self::Norm(planes, norm) => batch_norm::forward_channels(*planes, channels, x.0, *norm, y, made),
                Self::Depthwise(convolution, filters) => convolution.forward_channels(channels, x, *filters, y.0),
            }
        }
    }

    /// The scalars of one channel of its input.
    fn values(&self) -> usize {
        match self {
            Self::Norm(planes, _) => planes.values(),
            Self::Depthwise(..) => 0,
        }
    }

    /// Computes the output of a batch norm again, with the moments in `of`.
    ///
    /// # Safety
    /// No other task may write to these channels of `x` meanwhile, or use those of `y`.
    unsafe fn again(
        &self,
        channels: Range<usize>,
        x: &Shared<'_, T>,
        of: &Differentials<'_, T>,
        y: (&Shared<'_, T>, &ChannelPlanes),
    ) {
        if let Self::Norm(planes, norm) = self {
            let moments = &of.moments[channels.clone()];
            // SAFETY: by the caller's promise.
            unsafe { batch_norm::normalise_channels(*planes, channels, x, *norm, moments, y) };
        }
    }

    /// # Safety
    /// No other task may write to these channels of `x` meanwhile, or use those of the gradients in `of`.
    unsafe fn backward(&self, channels: Range<usize>, x: (&Shared<'_, T>, &ChannelPlanes), of: &Differentials<'_, T>) {
        let Differentials { moments, dy, dx, parameters } = of;
        // SAFETY: by the caller's promise.
        unsafe {
            match (self, &parameters[..]) {
                (Self::Norm(planes, norm), [dgamma, dbeta]) => {
                    let into = batch_norm::Gradients { dy, dgamma, dbeta };
                    batch_norm::backward_channels(*planes, channels, x.0, *norm, moments, into);
                }
                (Self::Depthwise(convolution, filters), parameters) => {
                    let slopes = Slopes { dy, dx: *dx, dw: parameters.first() };
                    convolution.backward_channels(channels, x, filters.weight, slopes);
                }
                _ => {}
            }
        }
    }
}

/// The most scalars of a channel that one member passes to the next.
fn room<T: Scalar>(members: &[Member<'_, T>], chain: &Chain) -> usize {
    let passing = members.iter().zip(&chain.passing).filter(|(_, passing)| **passing);
    passing.map(|(member, _)| member.values()).max().unwrap_or(0)
}

/// What the backward pass of a layer in a chain reads and writes besides its input.
struct Differentials<'a, T> {
    /// The moments of a batch norm.
    moments: &'a [Moments],
    /// The gradient of its output; overwritten by the gradient of its input if there is no `dx`.
    dy: &'a Shared<'a, T>,
    dx: Option<&'a Shared<'a, T>>,
    /// The gradients of its parameters.
    parameters: List<Shared<'a, T>>,
}

impl<T: Scalar> Pass<T> {
    /// The forward pass of a training step through a chain.
    pub(super) fn chain_forward(&mut self, task: Task<'_, T>, chain: &Chain) {
        let (mut outputs, mut moments) = (take(&mut self.buffers.outputs), take(&mut self.buffers.moments));
        self.write_chain(task, chain, (&mut outputs, &mut moments));
        (self.buffers.outputs, self.buffers.moments) = (outputs, moments);
        chain.members.iter().for_each(|&index| self.update_stats(task, index));
    }

    fn write_chain(
        &self,
        task: Task<'_, T>,
        chain: &Chain,
        (outputs, moments): (&mut [Piece<T>], &mut [Piece<Moments>]),
    ) {
        let members = self.members(task, chain);
        let outputs: List<_> = outputs.iter_mut().map(|output| Shared::new(output)).collect();
        let moments: List<_> = moments.iter_mut().map(|moments| Shared::new(moments)).collect();
        let inputs = Shared::reading(task.inputs);
        let room = room(&members, chain);
        let source = match self.plan.layers[task.network.layers[*chain.layers.start()].sources[0]].output.holder {
            0 => &inputs,
            holder => &outputs[holder],
        };
        for_each_channels(self.channels(chain), self.values(task, chain), |channels| {
            let whole = ChannelPlanes { all: self.channels(chain), channels: channels.clone() };
            let alone = whole.alone();
            let mut room = Scratch::new(room * channels.len());
            let room = Shared::new(&mut room);
            let mut x = (source, &whole);
            for ((member, &index), passing) in members.iter().zip(&chain.members).zip(&chain.passing) {
                let y = if *passing { (&room, &alone) } else { (&outputs[index], &whole) };
                // SAFETY: no two calls have a channel in common.
                unsafe { member.forward(channels.clone(), x, y, &moments[index]) };
                x = y;
            }
        });
    }

    /// The backward pass through a chain.
    pub(super) fn chain_backward(&mut self, task: Task<'_, T>, chain: &Chain) {
        let (mut slots, mut parameters) = (take(&mut self.buffers.slots), take(&mut self.buffers.parameters));
        self.differentiate_chain(task, chain, (&mut slots, &mut parameters));
        (self.buffers.slots, self.buffers.parameters) = (slots, parameters);
    }

    fn differentiate_chain(
        &self,
        task: Task<'_, T>,
        chain: &Chain,
        (slots, parameters): (&mut [Piece<T>], &mut [Vec<Piece<T>>]),
    ) {
        let members = self.members(task, chain);
        // Other gradients may lie in the memory that is read here.
        let routes = || chain.members.iter().filter_map(|&index| self.plan.layers[index].route.as_ref());
        let used = |slot| routes().any(|route| route.own == slot || route.fresh == Some(slot));
        let slots = slots.iter_mut().enumerate();
        let slots: List<_> = slots.map(|(at, slot)| Shared::new(if used(at) { slot } else { &mut [] })).collect();
        let source = |index: usize| Shared::reading(self.output(task.inputs, task.network.layers[index].sources[0]));
        let sources: List<_> = chain.members.iter().map(|&index| source(index)).collect();
        let room = room(&members, chain);
        let of_members = parameters.iter_mut().enumerate().filter(|(index, _)| chain.members.contains(index));
        let differentials = of_members.filter_map(|(index, parameters)| {
            let route = self.plan.layers[index].route.as_ref()?;
            Some(Differentials {
                moments: &self.buffers.moments[index],
                dy: &slots[route.own],
                dx: route.fresh.map(|fresh| &slots[fresh]),
                parameters: parameters.iter_mut().map(|gradient| Shared::new(gradient)).collect(),
            })
        });
        let differentials: List<_> = differentials.collect();
        for_each_channels(self.channels(chain), self.values(task, chain), |channels| {
            let whole = ChannelPlanes { all: self.channels(chain), channels: channels.clone() };
            let alone = whole.alone();
            let mut room = Scratch::new(room * channels.len());
            let room = Shared::new(&mut room);
            for at in (0..members.len()).rev() {
                let mut x = (&sources[at], &whole);
                if let Some(before) = at.checked_sub(1).filter(|before| chain.passing[*before]) {
                    x = (&room, &alone);
                    // SAFETY: no two calls have a channel in common.
                    unsafe { members[before].again(channels.clone(), &sources[before], &differentials[before], x) };
                }
                // SAFETY: as above.
                unsafe { members[at].backward(channels.clone(), x, &differentials[at]) };
            }
        });
    }

    /// The layers with their parameters.
    fn members<'a>(&self, task: Task<'a, T>, chain: &Chain) -> List<Member<'a, T>> {
        let member = |&index: &usize| match (self.kernels[index], self.filters(task, index)) {
            (Kernel::Normalisation(planes, p), filters) => Some(Member::Norm(planes, Norm::new(filters, p))),
            (Kernel::Convolution(convolution), filters) => {
                Some(Member::Depthwise(convolution, Filters::plain(filters.weight)))
            }
            _ => None,
        };
        chain.members.iter().filter_map(member).collect()
    }

    fn channels(&self, chain: &Chain) -> usize {
        let channels = chain.members.iter().filter_map(|&index| match self.kernels[index] {
            Kernel::Normalisation(planes, _) => Some(planes.channels),
            _ => None,
        });
        channels.max().unwrap_or(0)
    }

    /// Scalars per channel that should stay in the cache: twice those of the largest output, once for what is read and
    /// once for what is written.
    fn values(&self, task: Task<'_, T>, chain: &Chain) -> usize {
        let counts = chain.members.iter().map(|&index| task.network.layers[index].output.count());
        2 * self.batch * counts.max().unwrap_or(0) / self.channels(chain).max(1)
    }
}
