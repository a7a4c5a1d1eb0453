//! ResNet50 twice: v1 as in Keras applications, and v1.5 as in torchvision.
//!
//! Source: He et al., "Deep residual learning for image recognition", <https://arxiv.org/abs/1512.03385>; names from
//! `keras.applications.resnet`. A block that shrinks its maps does so in its first 1x1 convolution in v1, and in its
//! 3x3 convolution in v1.5, which costs 6 % more work and gains half a per cent of accuracy
//! (<https://catalog.ngc.nvidia.com/orgs/nvidia/resources/resnet_50_v1_5_for_pytorch>). Keras pads the first pooling with
//! zeros; the pooled values have passed a ReLU, so minus infinity gives the same.

use super::Network;
use super::build::Builder;
use super::layer::{BatchNorm, Conv2d, Dense, Extent, MaxPool2d, Operation, Padding, Shape};
use crate::error::Result;

/// What the two versions differ in.
#[derive(Clone, Copy)]
struct Version {
    name: &'static str,
    bias: bool,
    /// Whether a block strides in its first 1x1 convolution, or else in its 3x3 one.
    stride_first: bool,
    norm: BatchNorm,
}

/// ResNet50 v1 as Keras builds it: convolutions with a bias, the stride in the first convolution of a block.
///
/// # Errors
/// [`crate::error::Kind::Spec`] where `input` is not maps, or `classes` is 0.
pub fn resnet50(input: Shape, classes: usize) -> Result<Network> {
    let norm = BatchNorm { epsilon: 1.001e-5, momentum: 0.99 };
    Version { name: "resnet50", bias: true, stride_first: true, norm }.build(input, classes)
}

/// ResNet50 v1.5 as torchvision builds it: convolutions without a bias, the stride in the 3x3 convolution of a block.
/// Its layers carry Keras' names, so that both versions can be compared layer by layer.
///
/// # Errors
/// As [`resnet50`].
pub fn resnet50_v1_5(input: Shape, classes: usize) -> Result<Network> {
    let norm = BatchNorm { epsilon: 1e-5, momentum: 0.9 };
    Version { name: "resnet50_v1_5", bias: false, stride_first: false, norm }.build(input, classes)
}

impl Version {
    fn build(self, input: Shape, classes: usize) -> Result<Network> {
        let mut b = Builder::new(self.name, input)?;
        let stem = Conv2d { stride: Extent::square(2), padding: Padding::all(3), ..self.conv(64, 7) };
        b.then("conv1_conv", stem)?;
        b.then("conv1_bn", self.norm)?;
        b.then("conv1_relu", Operation::Relu)?;
        b.then(
            "pool1_pool",
            MaxPool2d { kernel: Extent::square(3), stride: Extent::square(2), padding: Padding::all(1) },
        )?;

        for (stage, channels, blocks) in [(2, 64, 3), (3, 128, 4), (4, 256, 6), (5, 512, 3)] {
            for block in 1..=blocks {
                let stride = if block == 1 && stage > 2 { 2 } else { 1 };
                self.block(&mut b, &format!("conv{stage}_block{block}"), channels, stride, block == 1)?;
            }
        }

        b.then("avg_pool", Operation::GlobalAveragePool)?;
        b.then("predictions", Dense { out_features: classes, bias: true })?;
        b.finish()
    }

    /// A bottleneck: 1x1, 3x3, 1x1 to four times the channels, added to the input or to its 1x1 `projection`.
    fn block(self, b: &mut Builder, name: &str, channels: usize, stride: usize, projection: bool) -> Result<()> {
        let input = b.last();
        let strided =
            |conv: Conv2d, here: bool| if here { Conv2d { stride: Extent::square(stride), ..conv } } else { conv };
        let shortcut = if projection {
            b.then(format!("{name}_0_conv"), strided(self.conv(4 * channels, 1), true))?;
            b.then(format!("{name}_0_bn"), self.norm)?
        } else {
            input
        };

        b.add(format!("{name}_1_conv"), strided(self.conv(channels, 1), self.stride_first), &[input])?;
        b.then(format!("{name}_1_bn"), self.norm)?;
        b.then(format!("{name}_1_relu"), Operation::Relu)?;
        let middle = Conv2d { padding: Padding::all(1), ..self.conv(channels, 3) };
        b.then(format!("{name}_2_conv"), strided(middle, !self.stride_first))?;
        b.then(format!("{name}_2_bn"), self.norm)?;
        b.then(format!("{name}_2_relu"), Operation::Relu)?;
        b.then(format!("{name}_3_conv"), self.conv(4 * channels, 1))?;
        let residual = b.then(format!("{name}_3_bn"), self.norm)?;

        b.add(format!("{name}_add"), Operation::Add, &[shortcut, residual])?;
        b.then(format!("{name}_out"), Operation::Relu)?;
        Ok(())
    }

    fn conv(self, channels: usize, kernel: usize) -> Conv2d {
        Conv2d { bias: self.bias, ..Conv2d::square(channels, kernel) }
    }
}
