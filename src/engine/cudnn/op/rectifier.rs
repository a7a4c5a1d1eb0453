//! The rectifier that is applied to an output as it is written.

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
