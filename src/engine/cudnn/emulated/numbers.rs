//! Element types in host memory.

use half::{bf16, f16};

use crate::engine::cudnn::element::Element;

/// The values as bytes, each rounded to the nearest of the type, ties to even.
pub fn encode(element: Element, values: &[f32]) -> Vec<u8> {
    match element {
        Element::F32 => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
        Element::F16 => values.iter().flat_map(|value| f16::from_f32(*value).to_le_bytes()).collect(),
        Element::Bf16 => values.iter().flat_map(|value| bf16::from_f32(*value).to_le_bytes()).collect(),
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
