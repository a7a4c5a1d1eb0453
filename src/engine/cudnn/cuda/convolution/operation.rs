//! The operations of a convolution as cuDNN's graph API takes them, with their tensors.
//!
//! Tensors have the numbers [`X`], [`W`], [`Y`] and [`BIAS`] in every direction: y is the output of the forward pass,
//! and in a backward pass its gradient, which is then an input. Groups follow from the channels of x and of w. The
//! parts of an operation go to `parts`, which is kept as long as the operation.

use crate::engine::cudnn::cuda::api::cudnn as sys;

use super::descriptor::{Descriptor, Kind, Name, Type};
use crate::engine::cudnn::call::{Convolution, ConvolutionKind};
use crate::engine::cudnn::element::Element;
use crate::engine::cudnn::feature_maps::FeatureMaps;
use crate::error::Result;
use crate::network::Extent;
use crate::settings::Layout;

/// Tensors' numbers.
pub const X: i64 = 1;
pub const W: i64 = 2;
pub const Y: i64 = 3;
pub const BIAS: i64 = 4;
/// The results of the convolution and of the addition of the bias, which are not stored in memory.
const CONVOLVED: i64 = 5;
const BIASED: i64 = 6;

/// Every tensor of a plan begins at a multiple of 256 bytes; cuDNN requires at most 16.
const ALIGNMENT: i64 = 16;

/// The operations of a direction, in their order.
///
/// # Errors
/// [`crate::error::Kind::Engine`] where cuDNN cannot express such a convolution.
pub fn operations(
    convolution: &Convolution,
    kind: ConvolutionKind,
    parts: &mut Vec<Descriptor>,
) -> Result<Vec<Descriptor>> {
    if kind == ConvolutionKind::ForwardBiasRelu {
        return fused(convolution, parts);
    }
    let y = tensor(Y, &convolution.output, data_type(convolution.element) as i32, false)?;
    let operation = convolve(convolution, kind, &y, parts)?;
    parts.push(y);
    Ok(vec![operation])
}

/// A convolution, the addition of a bias for each channel, and the rectifier. The values between them are float32.
fn fused(convolution: &Convolution, parts: &mut Vec<Descriptor>) -> Result<Vec<Descriptor>> {
    let element = data_type(convolution.element) as i32;
    let output = &convolution.output;
    let convolved = tensor(CONVOLVED, output, FLOAT, true)?;
    let biased = tensor(BIASED, output, FLOAT, true)?;
    let y = tensor(Y, output, element, false)?;
    let one = FeatureMaps { batch: 1, height: 1, width: 1, ..*output };
    let bias = tensor(BIAS, &one, element, false)?;
    let first = convolve(convolution, ConvolutionKind::Forward, &convolved, parts)?;
    let add = pointwise(sys::cudnnPointwiseMode_t::CUDNN_POINTWISE_ADD, parts, [&convolved, &biased], Some(&bias))?;
    let rectify = pointwise(sys::cudnnPointwiseMode_t::CUDNN_POINTWISE_RELU_FWD, parts, [&biased, &y], None)?;
    parts.extend([convolved, biased, y, bias]);
    Ok(vec![first, add, rectify])
}

/// The convolution of one direction whose tensor y, or its gradient, is given.
fn convolve(
    convolution: &Convolution,
    kind: ConvolutionKind,
    y: &Descriptor,
    parts: &mut Vec<Descriptor>,
) -> Result<Descriptor> {
    let element = data_type(convolution.element) as i32;
    let x = tensor(X, &convolution.input, element, false)?;
    let w = tensor(W, &weights(convolution), element, false)?;
    let shape = Descriptor::new(Kind::CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR)?;
    let pair = |Extent { height, width }: Extent| [height as i64, width as i64];
    let correlation = sys::cudnnConvolutionMode_t::CUDNN_CROSS_CORRELATION as i32;
    shape.set_number(Name::CUDNN_ATTR_CONVOLUTION_COMP_TYPE, Type::CUDNN_TYPE_DATA_TYPE, FLOAT)?;
    shape.set_number(Name::CUDNN_ATTR_CONVOLUTION_CONV_MODE, Type::CUDNN_TYPE_CONVOLUTION_MODE, correlation)?;
    shape.set(Name::CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, &[2_i64])?;
    shape.set(Name::CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, &pair(convolution.padding))?;
    shape.set(Name::CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, &pair(convolution.padding))?;
    shape.set(Name::CUDNN_ATTR_CONVOLUTION_DILATIONS, &[1_i64; 2])?;
    shape.set(Name::CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, &pair(convolution.stride))?;
    shape.finalize("a convolution")?;
    let names = names(kind);
    let operation = Descriptor::new(names.operation)?;
    operation.set_descriptors(names.x, &[&x])?;
    operation.set_descriptors(names.w, &[&w])?;
    operation.set_descriptors(names.y, &[y])?;
    operation.set_descriptors(names.shape, &[&shape])?;
    operation.set(names.alpha, &[1.0_f32])?;
    operation.set(names.beta, &[0.0_f32])?;
    operation.finalize("the operation of a convolution")?;
    parts.extend([x, w, shape]);
    Ok(operation)
}

/// The names of a direction's operation and its attributes.
struct Names {
    operation: Kind,
    x: Name,
    w: Name,
    y: Name,
    shape: Name,
    alpha: Name,
    beta: Name,
}

fn names(kind: ConvolutionKind) -> Names {
    match kind {
        ConvolutionKind::Forward | ConvolutionKind::ForwardBiasRelu => Names {
            operation: Kind::CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
            x: Name::CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
            w: Name::CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
            y: Name::CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
            shape: Name::CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
            alpha: Name::CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
            beta: Name::CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
        },
        ConvolutionKind::BackwardData => Names {
            operation: Kind::CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
            x: Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
            w: Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
            y: Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
            shape: Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
            alpha: Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
            beta: Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
        },
        ConvolutionKind::BackwardWeights => Names {
            operation: Kind::CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
            x: Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
            w: Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
            y: Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
            shape: Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
            alpha: Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
            beta: Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
        },
    }
}

/// An elementwise operation, from the first of `ends` to the second, in float32.
fn pointwise(
    mode: sys::cudnnPointwiseMode_t,
    parts: &mut Vec<Descriptor>,
    ends: [&Descriptor; 2],
    second: Option<&Descriptor>,
) -> Result<Descriptor> {
    let what = Descriptor::new(Kind::CUDNN_BACKEND_POINTWISE_DESCRIPTOR)?;
    what.set_number(Name::CUDNN_ATTR_POINTWISE_MODE, Type::CUDNN_TYPE_POINTWISE_MODE, mode as i32)?;
    what.set_number(Name::CUDNN_ATTR_POINTWISE_MATH_PREC, Type::CUDNN_TYPE_DATA_TYPE, FLOAT)?;
    what.finalize("a pointwise function")?;
    let operation = Descriptor::new(Kind::CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR)?;
    operation.set_descriptors(Name::CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, &[&what])?;
    operation.set_descriptors(Name::CUDNN_ATTR_OPERATION_POINTWISE_XDESC, &[ends[0]])?;
    if let Some(second) = second {
        operation.set_descriptors(Name::CUDNN_ATTR_OPERATION_POINTWISE_BDESC, &[second])?;
    }
    operation.set_descriptors(Name::CUDNN_ATTR_OPERATION_POINTWISE_YDESC, &[ends[1]])?;
    operation.finalize("a pointwise operation")?;
    parts.push(what);
    Ok(operation)
}

/// cudnnDataType_t, as a number.
const FLOAT: i32 = sys::cudnnDataType_t::CUDNN_DATA_FLOAT as i32;

pub fn data_type(element: Element) -> sys::cudnnDataType_t {
    match element {
        Element::F32 => sys::cudnnDataType_t::CUDNN_DATA_FLOAT,
        Element::F16 => sys::cudnnDataType_t::CUDNN_DATA_HALF,
        Element::Bf16 => sys::cudnnDataType_t::CUDNN_DATA_BFLOAT16,
    }
}

/// The weights, K x (C / groups) x R x S, as feature maps: each layout orders both alike.
pub fn weights(convolution: &Convolution) -> FeatureMaps {
    FeatureMaps {
        batch: convolution.output.channels,
        channels: convolution.input.channels / convolution.groups.max(1),
        height: convolution.kernel.height,
        width: convolution.kernel.width,
        layout: convolution.input.layout,
    }
}

/// With its sizes and strides along N, C, H, W whatever the layout.
fn tensor(number: i64, maps: &FeatureMaps, data_type: i32, is_virtual: bool) -> Result<Descriptor> {
    let sizes = [maps.batch, maps.channels, maps.height, maps.width].map(|size| size as i64);
    let tensor = Descriptor::new(Kind::CUDNN_BACKEND_TENSOR_DESCRIPTOR)?;
    tensor.set_number(Name::CUDNN_ATTR_TENSOR_DATA_TYPE, Type::CUDNN_TYPE_DATA_TYPE, data_type)?;
    tensor.set(Name::CUDNN_ATTR_TENSOR_DIMENSIONS, &sizes)?;
    tensor.set(Name::CUDNN_ATTR_TENSOR_STRIDES, &maps.strides().map(|stride| stride as i64))?;
    tensor.set(Name::CUDNN_ATTR_TENSOR_UNIQUE_ID, &[number])?;
    tensor.set(Name::CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, &[ALIGNMENT])?;
    if is_virtual {
        tensor.set(Name::CUDNN_ATTR_TENSOR_IS_VIRTUAL, &[true])?;
    }
    let layout = if maps.layout == Layout::Nhwc { "NHWC" } else { "NCHW" };
    tensor.finalize(format_args!("a tensor of {sizes:?}, {layout}"))?;
    Ok(tensor)
}
