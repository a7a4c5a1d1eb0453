//! Convolutions: by the library, or by our own kernels where each channel has its own filter.

use super::gradient::Gradient;
use super::node::Node;
use super::parameters::is_depthwise;
use super::{Fuses, PlanBuilder};
use crate::engine::cpu::op::activation::Rectifier;
use crate::engine::cudnn::call::{Call, Convolution, ConvolutionKind, ConvolutionTask, Slice};
use crate::engine::cudnn::element::Element;
use crate::engine::cudnn::op::depthwise_conv2d::DepthwiseConv2d;
use crate::engine::cudnn::op::elementwise::{self, padded};
use crate::network::{Conv2d, Extent, Padding};

impl PlanBuilder<'_> {
    pub(super) fn convolution_forward(
        &mut self,
        number: usize,
        node: &Node,
        conv: Conv2d,
        x: Slice,
        fuses: &mut Fuses<'_>,
    ) -> Slice {
        let (w, _) = self.parameter(node.layer, "weight");
        let y = self.node_output(node);
        if is_depthwise(self.network, node.layer) {
            self.launch([self.depthwise(node, conv).forward(x, w, y)]);
            self.bias_and_rectify(node, y);
            return y;
        }
        let convolution = self.geometry(node, conv);
        let mut task = ConvolutionTask { kind: ConvolutionKind::Forward, x, w, y, bias: None };
        if !is_symmetric(conv.padding) {
            task.x = self.maps_buffer(convolution.input);
            self.launch([elementwise::pad(self.element, self.maps(node.sources[0]), conv.padding, x, task.x)]);
            self.saved[number] = vec![task.x];
        }
        let bias = self.own_bias(node).filter(|_| self.element == Element::F32 && node.rectifier == Rectifier::Relu);
        if let Some(bias) = bias.filter(|_| fuses(node.layer, &convolution)) {
            task = ConvolutionTask { kind: ConvolutionKind::ForwardBiasRelu, bias: Some(bias), ..task };
        }
        self.call(Call::Convolution(convolution, task));
        if task.bias.is_none() {
            self.bias_and_rectify(node, y);
        }
        y
    }

    /// The gradients of the weights and, where something before it is trained, of the input.
    pub(super) fn convolution_backward(&mut self, number: usize, node: &Node, conv: Conv2d, dy: Slice) {
        let ((w, dw), source) = (self.parameter(node.layer, "weight"), node.sources[0]);
        let x = self.saved[number].first().copied().unwrap_or_else(|| self.output(source));
        if is_depthwise(self.network, node.layer) {
            let conv = self.depthwise(node, conv);
            let partials = self.buffer(conv.scratch_bytes());
            self.weights_gradients(|draft| draft.launch(conv.backward_weights(x, dy, dw, partials)));
            if self.trained[source] {
                let dx = self.gradient_of(source);
                self.launch([conv.backward_data(dy, w, dx)]);
                self.deliver(source, Gradient::own(dx));
            }
            return;
        }
        let convolution = self.geometry(node, conv);
        let task = ConvolutionTask { kind: ConvolutionKind::BackwardWeights, x, w: dw, y: dy, bias: None };
        self.weights_gradients(|draft| draft.call(Call::Convolution(convolution, task)));
        if !self.trained[source] {
            return;
        }
        let mut dx = self.maps_buffer(convolution.input);
        let task = ConvolutionTask { kind: ConvolutionKind::BackwardData, x: dx, w, y: dy, bias: None };
        self.call(Call::Convolution(convolution, task));
        if !is_symmetric(conv.padding) {
            let padded = std::mem::replace(&mut dx, self.gradient_of(source));
            self.launch([elementwise::crop(self.element, self.maps(source), conv.padding, padded, dx)]);
        }
        self.deliver(source, Gradient::own(dx));
    }

    pub(super) fn depthwise(&self, node: &Node, conv: Conv2d) -> DepthwiseConv2d {
        let (input, output) = (self.maps(node.sources[0]), self.maps(node.layer));
        let Conv2d { kernel, stride, padding, .. } = conv;
        DepthwiseConv2d { element: self.element, input, output, kernel, stride, padding }
    }

    /// The convolution as the library takes it: padded equally on opposite sides, which may first need a padded copy of
    /// the input.
    fn geometry(&self, node: &Node, conv: Conv2d) -> Convolution {
        let Conv2d { kernel, stride, padding, groups, .. } = conv;
        let input = self.maps(node.sources[0]);
        let (input, padding) = match is_symmetric(padding) {
            true => (input, Extent::new(padding.top, padding.left)),
            false => (padded(input, padding), Extent::square(0)),
        };
        let (element, math, output) = (self.element, self.math, self.maps(node.layer));
        Convolution { element, math, input, output, kernel, stride, padding, groups }
    }
}

fn is_symmetric(padding: Padding) -> bool {
    padding.top == padding.bottom && padding.left == padding.right
}
