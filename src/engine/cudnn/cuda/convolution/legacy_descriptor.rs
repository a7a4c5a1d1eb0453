//! The descriptors of cuDNN's older calls: tensors, weights, a convolution.

use crate::engine::cudnn::cuda::api::cudnn as sys;

use super::algorithm::MathType;
use super::operation::{data_type, weights};
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
fn int(size: usize) -> Result<i32> {
    i32::try_from(size).map_err(|_| Error::engine(format!("a size of {size} is too large for cuDNN's older calls")))
}

/// N, C, H, W.
fn sizes(maps: &FeatureMaps) -> Result<[i32; 4]> {
    Ok([int(maps.batch)?, int(maps.channels)?, int(maps.height)?, int(maps.width)?])
}

fn format(layout: Layout) -> sys::cudnnTensorFormat_t {
    match layout {
        Layout::Nchw => sys::cudnnTensorFormat_t::CUDNN_TENSOR_NCHW,
        Layout::Nhwc => sys::cudnnTensorFormat_t::CUDNN_TENSOR_NHWC,
    }
}

impl Tensor {
    pub fn new(maps: &FeatureMaps, element: Element) -> Result<Self> {
        let (made, [n, c, h, w]) = (Self::create()?, sizes(maps)?);
        let (kind, order) = (data_type(element), format(maps.layout));
        // SAFETY: it lives.
        let answer = unsafe { sys::cudnnSetTensor4dDescriptor(made.0, order, kind, n, c, h, w) };
        status::cudnn("describe a tensor", answer)?;
        Ok(made)
    }
}

impl Filter {
    pub fn new(convolution: &Convolution) -> Result<Self> {
        let (made, [k, c, r, s]) = (Self::create()?, sizes(&weights(convolution))?);
        let (kind, order) = (data_type(convolution.element), format(convolution.input.layout));
        // SAFETY: it lives.
        let answer = unsafe { sys::cudnnSetFilter4dDescriptor(made.0, kind, order, k, c, r, s) };
        status::cudnn("describe weights", answer)?;
        Ok(made)
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
        // SAFETY: it lives.
        status::cudnn("set a convolution's arithmetic", unsafe { sys::cudnnSetConvolutionMathType(self.0, math) })
    }

    pub fn math(&self) -> Result<MathType> {
        let mut value = MathType::CUDNN_DEFAULT_MATH;
        // SAFETY: it lives; it writes one of the four values that were set.
        let answer = unsafe { sys::cudnnGetConvolutionMathType(self.0, &raw mut value) };
        status::cudnn("report a convolution's arithmetic", answer)?;
        Ok(value)
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
