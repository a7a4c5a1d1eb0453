//! Chains of neighbouring layers that process each channel separately: batch norms and a depthwise convolution. Some
//! channels at a time go through all layers of a chain. Then a layer reads what the one before wrote from the
//! second-level cache instead of from memory, and the threads synchronise once per chain.

use std::mem::take;
use std::ops::{Range, RangeInclusive};

use super::arena::Piece;
use super::kernel::Kernel;
use super::memory_plan::MemoryPlan;
use super::{Pass, Task};
use crate::engine::cpu::op::batch_norm::{self, Input, Moments, Norm};
use crate::engine::cpu::op::conv2d::depthwise;
use crate::engine::cpu::op::filters::Filters;
use crate::engine::cpu::op::parallel::{ChannelPlanes, Shared, for_each_channels};
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
    channels: usize,
    /// Scalars per channel that should stay in the cache: twice those of the largest output, once for what is read and
    /// once for what is written.
    values: usize,
    /// The most scalars of a channel that one member passes to the next.
    room: usize,
}

impl Chain {
    /// All chains of more than one member.
    pub fn all(network: &Network, plan: &MemoryPlan, kernels: &[Kernel]) -> Vec<Self> {
        let readers = network.readers();
        let mut chains: Vec<Self> = Vec::new();
        for index in 1..network.layers.len() {
            let continued = chains.last_mut().filter(|chain| {
                let last = *chain.layers.end();
                network.layers[index].sources == [last] && readers[last] == 1
            });
            let rectifies = |chain: &Self| {
                let writer = plan.outputs[index].writer;
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
                    let (layers, members) = (index..=index, vec![index]);
                    chains.push(Self { layers, members, passing: Vec::new(), channels: 0, values: 0, room: 0 });
                }
                _ => {}
            }
        }
        chains.retain(|chain| chain.members.len() > 1);
        chains.iter_mut().for_each(|chain| chain.measure(kernels));
        chains
    }

    /// Decides what is passed on, and how much memory a channel takes.
    fn measure(&mut self, kernels: &[Kernel]) {
        let passes = |pair: &[usize]| match (kernels[pair[0]], kernels[pair[1]]) {
            (Kernel::Normalisation(planes, _), Kernel::Convolution(next)) => {
                batch_norm::writes_anywhere(planes) && next.by_channels().is_some_and(depthwise::reads_anywhere)
            }
            _ => false,
        };
        self.passing = self.members.windows(2).map(passes).chain([false]).collect();
        for (&index, passing) in self.members.iter().zip(&self.passing) {
            if let Kernel::Normalisation(planes, _) = kernels[index] {
                self.channels = planes.channels;
                self.values = self.values.max(2 * planes.values());
                self.room = self.room.max(if *passing { planes.values() } else { 0 });
            }
        }
    }
}

impl Chain {
    /// Runs `work` for all channels, some neighbours at a time: where they lie in a whole tensor, and room for what a
    /// member passes on, with their place in it.
    fn for_each_channels<T: Scalar>(
        &self,
        work: impl Fn(Range<usize>, &ChannelPlanes, (&Shared<'_, T>, &ChannelPlanes)) + Sync,
    ) {
        for_each_channels(self.channels, self.values, |channels| {
            let whole = &ChannelPlanes { all: self.channels, channels: channels.clone() };
            let mut room = Scratch::new(self.room * channels.len());
            work(channels, whole, (&Shared::new(&mut room), &whole.alone()));
        });
    }
}

fn is_by_channels(network: &Network, kernels: &[Kernel], index: usize) -> bool {
    match (kernels[index], &network.layers[index].operation) {
        (Kernel::Normalisation(planes, _), _) => planes.size > 1,
        (Kernel::Convolution(convolution), Operation::Conv2d(conv)) => {
            convolution.by_channels().is_some() && !conv.bias
        }
        _ => false,
    }
}

/// What the backward pass of a layer in a chain reads and writes besides its input.
struct Differentials<'a, T> {
    filters: Filters<'a, T>,
    /// The moments of a batch norm.
    moments: &'a [Moments],
    /// The gradient of its output; overwritten by the gradient of its input if there is no `dx`.
    dy: &'a Shared<'a, T>,
    dx: Option<&'a Shared<'a, T>>,
    /// The gradients of its parameters.
    parameters: List<Shared<'a, T>>,
}

impl Kernel {
    /// # Safety
    /// No other task may write to these channels of `x` meanwhile, or use those of `y` and `made`.
    unsafe fn forward_channels<T: Scalar>(
        &self,
        channels: Range<usize>,
        x: (&Shared<'_, T>, &ChannelPlanes),
        filters: Filters<'_, T>,
        y: (&Shared<'_, T>, &ChannelPlanes),
        made: &Shared<'_, Moments>,
    ) {
        // SAFETY: by the caller's promise.
        unsafe {
            match *self {
                Self::Normalisation(planes, p) => {
                    batch_norm::forward_channels(&Input { planes, channels, x: x.0 }, Norm::new(filters, p), y, made);
                }
                Self::Convolution(convolution) => {
                    let Some(g) = convolution.by_channels() else { return };
                    depthwise::forward_channels(g, channels, x, filters, y.0);
                }
                _ => {}
            }
        }
    }

    /// Computes the output of a batch norm again, with the moments in `of`.
    ///
    /// # Safety
    /// No other task may write to these channels of `x` meanwhile, or use those of `y`.
    unsafe fn again<T: Scalar>(
        &self,
        channels: Range<usize>,
        x: &Shared<'_, T>,
        of: &Differentials<'_, T>,
        y: (&Shared<'_, T>, &ChannelPlanes),
    ) {
        if let Self::Normalisation(planes, p) = *self {
            let (moments, norm) = (&of.moments[channels.clone()], Norm::new(of.filters, p));
            // SAFETY: by the caller's promise.
            unsafe { batch_norm::normalise_channels(&Input { planes, channels, x }, norm, moments, y) };
        }
    }

    /// # Safety
    /// No other task may write to these channels of `x` meanwhile, or use those of the gradients in `of`.
    unsafe fn backward_channels<T: Scalar>(
        &self,
        channels: Range<usize>,
        x: (&Shared<'_, T>, &ChannelPlanes),
        of: &Differentials<'_, T>,
    ) {
        let Differentials { filters, moments, dy, dx, ref parameters } = *of;
        // SAFETY: by the caller's promise.
        unsafe {
            match (*self, &parameters[..]) {
                (Self::Normalisation(planes, p), [dgamma, dbeta]) => {
                    let into = batch_norm::Gradients { dy, dgamma, dbeta };
                    let input = &Input { planes, channels, x: x.0 };
                    batch_norm::backward_channels(input, Norm::new(filters, p), moments, into);
                }
                (Self::Convolution(convolution), parameters) => {
                    let Some(g) = convolution.by_channels() else { return };
                    let slopes = depthwise::Slopes { dy, dx, dw: parameters.first() };
                    depthwise::backward_channels(g, channels, x, filters.weight, slopes);
                }
                _ => {}
            }
        }
    }
}

impl<T: Scalar> Pass<T> {
    /// The forward pass of a training step through a chain.
    pub(super) fn chain_forward(&mut self, task: Task<'_, T>, chain: &Chain) {
        let (mut outputs, mut moments) = (take(&mut self.buffers.outputs), take(&mut self.buffers.moments));
        self.write_chain(task, chain, (&mut outputs, &mut moments));
        (self.buffers.outputs, self.buffers.moments) = (outputs, moments);
    }

    fn write_chain(
        &self,
        task: Task<'_, T>,
        chain: &Chain,
        (outputs, moments): (&mut [Piece<T>], &mut [Piece<Moments>]),
    ) {
        let filters: List<_> = chain.members.iter().map(|&index| self.filters(task, index)).collect();
        let outputs: List<_> = outputs.iter_mut().map(|output| Shared::new(output)).collect();
        let moments: List<_> = moments.iter_mut().map(|moments| Shared::new(moments)).collect();
        let inputs = Shared::reading(task.inputs);
        let source = match self.plan.outputs[task.network.layers[*chain.layers.start()].sources[0]].holder {
            0 => &inputs,
            holder => &outputs[holder],
        };
        chain.for_each_channels(|channels, whole, passed_on| {
            let mut x = (source, whole);
            for ((filters, &index), passing) in filters.iter().zip(&chain.members).zip(&chain.passing) {
                let y = if *passing { passed_on } else { (&outputs[index], whole) };
                // SAFETY: no two calls have a channel in common.
                unsafe { self.kernels[index].forward_channels(channels.clone(), x, *filters, y, &moments[index]) };
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
        // Other gradients may lie in the memory that is read here.
        let routes = || chain.members.iter().filter_map(|&index| self.plan.routes[index].as_ref());
        let used = |slot| routes().any(|route| route.own == slot || route.fresh == Some(slot));
        let slots = slots.iter_mut().enumerate();
        let slots: List<_> = slots.map(|(at, slot)| Shared::new(if used(at) { slot } else { &mut [] })).collect();
        let source = |index: usize| Shared::reading(self.output(task.inputs, task.network.layers[index].sources[0]));
        let sources: List<_> = chain.members.iter().map(|&index| source(index)).collect();
        let of_members = parameters.iter_mut().enumerate().filter(|(index, _)| chain.members.contains(index));
        let differentials = of_members.filter_map(|(index, parameters)| {
            let route = self.plan.routes[index].as_ref()?;
            Some(Differentials {
                filters: self.filters(task, index),
                moments: &self.buffers.moments[index],
                dy: &slots[route.own],
                dx: route.fresh.map(|fresh| &slots[fresh]),
                parameters: parameters.iter_mut().map(|gradient| Shared::new(gradient)).collect(),
            })
        });
        let differentials: List<_> = differentials.collect();
        let kernel = |at: usize| &self.kernels[chain.members[at]];
        chain.for_each_channels(|channels, whole, passed_on| {
            for (at, of) in differentials.iter().enumerate().rev() {
                let mut x = (&sources[at], whole);
                if let Some(before) = at.checked_sub(1).filter(|before| chain.passing[*before]) {
                    x = passed_on;
                    // SAFETY: no two calls have a channel in common.
                    unsafe { kernel(before).again(channels.clone(), &sources[before], &differentials[before], x) };
                }
                // SAFETY: as above.
                unsafe { kernel(at).backward_channels(channels.clone(), x, of) };
            }
        });
    }
}
