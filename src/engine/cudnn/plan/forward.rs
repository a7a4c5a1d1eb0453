//! The calls of the forward pass, and the loss with its gradient.

use super::gradient::Gradient;
use super::node::Node;
use super::{Fuses, PlanBuilder, Work};
use crate::engine::cpu::op::activation::Rectifier;
use crate::engine::cudnn::call::{Call, Epilogue, Gemm, Launch, Product, Slice};
use crate::engine::cudnn::element::Element;
use crate::engine::cudnn::op::batch_norm::{self, BatchNormOp};
use crate::engine::cudnn::op::elementwise::{self, Dropout};
use crate::engine::cudnn::op::loss::BatchLoss;
use crate::engine::cudnn::op::max_pool2d::Pooling;
use crate::engine::cudnn::op::{bias, global_average_pool};
use crate::network::{BatchNorm, Direction, MaxPool2d, Operation};

impl PlanBuilder<'_> {
    pub(super) fn forward(&mut self, fuses: &mut Fuses<'_>) {
        self.plan.outputs.insert(0, self.plan.inputs);
        self.direction = Direction::Forward;
        for number in 0..self.plan.nodes.len() {
            let node = self.plan.nodes[number].clone();
            self.at = Some(node.layer);
            let first = self.plan.calls.len();
            let y = self.node_forward(number, &node, fuses);
            self.plan.outputs.insert(node.output, y);
            self.part(first, Work::Forward, Some(number), Vec::new(), vec![(node.output, y)]);
        }
    }

    fn node_forward(&mut self, number: usize, node: &Node, fuses: &mut Fuses<'_>) -> Slice {
        use Operation as O;
        let (x, maps, element) = (self.output(node.sources[0]), self.maps(node.sources[0]), self.element);
        match *self.operation(node) {
            O::Conv2d(conv) => self.convolution_forward(number, node, conv, x, fuses),
            O::Dense(_) => self.dense_forward(node, x),
            O::BatchNorm(norm) => self.norm_forward(number, node, norm, x),
            O::MaxPool2d(pool) => self.pool_forward(number, node, pool, x),
            O::Relu | O::Relu6 => self.computed(node, |y| elementwise::rectify(element, node.rectifier, x, y)),
            O::GlobalAveragePool => self.computed(node, |y| global_average_pool::forward(element, maps, x, y)),
            O::Add => {
                let other = self.output(node.sources[1]);
                let y = self.computed(node, |y| elementwise::add(element, x, other, y));
                self.bias_and_rectify(node, y);
                y
            }
            O::Dropout { rate } if rate > 0.0 => {
                let y = self.node_output(node);
                self.dropout(node, x, y, rate);
                y
            }
            O::Flatten if !self.is_view(node) => self.computed(node, |y| elementwise::transpose(element, maps, x, y)),
            O::Dropout { .. } | O::Flatten | O::Input => x,
        }
    }

    pub(super) fn node_output(&mut self, node: &Node) -> Slice {
        self.maps_buffer(self.maps(node.output))
    }

    /// The node's output, by one launch.
    fn computed(&mut self, node: &Node, launch: impl FnOnce(Slice) -> Launch) -> Slice {
        let y = self.node_output(node);
        self.launch([launch(y)]);
        y
    }

    /// The bias that the node adds.
    pub(super) fn own_bias(&self, node: &Node) -> Option<Slice> {
        node.bias.map(|layer| self.parameter(layer, "bias").0)
    }

    /// Value and gradient of a parameter that the layer has.
    pub(super) fn parameter(&self, layer: usize, name: &str) -> (Slice, Slice) {
        self.plan.parameters.of(layer, name).expect("a layer has the parameters of its operation")
    }

    /// Adds the node's bias and applies its rectifier, in place, where it has either.
    pub(super) fn bias_and_rectify(&mut self, node: &Node, xy: Slice) {
        let (element, maps, rectifier) = (self.element, self.maps(node.output), node.rectifier);
        match self.own_bias(node) {
            Some(bias) => self.launch([bias::add_and_rectify(element, maps, rectifier, bias, xy)]),
            None if rectifier != Rectifier::Identity => {
                self.launch([elementwise::rectify(element, rectifier, xy, xy)]);
            }
            None => {}
        }
    }

    fn dense_forward(&mut self, node: &Node, x: Slice) -> Slice {
        let (product, (weight, _), y) =
            (self.product(node), self.parameter(node.layer, "weight"), self.node_output(node));
        // A product's epilogue takes a bias of its own element type, and has no rectifier but ReLU.
        let bias = self.own_bias(node).filter(|_| self.element == Element::F32);
        let epilogue = match (bias, node.rectifier) {
            (Some(bias), Rectifier::Relu) => Epilogue::BiasRelu(bias),
            (Some(bias), Rectifier::Identity) => Epilogue::Bias(bias),
            _ => Epilogue::Nothing,
        };
        self.call(Call::Gemm(Gemm { product, a: x, b: weight, c: y, epilogue }));
        if epilogue == Epilogue::Nothing {
            self.bias_and_rectify(node, y);
        }
        y
    }

    /// The product of a dense layer's forward pass: N x out = (N x in) (out x in)'.
    pub(super) fn product(&self, node: &Node) -> Product {
        let [n, k] = [node.layer, node.sources[0]].map(|layer| self.network.layers[layer].output.count());
        let (element, math, m) = (self.element, self.math, self.batch_size);
        Product { element, math, m, n, k, transpose_a: false, transpose_b: true }
    }

    fn norm_forward(&mut self, number: usize, node: &Node, norm: BatchNorm, x: Slice) -> Slice {
        let bytes = 4 * self.maps(node.layer).channels;
        self.saved[number] = [0, 1].map(|_| self.buffer(bytes)).to_vec();
        let (op, y) = (self.norm(number, node), self.node_output(node));
        let residual = node.residual.then(|| self.output(node.sources[1]));
        self.launch(op.forward(norm, self.plan.running[&node.layer], x, residual, y));
        y
    }

    pub(super) fn norm(&mut self, number: usize, node: &Node) -> BatchNormOp {
        let (element, maps) = (self.element, self.maps(node.layer));
        BatchNormOp {
            element,
            maps,
            rectifier: node.rectifier,
            gamma: self.parameter(node.layer, "gamma").0,
            beta: self.parameter(node.layer, "beta").0,
            mean: self.saved[number][0],
            inverse_deviation: self.saved[number][1],
            partials: self.buffer(batch_norm::scratch_bytes(element, maps)),
        }
    }

    fn pool_forward(&mut self, number: usize, node: &Node, pool: MaxPool2d, x: Slice) -> Slice {
        let pooling = self.pooling(node, pool, node.rectifier);
        let index = self.buffer(pooling.output.count());
        self.saved[number] = vec![index];
        let bias = self.own_bias(node);
        self.computed(node, |y| pooling.forward(x, bias, y, index))
    }

    pub(super) fn pooling(&self, node: &Node, pool: MaxPool2d, rectifier: Rectifier) -> Pooling {
        let (input, output) = (self.maps(node.sources[0]), self.maps(node.layer));
        Pooling { element: self.element, input, output, pool, rectifier }
    }

    pub(super) fn dropout(&mut self, node: &Node, x: Slice, y: Slice, rate: f64) {
        let op = Dropout {
            element: self.element,
            maps: self.maps(node.layer),
            x,
            y,
            rate,
            seed: self.settings.seed,
            layer: node.layer as u64,
            step: self.plan.scalars.step(),
        };
        self.launch([op.launch()]);
    }

    pub(super) fn loss(&mut self) {
        let last = self.network.layers.len() - 1;
        self.at = None;
        let gradient = self.gradient_of(last);
        let first = self.plan.calls.len();
        let op = BatchLoss {
            element: self.element,
            batch: self.batch_size,
            classes: self.network.layers[last].output.count(),
            logits: self.output(last),
            targets: self.plan.targets,
            gradient,
            row_losses: self.row_losses,
            loss_scale: (self.element == Element::F16).then(|| self.plan.scalars.loss_scale()),
        };
        self.launch([op.launch(self.settings.loss)]);
        self.part(first, Work::Loss, None, Vec::new(), vec![(last, gradient)]);
        self.gradients[last].push(Gradient::own(gradient));
    }
}
