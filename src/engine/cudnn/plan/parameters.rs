//! Where each parameter lies in memory.
//!
//! All parameters lie one after another, so that the optimizer is one launch over them: first the weights of
//! convolutions and dense layers, whose gradients and working copies are of the element type of the precision, then
//! everything else, which is float32 throughout. Each begins at a multiple of [`ALIGNMENT`] numbers; the numbers
//! between them are zeros, and every optimizer leaves them zeros.

use super::node::Node;
use crate::engine::cudnn::call::Slice;
use crate::engine::cudnn::element::Element;
use crate::network::{Network, Operation, Shape};
use crate::settings::Layout;

/// In numbers: 512 bytes of float32, 256 of 16 bits.
const ALIGNMENT: usize = 128;

/// A parameter's place.
#[derive(Clone, Debug, PartialEq)]
pub struct PlacedParameter {
    pub layer: usize,
    /// Its position among the trainable parameters of its layer, on which its initial values depend.
    pub number: usize,
    pub name: &'static str,
    pub dims: Vec<usize>,
    /// The index of its first number in its region.
    pub first: usize,
    pub is_weight: bool,
    pub order: WeightOrder,
}

impl PlacedParameter {
    pub fn count(&self) -> usize {
        self.dims.iter().product()
    }
}

/// The order of a weight's numbers: as `outer` x `channels` x `positions`, which is the order of the network's definition,
/// or, where `channels_last`, as `outer` x `positions` x `channels`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WeightOrder {
    pub channels: usize,
    pub positions: usize,
    pub channels_last: bool,
}

/// All parameters of a network.
#[derive(Clone, Debug)]
pub struct Parameters {
    placed: Vec<PlacedParameter>,
    /// Numbers in the first region, with the gaps.
    weights: usize,
    element: Element,
    /// float32, both regions.
    pub master: Slice,
    /// The gradients of the first region, of the element type, and of the second, float32.
    pub weight_gradients: Slice,
    pub other_gradients: Slice,
    /// The first region in the element type, where that is not float32.
    pub working: Option<Slice>,
}

impl Parameters {
    /// Places every trainable parameter; `whole` makes a kept buffer of a number of bytes.
    pub fn new(
        network: &Network,
        nodes: &[Node],
        layout: Layout,
        element: Element,
        mut whole: impl FnMut(usize) -> Slice,
    ) -> Self {
        let mut placed = Vec::new();
        let mut ends = [0usize; 2];
        for layer in 0..network.layers.len() {
            let trainable = network.parameters_of(layer).into_iter().filter(|parameter| parameter.trainable);
            for (number, parameter) in trainable.enumerate() {
                let is_weight = parameter.name == "weight";
                let end = &mut ends[usize::from(!is_weight)];
                let count = parameter.count();
                let order = order(network, nodes, layout, layer, &parameter.dims);
                let (name, dims) = (parameter.name, parameter.dims);
                placed.push(PlacedParameter { layer, number, name, dims, first: *end, is_weight, order });
                *end = end.saturating_add(count).next_multiple_of(ALIGNMENT);
            }
        }
        let [weights, others] = ends;
        let float = |count: usize| count.saturating_mul(4);
        let bytes = weights.saturating_mul(element.bytes());
        Self {
            placed,
            weights,
            element,
            master: whole(float(weights.saturating_add(others))),
            weight_gradients: whole(bytes),
            other_gradients: whole(float(others)),
            working: (element != Element::F32).then(|| whole(bytes)),
        }
    }

    /// Every trainable parameter, in the order of the layers.
    pub fn iter(&self) -> impl Iterator<Item = &PlacedParameter> {
        self.placed.iter()
    }

    /// The parameter `name` of a layer; `None` where it has none.
    pub fn find(&self, layer: usize, name: &str) -> Option<&PlacedParameter> {
        self.placed.iter().find(|placed| placed.layer == layer && placed.name == name)
    }

    /// The float32 numbers of a parameter.
    pub fn master(&self, placed: &PlacedParameter) -> Slice {
        let first = if placed.is_weight { placed.first } else { self.weights + placed.first };
        self.master.part(4 * first, 4 * placed.count())
    }

    /// The slice from which a step reads a parameter: a weight in the element type, anything else in float32.
    pub fn value(&self, placed: &PlacedParameter) -> Slice {
        match self.working {
            Some(working) if placed.is_weight => self.weight_part(working, placed),
            _ => self.master(placed),
        }
    }

    /// Where a parameter's gradient is written: a weight's in the element type, any other in float32.
    pub fn gradient(&self, placed: &PlacedParameter) -> Slice {
        match placed.is_weight {
            true => self.weight_part(self.weight_gradients, placed),
            false => self.other_gradients.part(4 * placed.first, 4 * placed.count()),
        }
    }

    fn weight_part(&self, weights: Slice, placed: &PlacedParameter) -> Slice {
        weights.part(self.element.bytes() * placed.first, self.element.bytes() * placed.count())
    }

    /// Value and gradient of the parameter `name` of a layer; `None` where it has none.
    pub fn of(&self, layer: usize, name: &str) -> Option<(Slice, Slice)> {
        self.find(layer, name).map(|placed| (self.value(placed), self.gradient(placed)))
    }
}

/// In NHWC, a convolution's weights are K, R, S, C; and a dense layer that reads flattened feature maps has its columns
/// in the order of those maps in memory, which saves the step a transposition.
fn order(network: &Network, nodes: &[Node], layout: Layout, layer: usize, dims: &[usize]) -> WeightOrder {
    let plain = WeightOrder { channels: dims[dims.len() - 1], positions: 1, channels_last: false };
    match network.layers[layer].operation {
        Operation::Conv2d(conv) if dims.len() == 4 => {
            // For us a depthwise weight is one filter of C channels, for the library C filters of one channel.
            let channels = if is_depthwise(network, layer) { conv.groups } else { dims[1] };
            WeightOrder { channels, positions: dims[2] * dims[3], channels_last: layout == Layout::Nhwc }
        }
        Operation::Dense(_) => match flattened(network, nodes, layer) {
            Some(Shape::Maps { channels, height, width }) if dims.len() == 2 && layout == Layout::Nhwc => {
                WeightOrder { channels, positions: height * width, channels_last: true }
            }
            _ => plain,
        },
        _ => plain,
    }
}

/// The shape of the feature maps that a dense layer reads through a flattening that nothing else reads.
pub fn flattened(network: &Network, nodes: &[Node], layer: usize) -> Option<Shape> {
    let &[source] = &network.layers[layer].sources[..] else { return None };
    let only = network.layers.iter().flat_map(|layer| &layer.sources).filter(|&&from| from == source).count() == 1;
    let node = nodes.iter().find(|node| node.output == source)?;
    let is_flattening = matches!(network.layers[source].operation, Operation::Flatten) && node.layer == source;
    (only && is_flattening).then(|| network.layers[network.layers[source].sources[0]].output)
}

/// Whether a convolution is computed by the kernels of [`crate::engine::cudnn::op::depthwise_conv2d`]: as many groups as
/// channels, in and out, and a window that they hold.
pub fn is_depthwise(network: &Network, layer: usize) -> bool {
    match network.layers[layer].operation {
        Operation::Conv2d(conv) => {
            let channels = network.sources(layer).next().map_or(0, |shape| shape.channels());
            let fits = conv.kernel.height.max(conv.kernel.width) <= 7;
            channels > 1 && conv.groups == channels && conv.out_channels == channels && fits
        }
        _ => false,
    }
}

/// Whether a flattening moves no data: its feature maps already have the order of the flat features, or the dense layer
/// that reads them has its columns in their order.
pub fn is_view(network: &Network, nodes: &[Node], layer: usize, layout: Layout) -> bool {
    let maps = network.sources(layer).next();
    let in_order = layout == Layout::Nchw
        || !matches!(maps, Some(Shape::Maps { channels, height, width }) if height * width > 1 && channels > 1);
    let dense = |reader: usize| matches!(network.layers[reader].operation, Operation::Dense(_));
    let mut readers = (0..network.layers.len()).filter(|&reader| network.layers[reader].sources.contains(&layer));
    in_order || readers.all(|reader| dense(reader) && flattened(network, nodes, reader).is_some())
}
