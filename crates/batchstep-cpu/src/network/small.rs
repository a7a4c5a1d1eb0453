//! Small networks: a perceptron whose step is almost all overhead, with hardly any arithmetic; and a convolutional network
//! for 28x28 digits, quick on a CPU, with every kind of layer but residual ones.

use super::Network;
use super::build::Builder;
use super::layer::{BatchNorm, Conv2d, Dense, MaxPool2d, Operation, Padding, Shape};
use crate::error::Result;

/// Dense layers of 20, 5 and `outputs` features, with ReLU between them; made to fit a surface over two inputs.
///
/// # Errors
/// [`crate::error::Kind::Spec`] where `input` is not flat, or `outputs` is 0.
pub fn mlp(input: Shape, outputs: usize) -> Result<Network> {
    let mut b = Builder::new("mlp", input)?;
    for (i, features) in (1..).zip([20, 5]) {
        b.then(format!("fc{i}"), Dense { out_features: features, bias: true })?;
        b.then(format!("fc{i}_relu"), Operation::Relu)?;
    }
    b.then("output", Dense { out_features: outputs, bias: true })?;
    b.finish()
}

/// Three blocks (3x3 convolution to 32, 64, 128 channels; batch norm; ReLU; 2x2 max-pooling), then dense layers of 256, 128
/// and `classes` features with ReLU and dropout of one half between them.
///
/// # Errors
/// [`crate::error::Kind::Spec`] where `input` is not maps of at least 8x8, or `classes` is 0.
pub fn mnist_cnn(input: Shape, classes: usize) -> Result<Network> {
    let mut b = Builder::new("mnist_cnn", input)?;
    for (block, channels) in (1..).zip([32, 64, 128]) {
        b.then(format!("block{block}_conv"), Conv2d { padding: Padding::all(1), ..Conv2d::square(channels, 3) })?;
        b.then(format!("block{block}_bn"), BatchNorm::default())?;
        b.then(format!("block{block}_relu"), Operation::Relu)?;
        b.then(format!("block{block}_pool"), MaxPool2d::square(2))?;
    }
    b.then("flatten", Operation::Flatten)?;
    for (i, features) in (1..).zip([256, 128]) {
        b.then(format!("fc{i}"), Dense { out_features: features, bias: true })?;
        b.then(format!("fc{i}_relu"), Operation::Relu)?;
        b.then(format!("fc{i}_dropout"), Operation::Dropout { rate: 0.5 })?;
    }
    b.then("predictions", Dense { out_features: classes, bias: true })?;
    b.finish()
}
