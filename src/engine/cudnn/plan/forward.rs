//! The calls of the forward pass, and the loss with its gradient.

use super::gradient::Gradient;
use super::node::Node;
use super::parameters::is_view;
use super::part::Work;
use super::{Fuses, PlanBuilder};
use crate::engine::cudnn::call::{Call, Epilogue, Gemm, Product, Slice};
use crate::engine::cudnn::element::Element;
use crate::engine::cudnn::op::batch_norm::{self, BatchNormForward};
use crate::engine::cudnn::op::elementwise::{self, Dropout};
use crate::engine::cudnn::op::loss::BatchLoss;
use crate::engine::cudnn::op::max_pool2d::Pooling;
use crate::engine::cudnn::op::rectifier::Rectifier;
use crate::engine::cudnn::op::{bias, global_average_pool};
use crate::error::{Error, Result};
use crate::network::{Direction, MaxPool2d, Operation};
use crate::settings::Layout;

impl PlanBuilder<'_> {
    pub(super) fn forward(&mut self, fuses: &mut Fuses<'_>) -> Result<()> {
        self.plan.outputs[0] = Some(self.plan.inputs);
        self.direction = Direction::Forward;
        for number in 0..self.plan.nodes.len() {
            let node = self.plan.nodes[number].clone();
            self.at = Some(node.layer);
            let (x, first) = (self.output(node.sources[0])?, self.plan.calls.len());
            let y = self
                .node_forward(number, &node, x, fuses)
                .map_err(|error| error.at(&self.network.layers[node.layer].name))?;
            self.plan.outputs[node.output] = Some(y);
            self.part(first, Work::Forward { node: number });
        }
        Ok(())
    }

    fn node_forward(&mut self, number: usize, node: &Node, x: Slice, fuses: &mut Fuses<'_>) -> Result<Slice> {
        use Operation as O;
        match *self.operation(node) {
            O::Conv2d(conv) => self.convolution_forward(number, node, conv, x, fuses),
            O::Dense(_) => self.dense_forward(node, x),
            O::BatchNorm(_) => self.norm_forward(number, node, x),
            O::MaxPool2d(_) => self.pool_forward(number, node, x),
            O::Relu => Ok(self.rectify(node, x, Rectifier::Relu)),
            O::Relu6 => Ok(self.rectify(node, x, Rectifier::Relu6)),
            O::Add => self.sum(node, x),
            O::GlobalAveragePool => {
                let (y, maps) = (self.node_output(node), self.maps(node.sources[0]));
                self.launch([global_average_pool::forward(self.element, maps, x, y)]);
                Ok(y)
            }
            O::Dropout { rate } => Ok(self.dropout_forward(node, x, rate)),
            O::Flatten => Ok(self.flatten(node, x)),
            O::Input => Err(Error::engine("an input layer that is not the first layer")),
        }
    }

    pub(super) fn node_output(&mut self, node: &Node) -> Slice {
        self.feature_maps_buffer("output of", node.output, self.maps(node.output))
    }

    /// The node's bias, where it adds one itself.
    pub(super) fn own_bias(&self, node: &Node) -> Option<Slice> {
        self.plan.parameters.of(node.bias_owner()?, "bias").map(|(value, _)| value)
    }

    /// Value and gradient of a parameter that the layer must have.
    pub(super) fn parameter(&self, layer: usize, name: &str) -> Result<(Slice, Slice)> {
        self.plan.parameters.of(layer, name).ok_or_else(|| Error::engine(format!("no parameter {name}")))
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

    fn dense_forward(&mut self, node: &Node, x: Slice) -> Result<Slice> {
        let product = self.product(node);
        let (weight, _) = self.parameter(node.layer, "weight")?;
        let y = self.node_output(node);
        // A product's epilogue takes a bias of its own element type, and has no rectifier but ReLU.
        let bias = self.own_bias(node).filter(|_| self.element == Element::F32);
        let (epilogue, done) = match (bias, node.rectifier) {
            (Some(bias), Rectifier::Relu) => (Epilogue::BiasRelu(bias), true),
            (Some(bias), Rectifier::Identity) => (Epilogue::Bias(bias), true),
            _ => (Epilogue::Nothing, false),
        };
        self.call(Call::Gemm(Gemm { product, a: x, b: weight, c: y, epilogue }));
        if !done {
            self.bias_and_rectify(node, y);
        }
        Ok(y)
    }

    /// The product of a dense layer's forward pass: N x out = (N x in) (out x in)'.
    pub(super) fn product(&self, node: &Node) -> Product {
        let inputs = self.network.layers[node.sources[0]].output.count();
        let outputs = self.network.layers[node.layer].output.count();
        let (element, math, m) = (self.element, self.math, self.batch_size);
        Product { element, math, m, n: outputs, k: inputs, transpose_a: false, transpose_b: true }
    }

    fn norm_forward(&mut self, number: usize, node: &Node, x: Slice) -> Result<Slice> {
        let Operation::BatchNorm(norm) = *self.operation(node) else { return Err(Error::engine("no batch norm")) };
        let maps = self.maps(node.layer);
        let residual = if node.residual { Some(self.output(node.sources[1])?) } else { None };
        let [mean, inverse_deviation] = [0, 1].map(|_| self.buffer("batch statistics".to_owned(), 4 * maps.channels));
        self.saved[number].moments = Some((mean, inverse_deviation));
        let (running_mean, running_variance) =
            self.plan.running[node.layer].ok_or_else(|| Error::engine("no running statistics"))?;
        let (gamma, beta) = (self.parameter(node.layer, "gamma")?.0, self.parameter(node.layer, "beta")?.0);
        let (partials, y) = (self.scratch(batch_norm::scratch_bytes(self.element, maps)), self.node_output(node));
        let op = BatchNormForward {
            element: self.element,
            maps,
            rectifier: node.rectifier,
            epsilon: norm.epsilon as f32,
            momentum: norm.momentum as f32,
            x,
            residual,
            gamma,
            beta,
            running_mean,
            running_variance,
            mean,
            inverse_deviation,
            y,
            partials,
        };
        self.launch(op.launches());
        Ok(y)
    }

    fn pool_forward(&mut self, number: usize, node: &Node, x: Slice) -> Result<Slice> {
        let Operation::MaxPool2d(pool) = *self.operation(node) else { return Err(Error::engine("no pooling")) };
        let pooling = self.pooling(node, pool, node.rectifier);
        pooling.check()?;
        let name = format!("maxima of {}", self.network.layers[node.layer].name);
        let index = self.buffer(name, pooling.output.count());
        self.saved[number].index = Some(index);
        let (bias, y) = (self.own_bias(node), self.node_output(node));
        self.launch([pooling.forward(x, bias, y, index)]);
        Ok(y)
    }

    pub(super) fn pooling(&self, node: &Node, pool: MaxPool2d, rectifier: Rectifier) -> Pooling {
        let (input, output) = (self.maps(node.sources[0]), self.maps(node.layer));
        Pooling { element: self.element, input, output, pool, rectifier }
    }

    fn rectify(&mut self, node: &Node, x: Slice, rectifier: Rectifier) -> Slice {
        let y = self.node_output(node);
        self.launch([elementwise::rectify(self.element, rectifier, x, y)]);
        y
    }

    fn sum(&mut self, node: &Node, a: Slice) -> Result<Slice> {
        let b = self.output(node.sources[1])?;
        let y = self.node_output(node);
        self.launch([elementwise::add(self.element, a, b, y)]);
        self.bias_and_rectify(node, y);
        Ok(y)
    }

    fn dropout_forward(&mut self, node: &Node, x: Slice, rate: f64) -> Slice {
        if rate == 0.0 {
            return x;
        }
        let y = self.node_output(node);
        self.dropout(node, x, y, rate);
        y
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

    fn flatten(&mut self, node: &Node, x: Slice) -> Slice {
        if is_view(self.network, &self.plan.nodes, node.layer, self.layout) {
            return x;
        }
        let y = self.node_output(node);
        let from = self.maps(node.sources[0]);
        self.launch([elementwise::transpose(self.element, from, Layout::Nchw, x, y)]);
        y
    }

    pub(super) fn loss(&mut self) -> Result<()> {
        let last = self.network.layers.len() - 1;
        self.at = None;
        let logits = self.output(last)?;
        let gradient = self.feature_maps_buffer("gradient of", last, self.maps(last));
        let first = self.plan.calls.len();
        let op = BatchLoss {
            element: self.element,
            batch: self.batch_size,
            classes: self.network.layers[last].output.count(),
            logits,
            targets: self.plan.targets,
            gradient,
            row_losses: self.row_losses,
            loss_scale: (self.element == Element::F16).then(|| self.plan.scalars.loss_scale()),
        };
        self.launch([op.launch(self.settings.loss)]);
        self.part(first, Work::Loss { gradient });
        self.gradients[last].push(Gradient::own(gradient));
        Ok(())
    }
}
