//! The backward pass, layer by layer: from the gradient of the output to the gradients of the parameters and of the
//! source.

use std::mem::take;

use super::arena::Piece;
use super::kernel::Kernel;
use super::memory_plan::Route;
use super::{Pass, Task, Watch};
use crate::engine::cpu::op::conv2d::Gradients;
use crate::engine::cpu::op::dropout;
use crate::engine::cpu::op::scalar::Scalar;
use crate::engine::cpu::op::{activation, batch_norm, dense, global_average_pool, max_pool2d};
use crate::network::Direction;

/// The gradients that a layer's backward pass reads and writes.
struct Slopes<'a, T> {
    /// The gradient of its output; afterwards the gradient of its source, where that is computed in place.
    dy: &'a mut [T],
    /// The gradient of its source, where that is not computed in place.
    dx: Option<&'a mut [T]>,
    /// The gradients of its parameters.
    parameters: &'a mut [Piece<T>],
}

impl<T: Scalar> Pass<T> {
    pub(super) fn layer_backward(&mut self, task: Task<'_, T>, index: usize, route: &Route) {
        let len = |index: usize| self.batch * task.network.layers[index].output.count();
        let (dy_len, dx_len) = (len(index), len(task.network.layers[index].sources[0]));
        let mut dy = take(&mut self.buffers.slots[route.own]);
        let mut dx = route.fresh.map(|slot| take(&mut self.buffers.slots[slot]));
        let mut parameters = take(&mut self.buffers.parameters[index]);
        let slopes =
            Slopes { dy: &mut dy[..dy_len], dx: dx.as_mut().map(|dx| &mut dx[..dx_len]), parameters: &mut parameters };
        self.differentiate(task, index, slopes);
        self.buffers.parameters[index] = parameters;
        self.buffers.slots[route.own] = dy;
        if let (Some(slot), Some(dx)) = (route.fresh, dx) {
            self.buffers.slots[slot] = dx;
        }
    }

    fn differentiate(&self, task: Task<'_, T>, index: usize, slopes: Slopes<'_, T>) {
        let Slopes { dy, dx, parameters } = slopes;
        let x = self.output(task.inputs, task.network.layers[index].sources[0]);
        let weight = || &task.parameters.of_layer(index)[0];
        match self.kernels[index] {
            Kernel::Convolution(convolution) => {
                Watch::time(task.watch, index, Direction::BackwardWeights, || {
                    if let Some(db) = parameters.get_mut(1).filter(|_| !self.idle_biases[index]) {
                        convolution.bias_gradient(dy, db);
                    }
                });
                let into = Gradients { x: dx, weight: Some(&mut parameters[0]) };
                convolve_back(task, index, into, |into| convolution.backward(x, weight(), dy, into));
            }
            Kernel::Dense(sizes) => {
                Watch::time(task.watch, index, Direction::BackwardWeights, || {
                    if let Some(db) = parameters.get_mut(1).filter(|_| !self.idle_biases[index]) {
                        dense::bias_gradient(sizes, dy, db);
                    }
                    dense::weight_gradient(sizes, x, dy, &mut parameters[0]);
                });
                if let Some(dx) = dx {
                    let work = || dense::input_gradient(sizes, weight(), dy, dx);
                    Watch::time(task.watch, index, Direction::BackwardData, work);
                }
            }
            _ => Watch::time(task.watch, index, Direction::BackwardData, || {
                self.differentiate_the_rest(task, index, Slopes { dy, dx, parameters });
            }),
        }
    }

    /// Differentiates layers without weights, and batch norm, which computes all its gradients at once.
    fn differentiate_the_rest(&self, task: Task<'_, T>, index: usize, slopes: Slopes<'_, T>) {
        let Slopes { dy, dx, parameters } = slopes;
        let x = self.output(task.inputs, task.network.layers[index].sources[0]);
        match (self.kernels[index], dx) {
            (Kernel::Normalisation(planes, p), _) => {
                let [dgamma, dbeta] = parameters else { return };
                let (norm, moments) = (self.norm(task, index, p), &self.buffers.moments[index]);
                batch_norm::cpu::backward(planes, x, norm, moments, dy, [dgamma, dbeta]);
            }
            (Kernel::Rectifier, _) if self.is_rectified_batch_norm(index) => {}
            (Kernel::Rectifier, _) => {
                let rectifier = self.plan.layers[index].output.rectifier;
                activation::backward(rectifier, self.output(task.inputs, index), dy);
            }
            (Kernel::MaxPool(windows), Some(dx)) => {
                max_pool2d::backward(&windows, dy, &self.buffers.winners[index], dx);
            }
            (Kernel::Average(pixels), Some(dx)) => global_average_pool::backward(dy, pixels, dx),
            (Kernel::Dropout(rate), _) => {
                if let Some(masks) = task.masks {
                    dropout::apply(masks.of(index, rate), dy);
                }
            }
            _ => {}
        }
    }
}

impl<T> Pass<T> {
    /// Whether a batch norm applies this rectifier while writing its output, and then also differentiates it.
    fn is_rectified_batch_norm(&self, index: usize) -> bool {
        let writer = self.plan.layers[index].output.writer;
        writer != index && matches!(self.kernels[writer], Kernel::Normalisation(..))
    }
}

/// Computes both gradients of a convolution at once, so that kernels can share work, or one by one where each is timed.
fn convolve_back<T>(
    task: Task<'_, T>,
    index: usize,
    into: Gradients<'_, T>,
    mut backward: impl FnMut(Gradients<'_, T>),
) {
    if task.watch.is_none() {
        return backward(into);
    }
    let Gradients { x, weight } = into;
    for (direction, into) in [
        (Direction::BackwardWeights, Gradients { x: None, weight }),
        (Direction::BackwardData, Gradients { x, weight: None }),
    ] {
        if into.x.is_some() || into.weight.is_some() {
            Watch::time(task.watch, index, direction, || backward(into));
        }
    }
}
