//! The forward pass, layer by layer.

use std::mem::take;

use super::kernel::Kernel;
use super::{Pass, Task};
use crate::engine::cpu::loss::{loss, loss_gradient};
use crate::engine::cpu::op::batch_norm::cpu::{Moments, Norm, Planes};
use crate::engine::cpu::op::dropout;
use crate::engine::cpu::op::filters::Filters;
use crate::engine::cpu::op::scalar::Scalar;
use crate::engine::cpu::op::{activation, batch_norm, dense, global_average_pool, max_pool2d};
use crate::network::BatchNorm;

impl<T: Scalar> Pass<T> {
    /// Writes the output of a layer.
    pub(super) fn layer_forward(&mut self, task: Task<'_, T>, index: usize) {
        let holder = self.plan.layers[index].output.holder;
        let mut y = take(&mut self.buffers.outputs[holder]);
        self.write(task, index, &mut y);
        self.buffers.outputs[holder] = y;
    }

    fn write(&mut self, task: Task<'_, T>, index: usize, y: &mut [T]) {
        let layer = &task.network.layers[index];
        let rectifier = self.plan.layers[index].output.rectifier;
        let mut moments = take(&mut self.buffers.moments[index]);
        let mut winners = take(&mut self.buffers.winners[index]);
        let filters = || {
            let tensors = task.parameters.of_layer(index);
            let bias = tensors.get(1).filter(|_| !self.idle_biases[index]).map(Vec::as_slice);
            Filters { weight: &tensors[0], bias, rectifier }
        };
        let source = |at: usize| self.output(task.inputs, layer.sources[at]);
        match self.kernels[index] {
            Kernel::Input | Kernel::View => {}
            Kernel::Normalisation(planes, p) => self.normalise(task, index, (planes, p), y, &mut moments),
            Kernel::Convolution(convolution) => convolution.forward(source(0), filters(), y),
            Kernel::Dense(sizes) => dense::forward(sizes, source(0), filters(), y),
            Kernel::Rectifier => activation::forward(rectifier, source(0), y),
            Kernel::MaxPool(windows) => max_pool2d::forward(&windows, source(0), y, &mut winners),
            Kernel::Average(pixels) => global_average_pool::forward(source(0), pixels, y),
            Kernel::Dropout(rate) => {
                y.copy_from_slice(source(0));
                if let Some(masks) = task.masks {
                    dropout::apply(masks.of(index, rate), y);
                }
            }
            Kernel::Sum => {
                match layer.sources.iter().position(|&source| source == self.plan.layers[index].output.holder) {
                    Some(at) => activation::add_to(rectifier, source(1 - at), y),
                    None => activation::sum(rectifier, source(0), source(1), y),
                }
            }
        }
        self.buffers.moments[index] = moments;
        self.buffers.winners[index] = winners;
    }

    /// A batch norm with its parameters.
    pub(super) fn norm<'a>(&self, task: Task<'a, T>, index: usize, p: BatchNorm) -> Norm<'a, T> {
        let [gamma, beta] = [0, 1].map(|number| &*task.parameters.of_layer(index)[number]);
        Norm { gamma, beta, epsilon: p.epsilon, rectifier: self.plan.layers[index].output.rectifier }
    }

    /// A batch norm; its moments are written to `moments`.
    fn normalise(
        &self,
        task: Task<'_, T>,
        index: usize,
        (planes, p): (Planes, BatchNorm),
        y: &mut [T],
        moments: &mut [Moments],
    ) {
        let x = self.output(task.inputs, task.network.layers[index].sources[0]);
        let norm = self.norm(task, index, p);
        match (task.parameters.stats(index), task.masks) {
            (Some(stats), None) => {
                moments.copy_from_slice(&stats.moments());
                batch_norm::cpu::normalise(planes, x, norm, moments, y);
            }
            (stats, _) => {
                batch_norm::cpu::forward(planes, x, norm, y, moments);
                stats.into_iter().for_each(|stats| stats.update(moments, planes.values(), p.momentum));
            }
        }
    }

    pub(super) fn loss(&self, task: Task<'_, T>) -> T {
        let output = self.output(task.inputs, task.network.layers.len() - 1);
        loss(task.loss, output, task.targets, self.batch)
    }

    pub(super) fn loss_gradient(&mut self, task: Task<'_, T>) {
        let last = task.network.layers.len() - 1;
        let Some(own) = self.plan.layers[last].route.as_ref().map(|route| route.own) else { return };
        let mut slot = take(&mut self.buffers.slots[own]);
        let output = self.output(task.inputs, last);
        loss_gradient(task.loss, output, task.targets, self.batch, &mut slot[..output.len()]);
        self.buffers.slots[own] = slot;
    }
}
