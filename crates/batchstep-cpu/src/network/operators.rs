//! Small networks that together have every operator, for the checks of an engine.

use std::sync::Arc;

use super::{BatchNorm, Builder, Conv2d, Dense, Extent, MaxPool2d, Network, Operation, Padding, Shape};
use crate::error::Result;

/// The one whose inputs are far above 6.
pub const LARGE: &str = "relu6 of large inputs";

/// A small network around each operator, with odd sizes: 3 channels of 13 x 11 and 5 classes.
///
/// # Errors
/// None in a correct build.
pub fn operators() -> Result<Vec<Arc<Network>>> {
    let each = |n| Padding { top: n, bottom: n, left: n, right: n };
    let conv = |kernel, stride, padding, groups| {
        let (kernel, stride) = (Extent::square(kernel), Extent::square(stride));
        Operation::Conv2d(Conv2d { out_channels: 6, kernel, stride, padding, groups, bias: true })
    };
    let pool = |kernel, stride, padding| {
        Operation::MaxPool2d(MaxPool2d { kernel: Extent::square(kernel), stride: Extent::square(stride), padding })
    };
    let lone_side = Padding { bottom: 1, right: 1, ..Padding::NONE };
    let cases = [
        ("conv2d 3x3", conv(3, 1, each(1), 1)),
        ("conv2d 1x1", conv(1, 1, Padding::NONE, 1)),
        ("conv2d 3x3 stride 2, padded on one side", conv(3, 2, lone_side, 1)),
        ("conv2d 7x7 stride 2", conv(7, 2, each(3), 1)),
        ("conv2d 3x3 in 3 groups", conv(3, 1, each(1), 3)),
        ("depthwise_conv2d 3x3", conv(3, 1, each(1), 6)),
        ("batch_norm", Operation::BatchNorm(BatchNorm::default())),
        ("relu", Operation::Relu),
        ("relu6", Operation::Relu6),
        ("max_pool2d 2x2", pool(2, 2, Padding::NONE)),
        ("max_pool2d 3x3 stride 2", pool(3, 2, each(1))),
        ("dropout", Operation::Dropout { rate: 0.3 }),
        ("global_average_pool", Operation::GlobalAveragePool),
        ("dense", Operation::Flatten),
    ];
    let alone = cases.into_iter().map(|(name, operation)| around(name, &[operation]));
    // What a dropout keeps is ten times as large, and a good part of it is above 6.
    let large = [Operation::Dropout { rate: 0.9 }, Operation::Relu6];
    alone.chain([around(LARGE, &large)]).map(|network| network.map(Arc::new)).collect()
}

/// A convolution before the operators, so that their input's gradient is needed; a dense layer after them.
fn around(name: &str, operations: &[Operation]) -> Result<Network> {
    let mut b = Builder::new(name, Shape::Maps { channels: 3, height: 13, width: 11 })?;
    b.then("before", Conv2d { padding: Padding { top: 1, bottom: 1, left: 1, right: 1 }, ..Conv2d::square(6, 3) })?;
    for (number, operation) in operations.iter().enumerate() {
        let name = if number == 0 { "operator".to_owned() } else { format!("operator_{}", number + 1) };
        b.then(&name, *operation)?;
    }
    if matches!(b.output(b.last()), Shape::Maps { .. }) {
        b.then("flatten", Operation::Flatten)?;
    }
    b.then("after", Dense { out_features: 5, bias: true })?;
    b.finish()
}
