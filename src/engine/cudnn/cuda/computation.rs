//! The computations for which a library chooses an algorithm, and their names in messages.

use std::fmt;

use crate::engine::cudnn::call::{Call, Convolution, ConvolutionKind, Epilogue, Product};
use crate::engine::cudnn::element::Math;
use crate::settings::Layout;

/// A computation for which a library chooses an algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Computation {
    Convolution(Convolution, ConvolutionKind),
    Product(Product, Finish),
}

impl Computation {
    /// The computation of a call; `None` where there is nothing to choose.
    pub fn of(call: &Call) -> Option<Self> {
        match call {
            Call::Convolution(convolution, task) => Some(Self::Convolution(*convolution, task.kind)),
            Call::Gemm(gemm) => Some(Self::Product(gemm.product, Finish::of(gemm.epilogue))),
            Call::Launch(_) | Call::Zero(_) => None,
        }
    }
}

/// `product 64x25088 by 25088x4096 (second transposed), bias and ReLU, f32 as tf32`.
impl fmt::Display for Computation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (product, finish) = match self {
            Self::Convolution(convolution, kind) => return write_convolution(convolution, *kind, f),
            Self::Product(product, finish) => (product, finish),
        };
        let Product { element, math, m, n, k, transpose_a, transpose_b } = product;
        let transposed = match (transpose_a, transpose_b) {
            (false, false) => "",
            (true, false) => " (first transposed)",
            (false, true) => " (second transposed)",
            (true, true) => " (both transposed)",
        };
        let finish = match finish {
            Finish::Nothing => "",
            Finish::Bias => ", bias",
            Finish::BiasRelu => ", bias and ReLU",
        };
        let math = if *math == Math::Tf32 { " as tf32" } else { "" };
        write!(f, "product {m}x{k} by {k}x{n}{transposed}{finish}, {}{math}", element.name())
    }
}

/// The epilogue of a product, without its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Finish {
    Nothing,
    Bias,
    BiasRelu,
}

impl Finish {
    pub fn of(epilogue: Epilogue) -> Self {
        match epilogue {
            Epilogue::Nothing => Self::Nothing,
            Epilogue::Bias(_) => Self::Bias,
            Epilogue::BiasRelu(_) => Self::BiasRelu,
        }
    }
}

/// `forward convolution 64x3x224x224 -> 64x64x224x224, 3x3, nchw, f32`.
fn write_convolution(convolution: &Convolution, kind: ConvolutionKind, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let Convolution { element, math, input, output, kernel, stride, padding, groups } = convolution;
    let kind = match kind {
        ConvolutionKind::Forward => "forward",
        ConvolutionKind::ForwardBiasRelu => "forward, bias and ReLU of",
        ConvolutionKind::BackwardData => "backward-data",
        ConvolutionKind::BackwardWeights => "backward-weights",
    };
    let layout = if input.layout == Layout::Nhwc { "nhwc" } else { "nchw" };
    let math = if *math == Math::Tf32 { " as tf32" } else { "" };
    let (n, c, h, w) = (input.batch, input.channels, input.height, input.width);
    let (k, p, q) = (output.channels, output.height, output.width);
    write!(f, "{kind} convolution {n}x{c}x{h}x{w} -> {n}x{k}x{p}x{q}, {}x{}", kernel.height, kernel.width)?;
    write!(f, " stride {}x{} padding {}x{}", stride.height, stride.width, padding.height, padding.width)?;
    write!(f, " groups {groups}, {layout}, {}{math}", element.name())
}
