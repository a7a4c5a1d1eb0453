//! Networks as data: layers with shapes, parameters, FLOPs and bytes. No tensor library here.
//!
//! A network comes from the [`catalogue`] by its name, from a list of [`LayerSpec`]s ([`custom`]), or from a [`Builder`].
//! All three check every shape, so that an engine meets only networks that fit together.
//!
//! ```
//! use batchstep_cpu::network::{Direction, Network, Shape};
//!
//! let (input, classes) = Network::default_input("vgg16")?;
//! let network = Network::by_name("vgg16", input, classes)?;
//! assert_eq!(network.output(), Shape::Flat(1000));
//! assert_eq!(network.parameter_count(), 138_357_544);
//!
//! let first = network.cost(1, 32, Direction::Forward, 4).expect("a convolution works");
//! println!("{:.1} GFLOP, at least {:.2} GB moved", first.flops / 1e9, first.bytes / 1e9);
//!
//! let small = Network::by_name("vgg16", Shape::Maps { channels: 3, height: 16, width: 16 }, 10);
//! assert!(small.unwrap_err().to_string().contains("at least 32x32"));
//! # Ok::<(), batchstep_cpu::error::Error>(())
//! ```

pub mod build;
pub mod catalogue;
pub mod cost;
pub mod custom;
pub mod data;
pub mod generated;
pub mod initial;
pub mod layer;
pub mod memory;
pub mod mobilenet;
pub mod operators;
pub mod parameter;
pub mod resnet;
pub mod shape;
pub mod small;
pub mod vgg;
pub mod workload;

#[cfg(test)]
mod tests;

pub use build::Builder;
pub use catalogue::NAMES;
pub use cost::{Cost, Direction, Sides};
pub use custom::{LayerSpec, OperationSpec, PaddingSpec};
pub use generated::{Family, Generated};
pub use layer::{BatchNorm, Conv2d, Dense, Extent, Layer, MaxPool2d, Operation, Padding, Parameter, Shape};
pub use workload::Workload;

/// A feed-forward network: layers in an order in which each comes after its sources. Layer 0 is the input, the last
/// layer gives the output (for a classifier the logits; softmax belongs to the loss). What takes the index of a layer panics
/// where there is no such layer.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    pub name: String,
    pub layers: Vec<Layer>,
}

impl Network {
    /// The shape of one input example.
    pub fn input(&self) -> Shape {
        self.layers[0].output
    }

    /// The shape of one output example.
    pub fn output(&self) -> Shape {
        self.layers[self.layers.len() - 1].output
    }

    /// The shapes that feed layer `index`, in the order of its sources; empty for the input.
    pub fn sources(&self, index: usize) -> impl Iterator<Item = Shape> + '_ {
        self.layers[index].sources.iter().map(|&source| self.layers[source].output)
    }

    /// How often each layer's output is read.
    pub fn readers(&self) -> Vec<usize> {
        let mut readers = vec![0; self.layers.len()];
        self.layers.iter().flat_map(|layer| &layer.sources).for_each(|&source| readers[source] += 1);
        readers
    }

    /// What layer `index` does, in the words of the spec's `type` key; `input` for layer 0. A convolution is
    /// `depthwise_conv2d` where each of its groups sees one channel.
    pub fn operation_name(&self, index: usize) -> &'static str {
        match self.layers[index].operation {
            Operation::Conv2d(conv) => {
                let depthwise = conv.groups > 1 && self.sources(index).all(|shape| shape.channels() == conv.groups);
                if depthwise { "depthwise_conv2d" } else { "conv2d" }
            }
            operation => operation.name(),
        }
    }
}
