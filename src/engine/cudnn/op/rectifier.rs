//! The rectifier that is applied to an output as it is written.

use crate::network::Operation;

/// A rectifier; its number is the kernels' `rectifier` argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(i32)]
pub enum Rectifier {
    Identity = 0,
    /// max(x, 0); its gradient passes where the output is above 0.
    Relu = 1,
    /// min(max(x, 0), 6); its gradient passes where the output is above 0 and below 6.
    Relu6 = 2,
}

impl Rectifier {
    /// The rectifier that an operation is; the identity where it is none.
    pub fn of_operation(operation: &Operation) -> Self {
        match operation {
            Operation::Relu => Self::Relu,
            Operation::Relu6 => Self::Relu6,
            _ => Self::Identity,
        }
    }
}

#[cfg(test)]
impl Rectifier {
    pub const ALL: [Self; 3] = [Self::Identity, Self::Relu, Self::Relu6];

    /// The rectified value; a NaN is preserved.
    pub fn of(self, x: f64) -> f64 {
        match self {
            Self::Identity => x,
            Self::Relu if x < 0.0 => 0.0,
            Self::Relu => x,
            Self::Relu6 => x.clamp(0.0, 6.0),
        }
    }

    /// Whether a gradient passes where the output is `y`.
    pub fn passes(self, y: f32) -> bool {
        self == Self::Identity || y > 0.0 && (self == Self::Relu || y < 6.0)
    }
}
