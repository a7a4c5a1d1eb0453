//! Poolings and batch norms by a library's calls instead of our own kernels.

use super::Draft;
use super::gradient::Gradient;
use super::node::Node;
use crate::engine::cudnn::call::{Call, Slice};
use crate::engine::cudnn::replacement::{LibraryCall, Norm, NormTask, Pool, PoolTask, Taken};
use crate::error::{Error, Result};
use crate::network::{BatchNorm, Extent, Operation, Padding};

impl Draft<'_> {
    fn library(&mut self, call: LibraryCall) {
        self.replaces = Some(call.operator());
        self.call(Call::Library(call));
        self.replaces = None;
    }

    pub(super) fn pool_by_library(&mut self, node: &Node, x: Slice) -> Result<Slice> {
        let (pool, y) = (self.pool(node)?, self.node_output(node));
        self.library(LibraryCall::Pool(pool, PoolTask::Forward { x, y }));
        Ok(y)
    }

    pub(super) fn pool_backward_by_library(&mut self, node: &Node) -> Result<()> {
        let Some(Gradient { slice: dy, .. }) = self.gathered(node.output) else { return Ok(()) };
        let source = node.sources[0];
        if !self.trained[source] {
            return Ok(());
        }
        let (pool, x, y) = (self.pool(node)?, self.output(source)?, self.output(node.output)?);
        let dx = self.feature_maps_buffer("gradient of", source, pool.input);
        self.library(LibraryCall::Pool(pool, PoolTask::Backward { x, y, dy, dx }));
        self.deliver(source, Gradient::own(dx));
        Ok(())
    }

    fn pool(&self, node: &Node) -> Result<Pool> {
        let (element, input) = (self.element, self.maps(node.sources[0]));
        let output = self.maps(node.layer);
        match *self.operation(node) {
            Operation::MaxPool2d(pool) => {
                let Padding { top, bottom, left, right } = pool.padding;
                let along = |size: usize, window: usize, stride: usize, before: usize| {
                    (size + 2 * before - window) / stride + 1
                };
                let height = along(input.height, pool.kernel.height, pool.stride.height, top);
                let width = along(input.width, pool.kernel.width, pool.stride.width, left);
                if top != bottom || left != right || (height, width) != (output.height, output.width) {
                    return Err(Error::engine("cuDNN pads a pooling alike on opposite sides, and this one is not"));
                }
                let padding = Extent::new(top, left);
                Ok(Pool {
                    element,
                    taken: Taken::Maximum,
                    input,
                    output,
                    window: pool.kernel,
                    stride: pool.stride,
                    padding,
                })
            }
            Operation::GlobalAveragePool => {
                let window = Extent::new(input.height, input.width);
                let (stride, padding) = (Extent::square(1), Extent::square(0));
                Ok(Pool { element, taken: Taken::Mean, input, output, window, stride, padding })
            }
            _ => Err(Error::engine("no pooling")),
        }
    }

    pub(super) fn norm_by_library(&mut self, number: usize, node: &Node, norm: BatchNorm, x: Slice) -> Result<Slice> {
        let call = self.norm(node, norm);
        let channels = call.maps.channels;
        let [mean, inverse_deviation] = [0, 1].map(|_| self.buffer("batch statistics".to_owned(), 4 * channels));
        self.saved[number].moments = Some((mean, inverse_deviation));
        let (running_mean, running_variance) =
            self.running[node.layer].ok_or_else(|| Error::engine("no running statistics"))?;
        let (gamma, beta) = (self.parameter(node.layer, "gamma")?.0, self.parameter(node.layer, "beta")?.0);
        let y = self.node_output(node);
        let task = NormTask::Forward { x, gamma, beta, running_mean, running_variance, mean, inverse_deviation, y };
        self.library(LibraryCall::Norm(call, task));
        Ok(y)
    }

    pub(super) fn norm_backward_by_library(&mut self, number: usize, node: &Node) -> Result<()> {
        let Operation::BatchNorm(norm) = *self.operation(node) else { return Err(Error::engine("no batch norm")) };
        let Some(Gradient { slice: dy, .. }) = self.gathered(node.output) else { return Ok(()) };
        let (mean, inverse_deviation) =
            self.saved[number].moments.ok_or_else(|| Error::engine("no batch statistics"))?;
        let (gamma, dgamma) = self.parameter(node.layer, "gamma")?;
        let (_, dbeta) = self.parameter(node.layer, "beta")?;
        let source = node.sources[0];
        let (call, x) = (self.norm(node, norm), self.output(source)?);
        let dx = self.feature_maps_buffer("gradient of", source, call.maps);
        let task = NormTask::Backward { x, dy, gamma, mean, inverse_deviation, dgamma, dbeta, dx };
        self.library(LibraryCall::Norm(call, task));
        self.deliver(source, Gradient::own(dx));
        Ok(())
    }

    fn norm(&self, node: &Node, norm: BatchNorm) -> Norm {
        let (epsilon, momentum) = (norm.epsilon as f32, norm.momentum as f32);
        Norm { element: self.element, maps: self.maps(node.layer), epsilon, momentum }
    }
}
