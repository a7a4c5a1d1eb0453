//! The backward pass, layer by layer: from the gradient of the output to the gradients of the parameters and of the
//! source.

use std::mem::take;

use super::arena::Piece;
use super::kernel::{Kernel, LayerSlopes};
use super::memory_plan::Route;
use super::{Pass, Task, Watch};
use crate::engine::cpu::op::scalar::Scalar;
use crate::network::Direction;

impl<T: Scalar> Pass<T> {
    pub(super) fn layer_backward(&mut self, task: Task<'_, T>, index: usize, route: &Route) {
        let len = |index: usize| self.batch * task.network.layers[index].output.count();
        let (dy_len, dx_len) = (len(index), len(task.network.layers[index].sources[0]));
        let mut dy = take(&mut self.buffers.slots[route.own]);
        let mut dx = route.fresh.map(|slot| take(&mut self.buffers.slots[slot]));
        let mut parameters = take(&mut self.buffers.parameters[index]);
        let dx_of_source = dx.as_mut().map(|dx| &mut dx[..dx_len]);
        self.differentiate(
            task,
            index,
            LayerSlopes { dy: &mut dy[..dy_len], dx: dx_of_source, parameters: &mut parameters },
        );
        self.buffers.parameters[index] = parameters;
        self.buffers.slots[route.own] = dy;
        if let (Some(slot), Some(dx)) = (route.fresh, dx) {
            self.buffers.slots[slot] = dx;
        }
    }

    /// Computes all gradients of a layer at once, so that kernels can share work, or one by one where each is timed.
    fn differentiate(&self, task: Task<'_, T>, index: usize, slopes: LayerSlopes<'_, T, Piece<T>>) {
        let LayerSlopes { dy, dx, mut parameters } = slopes;
        if self.idle_biases[index] {
            parameters = &mut parameters[..1];
        }
        let (kernel, filters) = (self.kernels[index], self.filters(task, index));
        let [x, y] = [task.network.layers[index].sources[0], index].map(|layer| self.output(task.inputs, layer));
        let kept = (&*self.buffers.moments[index], &*self.buffers.winners[index]);
        let backward = |direction, slopes: LayerSlopes<'_, T, Piece<T>>| {
            Watch::time(task.watch, index, direction, || {
                if !self.is_rectified_batch_norm(index) {
                    kernel.backward((x, y), filters, task.masks, slopes, kept);
                }
            });
        };
        let has_weights = matches!(kernel, Kernel::Convolution(_) | Kernel::Dense(_));
        if task.watch.is_none() || !has_weights {
            return backward(Direction::BackwardData, LayerSlopes { dy, dx, parameters });
        }
        backward(Direction::BackwardWeights, LayerSlopes { dy: &mut *dy, dx: None, parameters });
        if dx.is_some() {
            backward(Direction::BackwardData, LayerSlopes { dy, dx, parameters: &mut [] });
        }
    }

    /// Whether a batch norm applies this rectifier while writing its output, and then also differentiates it.
    fn is_rectified_batch_norm(&self, index: usize) -> bool {
        let writer = self.plan.outputs[index].writer;
        writer != index && matches!(self.kernels[writer], Kernel::Normalisation(..))
    }
}
