//! The calls of the backward pass.

use super::PlanBuilder;
use super::gradient::Gradient;
use super::node::{Bias, Node};
use super::parameters::is_view;
use super::part::Work;
use crate::engine::cudnn::call::{Call, Epilogue, Gemm, Product, Slice};
use crate::engine::cudnn::feature_maps::FeatureMaps;
use crate::engine::cudnn::op::batch_norm::{self, BatchNormBackward};
use crate::engine::cudnn::op::bias::BiasGradient;
use crate::engine::cudnn::op::rectifier::Rectifier;
use crate::engine::cudnn::op::{elementwise, global_average_pool};
use crate::error::{Error, Result};
use crate::network::{Direction, Operation};
use crate::settings::Layout;

impl PlanBuilder<'_> {
    /// Every node that has parameters or comes after one that has, from the last to the first.
    pub(super) fn backward(&mut self) -> Result<()> {
        self.phase = super::Phase::Backward;
        for number in (0..self.plan.nodes.len()).rev() {
            let node = self.plan.nodes[number].clone();
            if !self.trained[node.output] {
                continue;
            }
            self.at = Some(node.layer);
            self.direction = Direction::BackwardData;
            let first = self.plan.calls.len();
            let from = self.gradients[node.output].iter().map(|gradient| gradient.slice).collect();
            self.delivered.clear();
            self.node_backward(number, &node).map_err(|error| error.at(&self.network.layers[node.layer].name))?;
            let to = std::mem::take(&mut self.delivered);
            self.part(first, Work::Backward { node: number, from, to });
        }
        Ok(())
    }

    fn node_backward(&mut self, number: usize, node: &Node) -> Result<()> {
        use Operation as O;
        let source = node.sources[0];
        match self.operation(node) {
            O::BatchNorm(_) => return self.norm_backward(number, node),
            O::MaxPool2d(_) => return self.pool_backward(number, node),
            _ => {}
        }
        let Some(dy) = self.gathered(node.output) else { return Ok(()) };
        match *self.operation(node) {
            O::Conv2d(conv) => {
                let dy = self.bias_backward(node, dy)?;
                if let Some(dx) = self.convolution_backward(number, node, conv, dy.slice)? {
                    self.deliver(source, Gradient::own(dx));
                }
            }
            O::Dense(_) => {
                let dy = self.bias_backward(node, dy)?;
                self.dense_backward(node, dy.slice)?;
            }
            O::Relu => self.rectifier_backward(node, dy, Rectifier::Relu)?,
            O::Relu6 => self.rectifier_backward(node, dy, Rectifier::Relu6)?,
            O::Add => {
                let dy = self.unrectified(node, dy)?;
                node.sources.iter().for_each(|&source| self.deliver(source, Gradient::shared(dy.slice)));
            }
            O::GlobalAveragePool => {
                let maps = self.maps(source);
                let dx = self.feature_maps_buffer("gradient of", source, maps);
                self.launch([global_average_pool::backward(self.element, maps, dy.slice, dx)]);
                self.deliver(source, Gradient::own(dx));
            }
            O::Dropout { rate } if rate > 0.0 => {
                let dx = self.in_place(source, dy);
                self.dropout(node, dy.slice, dx, rate);
                self.deliver(source, Gradient::own(dx));
            }
            O::Flatten if !is_view(self.network, &self.plan.nodes, node.layer, self.layout) => self.unflatten(node, dy),
            O::Dropout { .. } | O::Flatten => self.deliver(source, dy),
            O::Input | O::BatchNorm(_) | O::MaxPool2d(_) => return Err(Error::engine("no gradient")),
        }
        Ok(())
    }

    /// Adds a gradient to those of a layer's output, where the layer needs it.
    pub(super) fn deliver(&mut self, layer: usize, gradient: Gradient) {
        if self.trained[layer] {
            self.delivered.push((layer, gradient.slice));
            self.gradients[layer].push(gradient);
        }
    }

    /// The gradient before a node's rectifier, and then that of its bias.
    fn bias_backward(&mut self, node: &Node, dy: Gradient) -> Result<Gradient> {
        if node.bias != Bias::Own {
            return self.unrectified(node, dy);
        }
        // The sums mask in place; a gradient that others read is masked into a copy first.
        let shared = !dy.is_own && node.rectifier != Rectifier::Identity;
        let (dy, rectifier) = match shared {
            true => (self.unrectified(node, dy)?, Rectifier::Identity),
            false => (dy, node.rectifier),
        };
        self.bias_gradient(node, dy.slice, rectifier)?;
        Ok(dy)
    }

    /// The gradient of the bias that a node adds, from the gradient of the node's output, which is masked in place.
    fn bias_gradient(&mut self, node: &Node, dy: Slice, rectifier: Rectifier) -> Result<()> {
        let (_, dbias) = self.parameter(node.bias_owner().unwrap_or(node.layer), "bias")?;
        let (element, maps) = (self.element, self.maps(node.output));
        let y = if rectifier == Rectifier::Identity { None } else { Some(self.output(node.output)?) };
        let partials = self.scratch(BiasGradient::scratch_bytes(element, maps));
        let before = std::mem::replace(&mut self.direction, Direction::BackwardWeights);
        self.launch(BiasGradient { element, maps, rectifier, y, dy, dbias, partials }.launches());
        self.direction = before;
        Ok(())
    }

    /// The gradient before a node's rectifier.
    fn unrectified(&mut self, node: &Node, dy: Gradient) -> Result<Gradient> {
        match node.rectifier {
            Rectifier::Identity => Ok(dy),
            rectifier => self.masked(node.output, dy, rectifier),
        }
    }

    fn masked(&mut self, output: usize, dy: Gradient, rectifier: Rectifier) -> Result<Gradient> {
        let (y, dx) = (self.output(output)?, self.in_place(output, dy));
        self.launch([elementwise::rectify_backward(self.element, rectifier, y, dy.slice, dx)]);
        Ok(Gradient::own(dx))
    }

    fn rectifier_backward(&mut self, node: &Node, dy: Gradient, rectifier: Rectifier) -> Result<()> {
        let dx = self.masked(node.output, dy, rectifier)?;
        self.deliver(node.sources[0], dx);
        Ok(())
    }

    /// dW = dY' X (out x in) and dX = dY W (N x in).
    fn dense_backward(&mut self, node: &Node, dy: Slice) -> Result<()> {
        let source = node.sources[0];
        let (w, dw) = self.parameter(node.layer, "weight")?;
        let x = self.output(source)?;
        let forward = Product { transpose_b: false, ..self.product(node) };
        let Product { m: batch, n: outputs, k: inputs, .. } = forward;
        let product = Product { m: outputs, n: inputs, k: batch, transpose_a: true, ..forward };
        let gemm = Gemm { product, a: dy, b: x, c: dw, epilogue: Epilogue::Nothing };
        self.weights_gradients(|draft| draft.call(Call::Gemm(gemm)));
        if self.trained[source] {
            let dx = self.feature_maps_buffer("gradient of", source, self.maps(source));
            let product = Product { m: batch, n: inputs, k: outputs, ..forward };
            self.call(Call::Gemm(Gemm { product, a: dy, b: w, c: dx, epilogue: Epilogue::Nothing }));
            self.deliver(source, Gradient::own(dx));
        }
        Ok(())
    }

    fn norm_backward(&mut self, number: usize, node: &Node) -> Result<()> {
        let Some((dy, other)) = self.gathered_pair(node.output) else { return Ok(()) };
        let (mean, inverse_deviation) =
            self.saved[number].moments.ok_or_else(|| Error::engine("no batch statistics"))?;
        let ((gamma, dgamma), (beta, dbeta)) =
            (self.parameter(node.layer, "gamma")?, self.parameter(node.layer, "beta")?);
        let source = node.sources[0];
        let residual = node.residual.then(|| node.sources[1]).filter(|&layer| self.trained[layer]);
        let dx = self.in_place(source, dy);
        let d_residual = residual.map(|layer| match other {
            Some(Gradient { slice, is_own: true }) => slice,
            _ => self.feature_maps_buffer("gradient of", layer, self.maps(layer)),
        });
        let (element, maps) = (self.element, self.maps(node.layer));
        let masked = node.residual && node.rectifier != Rectifier::Identity;
        let y = if masked { Some(self.output(node.output)?) } else { None };
        let op = BatchNormBackward {
            element,
            maps,
            rectifier: node.rectifier,
            x: self.output(source)?,
            y,
            beta,
            gamma,
            mean,
            inverse_deviation,
            dy: dy.slice,
            dy_other: other.map(|gradient| gradient.slice),
            dx,
            d_residual,
            dgamma,
            dbeta,
            partials: self.scratch(batch_norm::scratch_bytes(element, maps)),
        };
        self.launch(op.launches());
        self.deliver(source, Gradient::own(dx));
        if let (Some(layer), Some(gradient)) = (residual, d_residual) {
            self.deliver(layer, Gradient::own(gradient));
        }
        Ok(())
    }

    fn pool_backward(&mut self, number: usize, node: &Node) -> Result<()> {
        let Operation::MaxPool2d(pool) = *self.operation(node) else { return Err(Error::engine("no pooling")) };
        let index = self.saved[number].index.ok_or_else(|| Error::engine("no maxima"))?;
        let Some((dy, other, rectifier)) = self.pooled(node)? else { return Ok(()) };
        let source = node.sources[0];
        if !self.trained[source] {
            return Ok(());
        }
        let pooling = self.pooling(node, pool, rectifier);
        let dx = self.feature_maps_buffer("gradient of", source, pooling.input);
        let y = if rectifier == Rectifier::Identity { None } else { Some(self.output(node.output)?) };
        let other = other.map(|gradient| gradient.slice);
        self.launch([pooling.backward(dy.slice, other, index, y, dx)]);
        self.deliver(source, Gradient::own(dx));
        Ok(())
    }

    /// The gradients of a pooling's output, two of which its kernel adds, and the rectifier whose backward pass is
    /// still to be done.
    fn pooled(&mut self, node: &Node) -> Result<Option<(Gradient, Option<Gradient>, Rectifier)>> {
        if !matches!(node.bias, Bias::Borrowed(_)) {
            return Ok(self.gathered_pair(node.output).map(|(dy, other)| (dy, other, node.rectifier)));
        }
        let Some(dy) = self.gathered(node.output) else { return Ok(None) };
        // The pooling adds the bias to each maximum, so the gradients of bias and rectifier are those of the maxima.
        let (dy, left) = match dy.is_own {
            true => (dy, node.rectifier),
            false => (self.unrectified(node, dy)?, Rectifier::Identity),
        };
        self.bias_gradient(node, dy.slice, left)?;
        Ok(Some((dy, None, Rectifier::Identity)))
    }

    fn unflatten(&mut self, node: &Node, dy: Gradient) {
        let source = node.sources[0];
        let dx = self.feature_maps_buffer("gradient of", source, self.maps(source));
        let to = self.maps(source).layout;
        let from = FeatureMaps { layout: Layout::Nchw, ..self.maps(source) };
        self.launch([elementwise::transpose(self.element, from, to, dy.slice, dx)]);
        self.deliver(source, Gradient::own(dx));
    }
}
