//! Element types in host memory.

use crate::engine::cudnn::element::Element;

/// The values as bytes, each rounded to the nearest of the type, ties to even.
pub fn encode(element: Element, values: &[f32]) -> Vec<u8> {
    match element {
        Element::F32 => bytemuck::cast_slice(values).to_vec(),
        Element::F16 => values.iter().flat_map(|value| half(*value).to_le_bytes()).collect(),
        Element::Bf16 => values.iter().flat_map(|value| bfloat(*value).to_le_bytes()).collect(),
    }
}

/// The values of bytes.
pub fn decode(element: Element, bytes: &[u8]) -> Vec<f32> {
    let pairs = || bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
    match element {
        Element::F32 => bytemuck::pod_collect_to_vec(bytes),
        Element::F16 => pairs().map(from_half).collect(),
        Element::Bf16 => pairs().map(|bits| f32::from_bits(u32::from(bits) << 16)).collect(),
    }
}

/// The nearest value of the type.
pub fn rounded(element: Element, value: f32) -> f32 {
    match element {
        Element::F32 => value,
        Element::F16 => from_half(half(value)),
        Element::Bf16 => f32::from_bits(u32::from(bfloat(value)) << 16),
    }
}

fn bfloat(value: f32) -> u16 {
    let bits = value.to_bits();
    if value.is_nan() { 0x7FC0 } else { ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16) as u16 }
}

fn half(value: f32) -> u16 {
    let bits = value.to_bits();
    let (sign, magnitude) = ((bits >> 16) & 0x8000, bits & 0x7FFF_FFFF);
    let half = match magnitude {
        0x7F80_0001.. => return 0x7FFF,
        // 65520 is the tie between the largest number and the next one, which would be infinity.
        0x477F_F000.. => 0x7C00,
        // Below 2^-14 the last bit of x + 0.5 is that of the half.
        ..0x3880_0000 => (f32::from_bits(magnitude) + 0.5).to_bits() - 0x3F00_0000,
        _ => (magnitude + 0xFFF + ((magnitude >> 13) & 1) - 0x3800_0000) >> 13,
    };
    (sign | half) as u16
}

fn from_half(bits: u16) -> f32 {
    let bits = u32::from(bits);
    let (sign, exponent, fraction) = ((bits & 0x8000) << 16, (bits >> 10) & 31, bits & 0x3FF);
    match exponent {
        31 => f32::from_bits(sign | 0x7F80_0000 | (fraction << 13)),
        0 => f32::from_bits(sign | (fraction as f32 / 16_777_216.0).to_bits()),
        _ => f32::from_bits(sign | ((exponent + 112) << 23) | (fraction << 13)),
    }
}

#[cfg(test)]
mod tests {
    use candle_core::{DType, Device, Tensor};

    use super::*;

    /// Every f16, the points half-way between neighbours, and a little to both sides.
    fn values() -> Vec<f32> {
        let halves = (0..0x7C00u16).map(from_half);
        let near = halves.flat_map(|x| {
            let step = if x < 6.2e-5 { 2.98e-8 } else { f32::from_bits(x.to_bits() & 0x7F80_0000) / 2048.0 };
            [x, x + step, (x + step).next_up(), (x + step).next_down()]
        });
        near.flat_map(|x| [x, -x]).collect()
    }

    #[test]
    fn sixteen_bits_round_as_in_candle() {
        let values = values();
        let tensor = Tensor::new(values.as_slice(), &Device::Cpu).unwrap();
        for (element, dtype) in [(Element::F16, DType::F16), (Element::Bf16, DType::BF16)] {
            let rounded = tensor.to_dtype(dtype).unwrap().to_dtype(DType::F32).unwrap().to_vec1::<f32>().unwrap();
            let ours = decode(element, &encode(element, &values));
            let differs = (0..values.len()).find(|&i| ours[i].to_bits() != rounded[i].to_bits());
            assert!(differs.is_none(), "{element:?} {:?}", differs.map(|i| (values[i], ours[i], rounded[i])));
        }
        assert!(rounded(Element::F16, f32::NAN).is_nan() && rounded(Element::Bf16, f32::NAN).is_nan());
    }
}
