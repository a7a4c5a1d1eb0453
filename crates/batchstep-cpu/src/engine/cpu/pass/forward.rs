//! The forward pass, layer by layer.

use std::mem::take;

use super::kernel::Kernel;
use super::{Pass, Task};
use crate::engine::cpu::loss::{loss, loss_gradient};
use crate::engine::cpu::op::batch_norm::Norm;
use crate::engine::cpu::op::filters::Filters;
use crate::engine::cpu::op::scalar::Scalar;
use crate::engine::cpu::op::{activation, batch_norm};
use crate::engine::cpu::parameters::Parameters;

impl<T: Scalar> Pass<T> {
    /// Writes the output of a layer.
    pub(super) fn layer_forward(&mut self, task: Task<'_, T>, index: usize) {
        let holder = self.plan.outputs[index].holder;
        let mut y = take(&mut self.buffers.outputs[holder]);
        self.write(task, index, &mut y);
        self.buffers.outputs[holder] = y;
    }

    fn write(&mut self, task: Task<'_, T>, index: usize, y: &mut [T]) {
        let (sources, kernel) = (&task.network.layers[index].sources, self.kernels[index]);
        let mut moments = take(&mut self.buffers.moments[index]);
        let mut winners = take(&mut self.buffers.winners[index]);
        let (filters, stats) = (self.filters(task, index), task.parameters.stats(index));
        let source = |at: usize| self.output(task.inputs, sources[at]);
        match (kernel, stats, task.masks) {
            (Kernel::Sum, ..) => match sources.iter().position(|&source| source == self.plan.outputs[index].holder) {
                Some(at) => activation::add_to(filters.rectifier, source(1 - at), y),
                None => activation::sum(filters.rectifier, source(0), source(1), y),
            },
            (Kernel::Normalisation(planes, p), Some(stats), None) => {
                moments.copy_from_slice(&stats.0);
                batch_norm::normalise(planes, source(0), Norm::new(filters, p), &moments, y);
            }
            _ => kernel.forward(source(0), filters, task.masks, y, (&mut moments, &mut winners)),
        }
        self.buffers.moments[index] = moments;
        self.buffers.winners[index] = winners;
    }

    /// Takes the moments of the batch into the running statistics, after [`Pass::forward`] and before [`Pass::backward`].
    pub fn update_stats(&self, parameters: &mut Parameters<T>) {
        for (index, kernel) in self.kernels.iter().enumerate() {
            if let (Kernel::Normalisation(planes, p), Some(stats)) = (kernel, parameters.stats_mut(index)) {
                stats.update(&self.buffers.moments[index], planes.values(), p.momentum);
            }
        }
    }

    /// The parameters of a layer, without a bias that a batch norm subtracts again, and what is done to its output.
    pub(super) fn filters<'a>(&self, task: Task<'a, T>, index: usize) -> Filters<'a, T> {
        let tensors = task.parameters.of_layer(index);
        let bias = tensors.get(1).filter(|_| !self.idle_biases[index]).map(Vec::as_slice);
        let rectifier = self.plan.outputs[index].rectifier;
        Filters { weight: tensors.first().map_or(&[], Vec::as_slice), bias, rectifier }
    }

    pub(super) fn loss(&self, task: Task<'_, T>) -> T {
        let output = self.output(task.inputs, task.network.layers.len() - 1);
        loss(task.loss, output, task.targets, self.batch)
    }

    pub(super) fn loss_gradient(&mut self, task: Task<'_, T>) {
        let last = task.network.layers.len() - 1;
        let Some(own) = self.plan.routes[last].as_ref().map(|route| route.own) else { return };
        let mut slot = take(&mut self.buffers.slots[own]);
        let output = self.output(task.inputs, last);
        loss_gradient(task.loss, output, task.targets, self.batch, &mut slot[..output.len()]);
        self.buffers.slots[own] = slot;
    }
}
