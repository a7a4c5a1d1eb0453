//! What a layer is: its operation, its sources, its shape, and the work it takes in each direction.

use std::fmt;

/// The shape of one example between two layers; the batch axis is not part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shape {
    /// Feature maps: channels x height x width.
    Maps { channels: usize, height: usize, width: usize },
    /// A flat vector of features.
    Flat(usize),
}

/// Two numbers that belong to height and width: of a map, of a kernel, of a stride.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Extent {
    pub height: usize,
    pub width: usize,
}

impl Extent {
    pub const fn new(height: usize, width: usize) -> Self {
        Self { height, width }
    }

    /// `side` rows and `side` columns.
    pub const fn square(side: usize) -> Self {
        Self { height: side, width: side }
    }

    /// Rows times columns.
    pub const fn area(self) -> usize {
        self.height * self.width
    }
}

impl From<[usize; 2]> for Extent {
    /// From `[height, width]`.
    fn from([height, width]: [usize; 2]) -> Self {
        Self { height, width }
    }
}

impl fmt::Display for Extent {
    /// `3x3`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.height, self.width)
    }
}

/// Zeros (or, for max-pooling, minus infinities) around a feature map. Keras' `same` with stride 2 pads one side only,
/// so the four sides are separate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Padding {
    pub top: usize,
    pub bottom: usize,
    pub left: usize,
    pub right: usize,
}

impl Padding {
    /// No padding: Keras' `valid`.
    pub const NONE: Self = Self::all(0);

    /// `n` on each of the four sides.
    pub const fn all(n: usize) -> Self {
        Self { top: n, bottom: n, left: n, right: n }
    }

    /// TensorFlow's `same`: the output has ceil(input / stride) rows and columns. An odd number of rows or columns to add
    /// puts the extra one at the bottom or right. A stride of 0 counts as 1.
    ///
    /// Source: <https://www.tensorflow.org/api_docs/python/tf/nn#notes_on_padding_2>.
    pub fn same(input: Extent, kernel: Extent, stride: Extent) -> Self {
        let (top, bottom) = same_along(input.height, kernel.height, stride.height.max(1));
        let (left, right) = same_along(input.width, kernel.width, stride.width.max(1));
        Self { top, bottom, left, right }
    }
}

/// The padding (before, after) of one axis.
fn same_along(input: usize, kernel: usize, stride: usize) -> (usize, usize) {
    let last_start = input.div_ceil(stride).saturating_sub(1).saturating_mul(stride);
    let total = last_start.saturating_add(kernel).saturating_sub(input);
    (total / 2, total - total / 2)
}

/// A two-dimensional convolution (cross-correlation, as every deep-learning library means it).
/// Weights: `out_channels x (in_channels / groups) x kernel.height x kernel.width`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Conv2d {
    pub out_channels: usize,
    pub kernel: Extent,
    pub stride: Extent,
    pub padding: Padding,
    /// 1: dense; equal to the input's channels: depthwise.
    pub groups: usize,
    pub bias: bool,
}

impl Conv2d {
    /// A square kernel with stride 1, no padding, one group, and a bias.
    pub const fn square(out_channels: usize, kernel: usize) -> Self {
        let kernel = Extent::square(kernel);
        Self { out_channels, kernel, stride: Extent::square(1), padding: Padding::NONE, groups: 1, bias: true }
    }
}

/// Max-pooling; padding counts as minus infinity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MaxPool2d {
    pub kernel: Extent,
    pub stride: Extent,
    pub padding: Padding,
}

impl MaxPool2d {
    /// Square windows side by side: the stride is the kernel, without padding.
    pub const fn square(kernel: usize) -> Self {
        Self { kernel: Extent::square(kernel), stride: Extent::square(kernel), padding: Padding::NONE }
    }
}

/// Batch normalisation over (batch, height, width), or only over the batch for flat features.
/// The default is PyTorch's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BatchNorm {
    pub epsilon: f64,
    /// As in Keras: `running = momentum * running + (1 - momentum) * batch`. PyTorch's `momentum` is 1 minus this.
    pub momentum: f64,
}

impl Default for BatchNorm {
    fn default() -> Self {
        Self { epsilon: 1e-5, momentum: 0.9 }
    }
}

/// A fully connected layer. Weights: `out_features x in_features`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Dense {
    pub out_features: usize,
    pub bias: bool,
}

/// The operation of a layer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Operation {
    /// The batch as it comes from the data source; always, and only, layer 0.
    Input,
    Conv2d(Conv2d),
    BatchNorm(BatchNorm),
    Relu,
    /// min(max(x, 0), 6).
    Relu6,
    MaxPool2d(MaxPool2d),
    /// Mean over height and width: maps to flat.
    GlobalAveragePool,
    /// Maps to flat, channel-major (C, H, W).
    Flatten,
    Dense(Dense),
    /// Zeroes a share `rate` of the features, scales the rest by 1 / (1 - rate).
    Dropout {
        rate: f64,
    },
    /// Sum of two equal shapes (a residual connection).
    Add,
}

macro_rules! operations {
    ($($name:ident),+) => {$(
        impl From<$name> for Operation {
            fn from(operation: $name) -> Self {
                Self::$name(operation)
            }
        }
    )+};
}
operations!(Conv2d, BatchNorm, MaxPool2d, Dense);

/// A parameter tensor, or a piece of state, of a layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// `weight`, `bias`, `gamma`, `beta`, `running_mean`, `running_variance`.
    pub name: &'static str,
    pub dims: Vec<usize>,
    /// False for the running statistics of a batch norm.
    pub trainable: bool,
}

impl Parameter {
    /// The number of scalars.
    pub fn count(&self) -> usize {
        self.dims.iter().product()
    }
}

/// One layer of a network.
#[derive(Clone, Debug, PartialEq)]
pub struct Layer {
    /// Unique in the network, in Keras' style: `block1_conv1`, `conv2_block1_1_bn`.
    pub name: String,
    pub operation: Operation,
    /// Indices of the layers that feed this one; all smaller than its own. Empty for the input, two for `Add`.
    pub sources: Vec<usize>,
    /// The shape of its output.
    pub output: Shape,
}

#[cfg(test)]
mod tests {
    use super::*;

    // By the rule in TensorFlow's notes on padding: 224 % 2 == 0, so max(3 - 2, 0) = 1 in all, 0 before and 1 after;
    // 225 % 2 == 1, so max(3 - 1, 0) = 2 in all, 1 before and 1 after. An even kernel pads after, too.
    #[test]
    fn same_padding_is_symmetric_or_has_the_odd_one_at_the_bottom_and_right() {
        let square = Extent::square;
        for (input, kernel, stride, padding) in [
            (square(224), square(3), square(1), Padding::all(1)),
            (square(7), square(5), square(1), Padding::all(2)),
            (Extent::new(224, 225), square(3), square(2), Padding { top: 0, bottom: 1, left: 1, right: 1 }),
            (square(8), Extent::new(2, 4), square(1), Padding { top: 0, bottom: 1, left: 1, right: 2 }),
            // A stride longer than the kernel needs none.
            (square(8), square(1), square(2), Padding::NONE),
        ] {
            assert_eq!(Padding::same(input, kernel, stride), padding);
        }
    }
}
