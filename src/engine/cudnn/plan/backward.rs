//! The calls of the backward pass.

use super::gradient::Gradient;
use super::node::Node;
use super::{PlanBuilder, Work};
use crate::engine::cpu::op::activation::Rectifier;
use crate::engine::cudnn::call::{Call, Epilogue, Gemm, Product, Slice};
use crate::engine::cudnn::feature_maps::FeatureMaps;
use crate::engine::cudnn::op::batch_norm::Gradients;
use crate::engine::cudnn::op::bias::BiasGradient;
use crate::engine::cudnn::op::{elementwise, global_average_pool};
use crate::network::{Direction, MaxPool2d, Operation};
use crate::settings::Layout;

impl PlanBuilder<'_> {
    /// Every node that has parameters or comes after one that has, from the last to the first.
    pub(super) fn backward(&mut self) {
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
            self.node_backward(number, &node);
            let to = std::mem::take(&mut self.delivered);
            self.part(first, Work::Backward, Some(number), from, to);
        }
    }

    fn node_backward(&mut self, number: usize, node: &Node) {
        use Operation as O;
        let source = node.sources[0];
        match *self.operation(node) {
            O::BatchNorm(_) => return self.norm_backward(number, node),
            O::MaxPool2d(pool) => return self.pool_backward(number, node, pool),
            _ => {}
        }
        let Some(dy) = self.gathered(node.output) else { return };
        let (element, maps) = (self.element, self.maps(source));
        match *self.operation(node) {
            O::Conv2d(conv) => {
                let dy = self.bias_backward(node, dy);
                self.convolution_backward(number, node, conv, dy.slice);
            }
            O::Dense(_) => {
                let dy = self.bias_backward(node, dy);
                self.dense_backward(node, dy.slice);
            }
            O::Relu | O::Relu6 => {
                let dx = self.unrectified(node, dy);
                self.deliver(source, dx);
            }
            O::Add => {
                let dy = self.unrectified(node, dy);
                node.sources.iter().for_each(|&source| self.deliver(source, Gradient::shared(dy.slice)));
            }
            O::GlobalAveragePool => {
                let dx = self.gradient_of(source);
                self.launch([global_average_pool::backward(element, maps, dy.slice, dx)]);
                self.deliver(source, Gradient::own(dx));
            }
            O::Dropout { rate } if rate > 0.0 => {
                let dx = self.in_place(source, dy);
                self.dropout(node, dy.slice, dx, rate);
                self.deliver(source, Gradient::own(dx));
            }
            O::Flatten if !self.is_view(node) => {
                let dx = self.gradient_of(source);
                let from = FeatureMaps { layout: Layout::Nchw, ..maps };
                self.launch([elementwise::transpose(element, from, dy.slice, dx)]);
                self.deliver(source, Gradient::own(dx));
            }
            O::Dropout { .. } | O::Flatten | O::Input | O::BatchNorm(_) | O::MaxPool2d(_) => self.deliver(source, dy),
        }
    }

    /// Adds a gradient to those of a layer's output, where the layer needs it.
    pub(super) fn deliver(&mut self, layer: usize, gradient: Gradient) {
        if self.trained[layer] {
            self.delivered.push((layer, gradient.slice));
            self.gradients[layer].push(gradient);
        }
    }

    /// The gradient before a node's rectifier, and that of the bias that the node adds.
    fn bias_backward(&mut self, node: &Node, dy: Gradient) -> Gradient {
        let Some(owner) = node.bias else { return self.unrectified(node, dy) };
        // The sums mask in place; a gradient that others read is masked into a copy first.
        let (dy, rectifier) = match dy.is_own {
            true => (dy, node.rectifier),
            false => (self.unrectified(node, dy), Rectifier::Identity),
        };
        let (element, maps, (_, dbias)) = (self.element, self.maps(node.output), self.parameter(owner, "bias"));
        let y = (rectifier != Rectifier::Identity).then(|| self.output(node.output));
        let partials = self.buffer(BiasGradient::scratch_bytes(element, maps));
        let before = std::mem::replace(&mut self.direction, Direction::BackwardWeights);
        self.launch(BiasGradient { element, maps, rectifier, y, dy: dy.slice, dbias, partials }.launches());
        self.direction = before;
        dy
    }

    /// The gradient before a node's rectifier.
    fn unrectified(&mut self, node: &Node, dy: Gradient) -> Gradient {
        if node.rectifier == Rectifier::Identity {
            return dy;
        }
        let (y, dx) = (self.output(node.output), self.in_place(node.output, dy));
        self.launch([elementwise::rectify_backward(self.element, node.rectifier, y, dy.slice, dx)]);
        Gradient::own(dx)
    }

    /// dW = dY' X (out x in) and dX = dY W (N x in).
    fn dense_backward(&mut self, node: &Node, dy: Slice) {
        let source = node.sources[0];
        let ((w, dw), x) = (self.parameter(node.layer, "weight"), self.output(source));
        let forward = Product { transpose_b: false, ..self.product(node) };
        let Product { m: batch, n: outputs, k: inputs, .. } = forward;
        let product = Product { m: outputs, n: inputs, k: batch, transpose_a: true, ..forward };
        let gemm = Gemm { product, a: dy, b: x, c: dw, epilogue: Epilogue::Nothing };
        self.weights_gradients(|draft| draft.call(Call::Gemm(gemm)));
        if self.trained[source] {
            let dx = self.gradient_of(source);
            let product = Product { m: batch, n: inputs, k: outputs, ..forward };
            self.call(Call::Gemm(Gemm { product, a: dy, b: w, c: dx, epilogue: Epilogue::Nothing }));
            self.deliver(source, Gradient::own(dx));
        }
    }

    fn norm_backward(&mut self, number: usize, node: &Node) {
        let Some((dy, other)) = self.gathered_pair(node.output) else { return };
        let source = node.sources[0];
        let residual = node.residual.then(|| node.sources[1]).filter(|&layer| self.trained[layer]);
        let dx = self.in_place(source, dy);
        let d_residual = residual.map(|layer| match other {
            Some(Gradient { slice, is_own: true }) => slice,
            _ => self.gradient_of(layer),
        });
        let masked = node.residual && node.rectifier != Rectifier::Identity;
        let (x, y) = (self.output(source), masked.then(|| self.output(node.output)));
        let [dgamma, dbeta] = ["gamma", "beta"].map(|name| self.parameter(node.layer, name).1);
        let dy_other = other.map(|gradient| gradient.slice);
        let gradients = Gradients { dy: dy.slice, dy_other, dx, d_residual, dgamma, dbeta };
        let op = self.norm(number, node);
        self.launch(op.backward(x, y, gradients));
        self.deliver(source, Gradient::own(dx));
        if let (Some(layer), Some(gradient)) = (residual, d_residual) {
            self.deliver(layer, Gradient::own(gradient));
        }
    }

    fn pool_backward(&mut self, number: usize, node: &Node, pool: MaxPool2d) {
        let Some((dy, other, rectifier)) = self.pooled(node) else { return };
        let source = node.sources[0];
        if !self.trained[source] {
            return;
        }
        let dx = self.gradient_of(source);
        let y = (rectifier != Rectifier::Identity).then(|| self.output(node.output));
        let (other, index) = (other.map(|gradient| gradient.slice), self.saved[number][0]);
        self.launch([self.pooling(node, pool, rectifier).backward(dy.slice, other, index, y, dx)]);
        self.deliver(source, Gradient::own(dx));
    }

    /// The gradients of a pooling's output, two of which its kernel adds, and the rectifier whose backward pass is
    /// still to be done.
    fn pooled(&mut self, node: &Node) -> Option<(Gradient, Option<Gradient>, Rectifier)> {
        if node.bias.is_none() {
            return self.gathered_pair(node.output).map(|(dy, other)| (dy, other, node.rectifier));
        }
        // The pooling adds the bias to each maximum, so the gradients of bias and rectifier are those of the maxima.
        let dy = self.gathered(node.output)?;
        let dy = self.bias_backward(node, dy);
        Some((dy, None, Rectifier::Identity))
    }
}
