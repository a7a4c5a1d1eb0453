//! VGG16 and VGG19 as in Keras applications: 3x3 convolutions with a bias, no batch norm, no dropout.
//!
//! Source: Simonyan and Zisserman, "Very deep convolutional networks for large-scale image recognition", configurations D
//! and E, <https://arxiv.org/abs/1409.1556>; layer names from `keras.applications.vgg16`. Keras fuses each ReLU into the
//! layer before it; here it is a layer of its own, named after that one.

use super::Network;
use super::build::Builder;
use super::layer::{Conv2d, Dense, MaxPool2d, Operation, Padding, Shape};
use crate::error::Result;

/// The configuration with `convolutions` in its five blocks, and 3 dense layers.
///
/// # Errors
/// [`crate::error::Kind::Spec`] where `input` is not maps of at least 32x32, or `classes` is 0.
pub fn vgg(name: &str, convolutions: [usize; 5], input: Shape, classes: usize) -> Result<Network> {
    let mut b = Builder::new(name, input)?;
    for ((block, count), channels) in (1..).zip(convolutions).zip([64, 128, 256, 512, 512]) {
        for i in 1..=count {
            let conv = format!("block{block}_conv{i}");
            b.then(conv.as_str(), Conv2d { padding: Padding::all(1), ..Conv2d::square(channels, 3) })?;
            b.then(format!("{conv}_relu"), Operation::Relu)?;
        }
        b.then(format!("block{block}_pool"), MaxPool2d::square(2))?;
    }
    b.then("flatten", Operation::Flatten)?;
    for fc in ["fc1", "fc2"] {
        b.then(fc, Dense { out_features: 4096, bias: true })?;
        b.then(format!("{fc}_relu"), Operation::Relu)?;
    }
    b.then("predictions", Dense { out_features: classes, bias: true })?;
    b.finish()
}
