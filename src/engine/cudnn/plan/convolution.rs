//! Convolutions: by the library, or by our own kernels where each channel has its own filter.

use super::node::{Bias, Node};
use super::parameters::is_depthwise;
use super::{Fuses, PlanBuilder};
use crate::engine::cudnn::call::{Call, Convolution, ConvolutionKind, ConvolutionTask, Slice};
use crate::engine::cudnn::element::Element;
use crate::engine::cudnn::op::depthwise_conv2d::DepthwiseConv2d;
use crate::engine::cudnn::op::elementwise::{self, padded};
use crate::engine::cudnn::op::rectifier::Rectifier;
use crate::error::Result;
use crate::network::{Conv2d, Extent, Padding};

impl PlanBuilder<'_> {
    pub(super) fn convolution_forward(
        &mut self,
        number: usize,
        node: &Node,
        conv: Conv2d,
        x: Slice,
        fuses: &mut Fuses<'_>,
    ) -> Result<Slice> {
        let (w, _) = self.parameter(node.layer, "weight")?;
        let y = self.node_output(node);
        if is_depthwise(self.network, node.layer) {
            let conv = self.depthwise(node, conv);
            conv.check()?;
            self.launch([conv.forward(x, w, y)]);
            self.bias_and_rectify(node, y);
            return Ok(y);
        }
        let x = self.pad(number, node, conv.padding, x);
        let convolution = self.geometry(node, conv);
        let bias = self.own_bias(node).filter(|_| self.element == Element::F32 && node.rectifier == Rectifier::Relu);
        let bias = bias.filter(|_| fuses(node.layer, &convolution));
        let kind = if bias.is_some() { ConvolutionKind::ForwardBiasRelu } else { ConvolutionKind::Forward };
        self.call(Call::Convolution(convolution, ConvolutionTask { kind, x, w, y, bias }));
        if bias.is_none() && node.bias != Bias::Lent {
            self.bias_and_rectify(node, y);
        }
        Ok(y)
    }

    /// The gradients of the weights and, where something before it is trained, of the input.
    pub(super) fn convolution_backward(
        &mut self,
        number: usize,
        node: &Node,
        conv: Conv2d,
        dy: Slice,
    ) -> Result<Option<Slice>> {
        let (w, dw) = self.parameter(node.layer, "weight")?;
        let source = node.sources[0];
        let x = match self.saved[number].padded {
            Some(padded) => padded,
            None => self.output(source)?,
        };
        let wanted = self.trained[source];
        if is_depthwise(self.network, node.layer) {
            let conv = self.depthwise(node, conv);
            let partials = self.scratch(conv.scratch_bytes());
            self.weights_gradients(|draft| draft.launch(conv.backward_weights(x, dy, dw, partials)));
            return Ok(wanted.then(|| {
                let dx = self.feature_maps_buffer("gradient of", source, self.maps(source));
                self.launch([conv.backward_data(dy, w, dx)]);
                dx
            }));
        }
        let convolution = self.geometry(node, conv);
        let kind = ConvolutionKind::BackwardWeights;
        let task = ConvolutionTask { kind, x, w: dw, y: dy, bias: None };
        self.weights_gradients(|draft| draft.call(Call::Convolution(convolution, task)));
        Ok(wanted.then(|| {
            let dx = self.feature_maps_buffer("gradient of input of", node.layer, convolution.input);
            let kind = ConvolutionKind::BackwardData;
            self.call(Call::Convolution(convolution, ConvolutionTask { kind, x: dx, w, y: dy, bias: None }));
            self.crop(node, conv.padding, dx)
        }))
    }

    fn depthwise(&self, node: &Node, conv: Conv2d) -> DepthwiseConv2d {
        let (input, output) = (self.maps(node.sources[0]), self.maps(node.layer));
        let Conv2d { kernel, stride, padding, .. } = conv;
        DepthwiseConv2d { element: self.element, input, output, kernel, stride, padding }
    }

    /// The convolution as the library takes it: padded equally on opposite sides, which may first need a padded copy of
    /// the input.
    fn geometry(&self, node: &Node, conv: Conv2d) -> Convolution {
        let padding = conv.padding;
        let input = self.maps(node.sources[0]);
        let (input, padding) = match is_symmetric(padding) {
            true => (input, Extent::new(padding.top, padding.left)),
            false => (padded(input, padding), Extent::square(0)),
        };
        Convolution {
            element: self.element,
            math: self.math,
            input,
            output: self.maps(node.layer),
            kernel: conv.kernel,
            stride: conv.stride,
            padding,
            groups: conv.groups,
        }
    }

    fn pad(&mut self, number: usize, node: &Node, padding: Padding, x: Slice) -> Slice {
        if is_symmetric(padding) {
            return x;
        }
        let maps = self.maps(node.sources[0]);
        let y = self.feature_maps_buffer("padded input of", node.layer, padded(maps, padding));
        self.launch([elementwise::pad(self.element, maps, padding, x, y)]);
        self.saved[number].padded = Some(y);
        y
    }

    fn crop(&mut self, node: &Node, padding: Padding, dx: Slice) -> Slice {
        if is_symmetric(padding) {
            return dx;
        }
        let maps = self.maps(node.sources[0]);
        let y = self.feature_maps_buffer("gradient of", node.sources[0], maps);
        self.launch([elementwise::crop(self.element, maps, padding, dx, y)]);
        y
    }
}

fn is_symmetric(padding: Padding) -> bool {
    padding.top == padding.bottom && padding.left == padding.right
}
