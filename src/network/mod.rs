//! Networks as data: layers with shapes, parameters, FLOPs and bytes. No tensor library here.

pub mod layer;

pub use layer::{BatchNorm, Conv2d, Dense, Layer, MaxPool2d, Operation, Padding, Parameter, Shape};

/// A feed-forward network: layers in an order in which each comes after its sources. Layer 0 is the input, the last
/// layer gives the output (for a classifier the logits; softmax belongs to the loss).
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
}
