//! The descriptors of cuDNN's older calls: tensors, weights, a convolution, a rectifier.

use crate::engine::cudnn::cuda::api::cudnn as sys;

use super::algorithm::MathType;
use crate::engine::cudnn::call::Convolution;
use crate::engine::cudnn::cuda::status;
use crate::engine::cudnn::element::Element;
use crate::engine::cudnn::feature_maps::FeatureMaps;
use crate::error::{Error, Result};
use crate::settings::Layout;

/// Defines the owner of one kind of descriptor, and how it is created.
macro_rules! descriptor {
    ($name:ident, $raw:ty, $create:path, $destroy:path) => {
        owned!($name, $raw, $destroy);

        impl $name {
            fn create() -> Result<Self> {
                let mut raw = std::ptr::null_mut();
                // SAFETY: it writes one pointer.
                status::cudnn("create a descriptor", unsafe { $create(&raw mut raw) })?;
                Ok(Self(raw))
            }
        }
    };
}

descriptor!(Tensor, sys::cudnnTensorDescriptor_t, sys::cudnnCreateTensorDescriptor, sys::cudnnDestroyTensorDescriptor);
descriptor!(Filter, sys::cudnnFilterDescriptor_t, sys::cudnnCreateFilterDescriptor, sys::cudnnDestroyFilterDescriptor);
descriptor!(
    Geometry,
    sys::cudnnConvolutionDescriptor_t,
    sys::cudnnCreateConvolutionDescriptor,
    sys::cudnnDestroyConvolutionDescriptor
);
descriptor!(
    Activation,
    sys::cudnnActivationDescriptor_t,
    sys::cudnnCreateActivationDescriptor,
    sys::cudnnDestroyActivationDescriptor
);

fn int(size: usize) -> Result<i32> {
    i32::try_from(size).map_err(|_| Error::engine(format!("a size of {size} is too large for cuDNN's older calls")))
}

fn data_type(element: Element) -> sys::cudnnDataType_t {
    match element {
        Element::F32 => sys::cudnnDataType_t::CUDNN_DATA_FLOAT,
        Element::F16 => sys::cudnnDataType_t::CUDNN_DATA_HALF,
        Element::Bf16 => sys::cudnnDataType_t::CUDNN_DATA_BFLOAT16,
    }
}

fn format(layout: Layout) -> sys::cudnnTensorFormat_t {
    match layout {
        Layout::Nchw => sys::cudnnTensorFormat_t::CUDNN_TENSOR_NCHW,
        Layout::Nhwc => sys::cudnnTensorFormat_t::CUDNN_TENSOR_NHWC,
    }
}

impl Tensor {
    pub fn new(maps: &FeatureMaps, element: Element) -> Result<Self> {
        let tensor = Self::create()?;
        let [n, c, h, w] = [maps.batch, maps.channels, maps.height, maps.width].map(int);
        let (n, c, h, w) = (n?, c?, h?, w?);
        // SAFETY: it lives.
        let answer =
            unsafe { sys::cudnnSetTensor4dDescriptor(tensor.0, format(maps.layout), data_type(element), n, c, h, w) };
        status::cudnn("describe a tensor", answer)?;
        Ok(tensor)
    }
}

impl Filter {
    pub fn new(convolution: &Convolution) -> Result<Self> {
        let filter = Self::create()?;
        let (k, c) = (int(convolution.output.channels)?, int(convolution.input.channels / convolution.groups.max(1))?);
        let (r, s) = (int(convolution.kernel.height)?, int(convolution.kernel.width)?);
        let (kind, order) = (data_type(convolution.element), format(convolution.input.layout));
        // SAFETY: it lives.
        status::cudnn("describe weights", unsafe {
            sys::cudnnSetFilter4dDescriptor(filter.0, kind, order, k, c, r, s)
        })?;
        Ok(filter)
    }
}

impl Geometry {
    pub fn new(convolution: &Convolution) -> Result<Self> {
        let made = Self::create()?;
        let (pad_h, pad_w) = (int(convolution.padding.height)?, int(convolution.padding.width)?);
        let (stride_h, stride_w) = (int(convolution.stride.height)?, int(convolution.stride.width)?);
        let groups = int(convolution.groups)?;
        let mode = sys::cudnnConvolutionMode_t::CUDNN_CROSS_CORRELATION;
        let float = sys::cudnnDataType_t::CUDNN_DATA_FLOAT;
        // SAFETY: it lives.
        status::cudnn("describe a convolution", unsafe {
            sys::cudnnSetConvolution2dDescriptor(made.0, pad_h, pad_w, stride_h, stride_w, 1, 1, mode, float)
        })?;
        // SAFETY: it lives.
        status::cudnn("group a convolution", unsafe { sys::cudnnSetConvolutionGroupCount(made.0, groups) })?;
        Ok(made)
    }

    pub fn set_math(&self, math: MathType) -> Result<()> {
        use sys::cudnnMathType_t as M;
        let value = match math {
            MathType::Default => M::CUDNN_DEFAULT_MATH,
            MathType::TensorOp => M::CUDNN_TENSOR_OP_MATH,
            MathType::TensorOpAllowConversion => M::CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION,
            MathType::Fma => M::CUDNN_FMA_MATH,
        };
        // SAFETY: it lives.
        status::cudnn("set a convolution's arithmetic", unsafe { sys::cudnnSetConvolutionMathType(self.0, value) })
    }

    pub fn math(&self) -> Result<MathType> {
        let mut value = sys::cudnnMathType_t::CUDNN_DEFAULT_MATH;
        // SAFETY: it lives; it writes one of the four values that were set.
        let answer = unsafe { sys::cudnnGetConvolutionMathType(self.0, &raw mut value) };
        status::cudnn("report a convolution's arithmetic", answer)?;
        MathType::from_number(value as u32).ok_or_else(|| Error::engine("cuDNN reports an unknown arithmetic"))
    }
}

impl Activation {
    pub fn relu() -> Result<Self> {
        let made = Self::create()?;
        let mode = sys::cudnnActivationMode_t::CUDNN_ACTIVATION_RELU;
        // cudnnConvolutionBiasActivationForward accepts no other, and returns NOT_SUPPORTED only when it runs; a NaN
        // may therefore become 0.
        let nan = sys::cudnnNanPropagation_t::CUDNN_NOT_PROPAGATE_NAN;
        // SAFETY: it lives.
        let answer = unsafe { sys::cudnnSetActivationDescriptor(made.0, mode, nan, 0.0) };
        status::cudnn("describe a rectifier", answer)?;
        Ok(made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_beyond_an_int_is_refused() {
        assert!(int(1 << 31).unwrap_err().to_string().contains("2147483648"));
        assert_eq!(int(224).unwrap(), 224);
    }
}
