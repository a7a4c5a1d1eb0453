//! Which layers are computed together.
//!
//! A layer that works element by element on the output of one other layer costs an extra pass over memory, unless it is
//! computed while that output is written. So a rectifier joins the convolution, dense layer, batch norm or sum before
//! it; a sum joins the later of two batch norms that are its inputs; and a max-pooling takes over the bias and the
//! rectifier of the convolution before it, on a quarter of the elements.

use crate::engine::cpu::op::activation::Rectifier;
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
    /// The layer whose bias the node adds: a convolution or a dense layer itself, or the convolution before a pooling, which
    /// then adds none. Before a batch norm, which subtracts every constant again, nobody adds a bias: the output does not
    /// depend on it, its gradient is zero, and it keeps its initial value, zero.
    pub bias: Option<usize>,
}

/// The nodes of a network, each after its sources; the input is not a node.
pub fn nodes(network: &Network) -> Vec<Node> {
    let readers = readers(network);
    // Layers that an earlier node computes too.
    let mut taken = vec![false; network.layers.len()];
    let mut nodes: Vec<Node> = Vec::new();
    for index in 1..network.layers.len() {
        if taken[index] {
            continue;
        }
        let mut node = Node {
            layer: index,
            sources: network.layers[index].sources.clone(),
            residual: false,
            rectifier: Rectifier::of(&network.layers[index].operation),
            output: index,
            bias: bias(network, index),
        };
        absorb_sum(network, &readers, &mut node);
        taken[node.output] = true;
        absorb_rectifier(network, &readers, &mut node);
        taken[node.output] = true;
        nodes.push(node);
    }
    lend_to_poolings(network, &readers, &mut nodes);
    nodes
}

/// The layers that read each layer's output.
fn readers(network: &Network) -> Vec<Vec<usize>> {
    let mut readers = vec![Vec::new(); network.layers.len()];
    for (index, layer) in network.layers.iter().enumerate() {
        layer.sources.iter().for_each(|&source| readers[source].push(index));
    }
    readers
}

fn bias(network: &Network, index: usize) -> Option<usize> {
    let has_bias = match &network.layers[index].operation {
        Operation::Conv2d(conv) => conv.bias,
        Operation::Dense(dense) => dense.bias,
        _ => false,
    };
    (has_bias && !network.has_idle_bias(index)).then_some(index)
}

/// A batch norm takes over the sum after it, where the other summand is computed before it.
fn absorb_sum(network: &Network, readers: &[Vec<usize>], node: &mut Node) {
    let is_norm = matches!(network.layers[node.layer].operation, Operation::BatchNorm(_));
    let (true, &[sum]) = (is_norm, &readers[node.layer][..]) else { return };
    if let (Operation::Add, &[a, b]) = (&network.layers[sum].operation, &network.layers[sum].sources[..]) {
        let other = if a == node.layer { b } else { a };
        if other < node.layer {
            node.sources.push(other);
            (node.residual, node.output) = (true, sum);
        }
    }
}

fn absorb_rectifier(network: &Network, readers: &[Vec<usize>], node: &mut Node) {
    use Operation as O;
    if !matches!(network.layers[node.layer].operation, O::Conv2d(_) | O::Dense(_) | O::BatchNorm(_) | O::Add) {
        return;
    }
    if let &[reader] = &readers[node.output][..] {
        let rectifier = Rectifier::of(&network.layers[reader].operation);
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
        nodes[at].bias = nodes[before].bias.take();
    }
}
