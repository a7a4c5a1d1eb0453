//! Which layers are computed together.
//!
//! A layer that works element by element on the output of one other layer costs an extra pass over memory, unless it is
//! computed while that output is written. So a rectifier joins the convolution, dense layer, batch norm or sum before
//! it; a sum joins the later of two batch norms that are its inputs; and a max-pooling takes over the bias and the
//! rectifier of the convolution before it, on a quarter of the elements.

use crate::engine::cudnn::op::rectifier::Rectifier;
use crate::network::{Network, Operation};

/// Layers that are computed together, named by the first of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// The layer whose operation the node computes.
    pub layer: usize,
    /// The layers whose outputs are its inputs, with a residual's layer last.
    pub sources: Vec<usize>,
    /// Whether the last source is added to the output of a batch norm.
    pub residual: bool,
    pub rectifier: Rectifier,
    /// The last of the layers; its output is the node's output.
    pub output: usize,
    /// Where a convolution's bias is added.
    pub bias: Bias,
}

impl Node {
    /// The layer whose bias the node adds.
    pub fn bias_owner(&self) -> Option<usize> {
        match self.bias {
            Bias::Own => Some(self.layer),
            Bias::Borrowed(layer) => Some(layer),
            Bias::None | Bias::Lent | Bias::Idle => None,
        }
    }
}

/// Where a bias is added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bias {
    /// There is none.
    None,
    /// In the node itself.
    Own,
    /// In the pooling after it: `Lent` on the convolution, `Borrowed` from that layer on the pooling.
    Lent,
    Borrowed(usize),
    /// Nowhere: a batch norm follows, which subtracts every constant again. The output does not depend on such a bias,
    /// its gradient is zero, and it keeps its initial value, zero.
    Idle,
}

/// The nodes of a network, each after its sources; the input is not a node.
pub fn nodes(network: &Network) -> Vec<Node> {
    let readers = readers(network);
    let mut taken = vec![false; network.layers.len()];
    taken[0] = true;
    let mut nodes: Vec<Node> = Vec::new();
    for index in 1..network.layers.len() {
        if taken[index] {
            continue;
        }
        let mut node = Node {
            layer: index,
            sources: network.layers[index].sources.clone(),
            residual: false,
            rectifier: Rectifier::of_operation(&network.layers[index].operation),
            output: index,
            bias: bias(network, index),
        };
        absorb_sum(network, &readers, &mut node);
        absorb_rectifier(network, &readers, &mut node);
        (node.layer..=node.output)
            .filter(|&layer| is_part(network, &node, layer))
            .for_each(|layer| taken[layer] = true);
        nodes.push(node);
    }
    lend_to_poolings(network, &readers, &mut nodes);
    nodes
}

/// The layers that read each layer's output.
pub fn readers(network: &Network) -> Vec<Vec<usize>> {
    let mut readers = vec![Vec::new(); network.layers.len()];
    for (index, layer) in network.layers.iter().enumerate() {
        layer.sources.iter().for_each(|&source| readers[source].push(index));
    }
    readers
}

/// Whether `layer` lies between the node's first layer and its last, or is one of them.
fn is_part(network: &Network, node: &Node, layer: usize) -> bool {
    let mut at = node.output;
    loop {
        if at == layer {
            return true;
        }
        let sources = &network.layers[at].sources;
        match sources.iter().max() {
            Some(&before) if before >= node.layer => at = before,
            _ => return false,
        }
    }
}

fn bias(network: &Network, index: usize) -> Bias {
    match &network.layers[index].operation {
        Operation::Conv2d(conv) if !conv.bias => Bias::None,
        Operation::Dense(dense) if !dense.bias => Bias::None,
        Operation::Conv2d(_) | Operation::Dense(_) if network.has_idle_bias(index) => Bias::Idle,
        Operation::Conv2d(_) | Operation::Dense(_) => Bias::Own,
        _ => Bias::None,
    }
}

fn is_norm(network: &Network, layer: usize) -> bool {
    matches!(network.layers[layer].operation, Operation::BatchNorm(_))
}

/// A batch norm takes over the sum after it, where the other summand is computed before it.
fn absorb_sum(network: &Network, readers: &[Vec<usize>], node: &mut Node) {
    if !is_norm(network, node.output) {
        return;
    }
    if let &[sum] = &readers[node.output][..] {
        let layer = &network.layers[sum];
        if let (Operation::Add, &[a, b]) = (&layer.operation, &layer.sources[..]) {
            let other = if a == node.output { b } else { a };
            if other < node.output {
                node.sources.push(other);
                node.residual = true;
                node.output = sum;
            }
        }
    }
}

fn absorb_rectifier(network: &Network, readers: &[Vec<usize>], node: &mut Node) {
    use Operation as O;
    if !matches!(network.layers[node.layer].operation, O::Conv2d(_) | O::Dense(_) | O::BatchNorm(_) | O::Add) {
        return;
    }
    if let &[reader] = &readers[node.output][..] {
        let rectifier = Rectifier::of_operation(&network.layers[reader].operation);
        if rectifier != Rectifier::Identity {
            (node.rectifier, node.output) = (rectifier, reader);
        }
    }
}

/// Applies where only a max-pooling reads a convolution: a maximum commutes with adding a constant and with a
/// rectifier.
fn lend_to_poolings(network: &Network, readers: &[Vec<usize>], nodes: &mut [Node]) {
    for at in 0..nodes.len() {
        let is_pool = matches!(network.layers[nodes[at].layer].operation, Operation::MaxPool2d(_));
        let source = nodes[at].sources[0];
        let Some(before) = nodes[..at].iter().position(|node| node.output == source) else { continue };
        let is_conv = matches!(network.layers[nodes[before].layer].operation, Operation::Conv2d(_));
        if !is_pool || !is_conv || readers[source].len() != 1 {
            continue;
        }
        nodes[at].rectifier = std::mem::replace(&mut nodes[before].rectifier, Rectifier::Identity);
        if nodes[before].bias == Bias::Own {
            nodes[before].bias = Bias::Lent;
            nodes[at].bias = Bias::Borrowed(nodes[before].layer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::{BatchNorm, Builder, Conv2d, Dense, Shape};

    fn network(name: &str) -> Network {
        let (input, classes) = Network::default_input(name).unwrap();
        Network::by_name(name, input, classes).unwrap()
    }

    fn node<'a>(network: &Network, nodes: &'a [Node], name: &str) -> &'a Node {
        nodes.iter().find(|node| network.layers[node.layer].name == name).unwrap()
    }

    #[test]
    fn every_layer_is_computed_once() {
        for name in crate::network::NAMES {
            let network = network(name);
            let nodes = nodes(&network);
            let mut seen = vec![0; network.layers.len()];
            for node in &nodes {
                (node.layer..=node.output).filter(|&l| is_part(&network, node, l)).for_each(|l| seen[l] += 1);
            }
            assert_eq!(seen[0], 0);
            assert!(seen[1..].iter().all(|&times| times == 1), "{name}: {seen:?}");
        }
    }

    #[test]
    fn a_pooling_takes_the_bias_and_the_rectifier_of_the_convolution_before_it() {
        let vgg = network("vgg16");
        let nodes = nodes(&vgg);
        let first = node(&vgg, &nodes, "block1_conv1");
        assert_eq!((first.bias, first.rectifier), (Bias::Own, Rectifier::Relu));
        let second = node(&vgg, &nodes, "block1_conv2");
        assert_eq!((second.bias, second.rectifier), (Bias::Lent, Rectifier::Identity));
        let pool = node(&vgg, &nodes, "block1_pool");
        assert_eq!((pool.bias, pool.rectifier), (Bias::Borrowed(second.layer), Rectifier::Relu));
        // 13 convolutions, 5 poolings, a flattening, 3 dense layers.
        assert_eq!(nodes.len(), 22);
    }

    #[test]
    fn the_end_of_a_residual_block_is_one_node() {
        let resnet = network("resnet50");
        let nodes = nodes(&resnet);
        let last = node(&resnet, &nodes, "conv2_block1_3_bn");
        assert!(last.residual);
        assert_eq!(last.rectifier, Rectifier::Relu);
        assert_eq!(resnet.layers[last.output].name, "conv2_block1_out");
        let shortcut = &resnet.layers[last.sources[1]].name;
        assert_eq!(shortcut, "conv2_block1_0_bn");
        // 53 convolutions, each with a batch norm, a pooling, an average, a dense layer.
        assert_eq!(nodes.len(), 53 + 53 + 3);
        assert_eq!(node(&resnet, &nodes, "conv1_conv").bias, Bias::Idle);
    }

    #[test]
    fn an_output_that_others_read_too_is_left_as_it_is() {
        let mut b = Builder::new("test", Shape::Maps { channels: 2, height: 4, width: 4 }).unwrap();
        let conv = b.then("conv", Conv2d::square(2, 1)).unwrap();
        let norm = b.then("bn", BatchNorm::default()).unwrap();
        b.add("sum", Operation::Add, &[conv, norm]).unwrap();
        b.then("relu", Operation::Relu).unwrap();
        b.then("flatten", Operation::Flatten).unwrap();
        b.then("fc", Dense { out_features: 2, bias: true }).unwrap();
        let network = b.finish().unwrap();
        let nodes = nodes(&network);
        // The batch norm is one of two that read the convolution, so its bias reaches the sum.
        assert_eq!(node(&network, &nodes, "conv").bias, Bias::Own);
        let norm = node(&network, &nodes, "bn");
        assert_eq!((norm.residual, norm.rectifier), (true, Rectifier::Relu));
        assert_eq!(norm.sources, [conv, conv]);
        assert_eq!(nodes.len(), 4);
    }
}
