//! MobileNet v1 of width 1.0, as in Keras applications.
//!
//! Source: Howard et al., "MobileNets: efficient convolutional neural networks for mobile vision applications",
//! <https://arxiv.org/abs/1704.04861>; names and details from `keras.applications.mobilenet`. Two of its layers are
//! folded, with the same arithmetic: `conv_pad_*` (a row and a column of zeros at the bottom and right) is the padding of
//! the depthwise convolution after it, and `conv_preds`, there a 1x1 convolution of a 1x1 map, is a dense layer.

use super::Network;
use super::build::Builder;
use super::layer::{BatchNorm, Conv2d, Dense, Extent, Operation, Padding, Shape};
use crate::error::Result;

/// Keras' own defaults, not the paper's.
const NORM: BatchNorm = BatchNorm { epsilon: 1e-3, momentum: 0.99 };

/// Channels after the pointwise convolution, and stride of the depthwise one, of each block.
const BLOCKS: [(usize, usize); 13] = [
    (64, 1),
    (128, 2),
    (128, 1),
    (256, 2),
    (256, 1),
    (512, 2),
    (512, 1),
    (512, 1),
    (512, 1),
    (512, 1),
    (512, 1),
    (1024, 2),
    (1024, 1),
];

/// MobileNet v1: one dense convolution, 13 depthwise-separable blocks, and a classifier.
///
/// # Errors
/// [`crate::error::Kind::Spec`] where `input` is not maps of at least 31x31, or `classes` is 0.
pub fn mobilenet(input: Shape, classes: usize) -> Result<Network> {
    let mut b = Builder::new("mobilenet", input)?;
    let padding = match input {
        Shape::Maps { height, width, .. } => {
            Padding::same(Extent { height, width }, Extent::square(3), Extent::square(2))
        }
        Shape::Flat(_) => Padding::NONE,
    };
    let first = Conv2d { stride: Extent::square(2), padding, bias: false, ..Conv2d::square(32, 3) };
    conv_norm_relu6(&mut b, "conv1", first)?;

    let mut channels = 32;
    for (i, (out, stride)) in (1..).zip(BLOCKS) {
        let padding = if stride == 1 { Padding::all(1) } else { Padding { top: 0, bottom: 1, left: 0, right: 1 } };
        let depthwise = Conv2d {
            stride: Extent::square(stride),
            padding,
            groups: channels,
            bias: false,
            ..Conv2d::square(channels, 3)
        };
        conv_norm_relu6(&mut b, &format!("conv_dw_{i}"), depthwise)?;
        conv_norm_relu6(&mut b, &format!("conv_pw_{i}"), Conv2d { bias: false, ..Conv2d::square(out, 1) })?;
        channels = out;
    }

    b.then("global_average_pooling2d", Operation::GlobalAveragePool)?;
    b.then("dropout", Operation::Dropout { rate: 1e-3 })?;
    b.then("conv_preds", Dense { out_features: classes, bias: true })?;
    b.finish()
}

fn conv_norm_relu6(b: &mut Builder, name: &str, conv: Conv2d) -> Result<()> {
    b.then(name, conv)?;
    b.then(format!("{name}_bn"), NORM)?;
    b.then(format!("{name}_relu"), Operation::Relu6)?;
    Ok(())
}
