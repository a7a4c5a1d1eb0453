//! The forward pass, layer by layer.

use super::kernel::Kernel;
use super::{Pass, Task};
use crate::engine::cpu::loss::{loss, loss_gradient};
use crate::engine::cpu::op::batch_norm::RunningStats;
use crate::engine::cpu::op::batch_norm::cpu::{Moments, Norm};
use crate::engine::cpu::op::dropout;
use crate::engine::cpu::op::filters::Filters;
use crate::engine::cpu::op::scalar::Scalar;
use crate::engine::cpu::op::{activation, batch_norm, dense, global_average_pool, max_pool2d};
use crate::engine::dropout::Mask;
use crate::error::{Error, Result};

impl<T: Scalar> Pass<T> {
    /// Writes the output of a layer.
    pub(super) fn layer_forward(&mut self, task: Task<'_, T>, index: usize) -> Result<()> {
        let holder = self.plan.layers[index].output.holder;
        let mut y = std::mem::take(&mut self.buffers.outputs[holder]);
        let done = self.write(task, index, &mut y);
        self.buffers.outputs[holder] = y;
        done
    }

    fn write(&mut self, task: Task<'_, T>, index: usize, y: &mut [T]) -> Result<()> {
        let layer = &task.network.layers[index];
        let rectifier = self.plan.layers[index].output.rectifier;
        if matches!(self.kernels[index], Kernel::Normalisation(..)) {
            let mut moments = std::mem::take(&mut self.buffers.moments[index]);
            let done = self.normalise(task, index, y, &mut moments);
            self.buffers.moments[index] = moments;
            return done;
        }
        let mut winners = std::mem::take(&mut self.buffers.winners[index]);
        let filters = || {
            let weight = task.parameters.required(index, "weight")?;
            let bias = task.parameters.get(index, "bias").filter(|_| !self.idle_biases[index]);
            Ok::<_, Error>(Filters { weight, bias, rectifier })
        };
        let source = |at: usize| self.output(task.inputs, layer.sources[at]);
        match self.kernels[index] {
            Kernel::Input | Kernel::View | Kernel::Normalisation(..) => {}
            Kernel::Convolution(convolution) => convolution.forward(source(0), filters()?, y),
            Kernel::Dense(sizes) => dense::forward(sizes, source(0), filters()?, y),
            Kernel::Rectifier => activation::forward(rectifier, source(0), y),
            Kernel::MaxPool(windows) => max_pool2d::forward(&windows, source(0), y, &mut winners),
            Kernel::Average(pixels) => global_average_pool::forward(source(0), pixels, y),
            Kernel::Dropout(rate) => {
                y.copy_from_slice(source(0));
                if let Some(masks) = task.masks {
                    dropout::apply(Mask::new(rate, masks.key(index)), y);
                }
            }
            Kernel::Sum => {
                match layer.sources.iter().position(|&source| source == self.plan.layers[index].output.holder) {
                    Some(at) => activation::add_to(rectifier, source(1 - at), y),
                    None => activation::sum(rectifier, source(0), source(1), y),
                }
            }
        }
        self.buffers.winners[index] = winners;
        Ok(())
    }

    /// A batch norm; its moments are written to `moments`.
    fn normalise(&self, task: Task<'_, T>, index: usize, y: &mut [T], moments: &mut [Moments]) -> Result<()> {
        let Kernel::Normalisation(planes, p) = self.kernels[index] else { return Ok(()) };
        let x = self.output(task.inputs, task.network.layers[index].sources[0]);
        let rectifier = self.plan.layers[index].output.rectifier;
        let stats = task.parameters.stats(index);
        let known = stats.filter(|_| task.masks.is_none()).map(RunningStats::moments);
        let (gamma, beta) = (task.parameters.required(index, "gamma")?, task.parameters.required(index, "beta")?);
        let norm = Norm { gamma, beta, epsilon: p.epsilon, rectifier };
        match known {
            Some(known) => {
                moments.copy_from_slice(&known);
                batch_norm::cpu::normalise(planes, x, norm, moments, y);
            }
            None => batch_norm::cpu::forward(planes, x, norm, y, moments),
        }
        if let (Some(stats), Some(_)) = (stats, task.masks) {
            stats.update(moments, planes.values(), p.momentum);
        }
        Ok(())
    }

    pub(super) fn loss(&self, task: Task<'_, T>) -> T {
        let output = self.output(task.inputs, task.network.layers.len() - 1);
        loss(task.loss, output, task.targets, self.batch)
    }

    pub(super) fn loss_gradient(&mut self, task: Task<'_, T>) {
        let last = task.network.layers.len() - 1;
        let Some(own) = self.plan.layers[last].route.as_ref().map(|route| route.own) else { return };
        let mut slot = std::mem::take(&mut self.buffers.slots[own]);
        let output = self.output(task.inputs, last);
        loss_gradient(task.loss, output, task.targets, self.batch, &mut slot[..output.len()]);
        self.buffers.slots[own] = slot;
    }
}
