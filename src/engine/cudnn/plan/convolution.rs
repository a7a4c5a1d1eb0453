//! Convolutions: by the library, or by our own kernels where each channel has its own filter.

use super::node::{Bias, Node};
use super::parameters::is_depthwise;
use super::{Fuses, PlanBuilder};
use crate::engine::cudnn::call::{Call, Convolution, ConvolutionTask, Slice};
use crate::engine::cudnn::element::Element;
use crate::engine::cudnn::feature_maps::FeatureMaps;
use crate::engine::cudnn::op::depthwise_conv2d::{self, DepthwiseConv2d};
use crate::engine::cudnn::op::elementwise::{Crop, Pad};
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
            self.launch(depthwise_conv2d::Forward { conv, x, w, y }.launches());
            self.bias_and_rectify(node, y);
            return Ok(y);
        }
        let x = self.pad(number, node, conv, x);
        let convolution = self.geometry(node, conv);
        let bias = self.own_bias(node).filter(|_| self.element == Element::F32 && node.rectifier == Rectifier::Relu);
        match bias {
            Some(bias) if fuses(node.layer, &convolution) => {
                self.call(Call::Convolution(convolution, ConvolutionTask::ForwardBiasRelu { x, w, bias, y }));
            }
            _ => {
                self.call(Call::Convolution(convolution, ConvolutionTask::Forward { x, w, y }));
                if node.bias != Bias::Lent {
                    self.bias_and_rectify(node, y);
                }
            }
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
            return Ok(self.depthwise_backward(node, conv, Operands { x, w, dy, dw }));
        }
        Ok(self.library_backward(node, conv, Operands { x, w, dy, dw }, wanted))
    }

    fn library_backward(&mut self, node: &Node, conv: Conv2d, operands: Operands, wanted: bool) -> Option<Slice> {
        let Operands { x, w, dy, dw } = operands;
        let convolution = self.geometry(node, conv);
        let task = ConvolutionTask::BackwardWeights { x, dy, dw };
        self.weights_gradients(|draft| draft.call(Call::Convolution(convolution, task)));
        if !wanted {
            return None;
        }
        let dx = self.feature_maps_buffer("gradient of input of", node.layer, convolution.input);
        self.call(Call::Convolution(convolution, ConvolutionTask::BackwardData { dy, w, dx }));
        Some(self.crop(node, conv, dx))
    }

    fn depthwise_backward(&mut self, node: &Node, conv: Conv2d, operands: Operands) -> Option<Slice> {
        let Operands { x, w, dy, dw } = operands;
        let conv = self.depthwise(node, conv);
        let partials = self.scratch(conv.scratch_bytes());
        let gradients = depthwise_conv2d::BackwardWeights { conv, x, dy, dw, partials };
        self.weights_gradients(|draft| draft.launch(gradients.launches()));
        let source = node.sources[0];
        self.trained[source].then(|| {
            let dx = self.feature_maps_buffer("gradient of", source, self.maps(source));
            self.launch(depthwise_conv2d::BackwardData { conv, dy, w, dx }.launches());
            dx
        })
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

    fn pad(&mut self, number: usize, node: &Node, conv: Conv2d, x: Slice) -> Slice {
        if is_symmetric(conv.padding) {
            return x;
        }
        let input = self.maps(node.sources[0]);
        let output = padded(input, conv.padding);
        let y = self.feature_maps_buffer("padded input of", node.layer, output);
        let Padding { top, left, .. } = conv.padding;
        self.launch(Pad { element: self.element, input, output, top, left, x, y }.launches());
        self.saved[number].padded = Some(y);
        y
    }

    fn crop(&mut self, node: &Node, conv: Conv2d, dx: Slice) -> Slice {
        if is_symmetric(conv.padding) {
            return dx;
        }
        let output = self.maps(node.sources[0]);
        let input = padded(output, conv.padding);
        let y = self.feature_maps_buffer("gradient of", node.sources[0], output);
        let Padding { top, left, .. } = conv.padding;
        self.launch(Crop { element: self.element, input, output, top, left, x: dx, y }.launches());
        y
    }
}

/// The operands of a convolution's backward pass.
struct Operands {
    x: Slice,
    w: Slice,
    dy: Slice,
    dw: Slice,
}

fn is_symmetric(padding: Padding) -> bool {
    padding.top == padding.bottom && padding.left == padding.right
}

fn padded(maps: FeatureMaps, padding: Padding) -> FeatureMaps {
    let (height, width) = (padding.top + padding.bottom, padding.left + padding.right);
    FeatureMaps { height: maps.height + height, width: maps.width + width, ..maps }
}
