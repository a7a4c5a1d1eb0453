//! Element types in host memory.

use half::{bf16, f16};

use crate::engine::cudnn::element::Element;
use crate::engine::numbers;

/// The values as bytes, each rounded to the nearest of the type, ties to even.
pub fn encode(element: Element, values: &[f32]) -> Vec<u8> {
    match element {
        Element::F32 => numbers::to_f32(values),
        Element::F16 => numbers::to_f16(values),
        Element::Bf16 => numbers::to_bf16(values),
    }
}

/// The nearest value of the type.
pub fn rounded(element: Element, value: f32) -> f32 {
    match element {
        Element::F32 => value,
        Element::F16 => f16::from_f32(value).into(),
        Element::Bf16 => bf16::from_f32(value).into(),
    }
}
