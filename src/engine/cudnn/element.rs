//! The element types of tensors on the device.

use crate::settings::Precision;

/// How a number is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Element {
    F32,
    F16,
    Bf16,
}

impl Element {
    /// Every type that a kernel is compiled for.
    pub const ALL: [Self; 3] = [Self::F32, Self::F16, Self::Bf16];

    /// The type of activations and working weights at a precision; tf32 is an arithmetic, not a storage format.
    pub fn of(precision: Precision) -> Self {
        match precision {
            Precision::Fp32 | Precision::Tf32 => Self::F32,
            Precision::Fp16 => Self::F16,
            Precision::Bf16 => Self::Bf16,
        }
    }

    pub fn bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 | Self::Bf16 => 2,
        }
    }

    /// Its name in kernels' names and options: `f32`, `f16`, `bf16`.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
        }
    }
}

/// How the elements are multiplied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Math {
    /// float32 products and sums, with factors that are not rounded.
    Fp32,
    /// Factors rounded to 10 bits of mantissa, sums in float32.
    Tf32,
    /// Factors as they are stored, 16 bits wide, sums in float32.
    Half,
}

impl Math {
    pub fn of(precision: Precision) -> Self {
        match precision {
            Precision::Fp32 => Self::Fp32,
            Precision::Tf32 => Self::Tf32,
            Precision::Bf16 | Precision::Fp16 => Self::Half,
        }
    }
}
