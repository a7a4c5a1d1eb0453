//! Rectified linear units. As in PyTorch, NaN passes through, and the gradient at an end of the range, at 0 and at 6, is 0.

use pulp::Simd;

use crate::engine::cpu::op::scalar::{Scalar, set_each};
use crate::network::Operation;

/// What an operator does to its output as it writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rectifier {
    Identity,
    /// `max(x, 0)`.
    Relu,
    /// `min(max(x, 0), 6)`.
    Relu6,
}

impl Rectifier {
    /// The one that an operation is; else the identity.
    pub fn of(operation: &Operation) -> Self {
        match operation {
            Operation::Relu => Self::Relu,
            Operation::Relu6 => Self::Relu6,
            _ => Self::Identity,
        }
    }

    /// The same as a range.
    pub fn range<T: Scalar>(self) -> Range<T> {
        match self {
            Self::Identity => Range { low: T::NEG_INFINITY, high: T::INFINITY },
            Self::Relu => Range { low: T::ZERO, high: T::INFINITY },
            Self::Relu6 => Range { low: T::ZERO, high: T::from_f64(6.0) },
        }
    }
}

/// The values that a rectifier lets through.
#[derive(Clone, Copy, Debug)]
pub struct Range<T> {
    low: T,
    high: T,
}

impl<T: Scalar> Range<T> {
    /// The value of the range that is nearest to `x`.
    #[inline(always)]
    pub fn clamp(self, x: T) -> T {
        let x = if x <= self.low { self.low } else { x };
        if x >= self.high { self.high } else { x }
    }

    /// The same, lane by lane.
    #[inline(always)]
    pub fn clamp_lanes<S: Simd>(self, simd: S, x: T::Vector<S>) -> T::Vector<S> {
        T::clamp(simd, x, self.low, self.high)
    }

    /// The gradient `dy`, or zero where the value `x` is at an end of the range or beyond it.
    #[inline(always)]
    pub fn stop_lanes<S: Simd>(self, simd: S, x: T::Vector<S>, dy: T::Vector<S>) -> T::Vector<S> {
        T::stop(simd, x, self.low, self.high, dy)
    }

    /// The same for one value.
    #[inline(always)]
    pub fn stopped(self, x: T, dy: T) -> T {
        if (x <= self.low) | (x >= self.high) { T::ZERO } else { dy }
    }
}

/// `y = rectifier(x)`.
pub fn forward<T: Scalar>(rectifier: Rectifier, x: &[T], y: &mut [T]) {
    let range = rectifier.range();
    set_each(y, 1, [x, x], |_, x, _| range.clamp(x));
}

/// `y = rectifier(a + b)`.
pub fn sum<T: Scalar>(rectifier: Rectifier, a: &[T], b: &[T], y: &mut [T]) {
    let range = rectifier.range();
    set_each(y, 1, [a, b], |_, a, b| range.clamp(a + b));
}

/// `total = rectifier(total + x)`.
pub fn add_to<T: Scalar>(rectifier: Rectifier, x: &[T], total: &mut [T]) {
    let range = rectifier.range();
    set_each(total, 1, [x, x], |total, x, _| range.clamp(total + x));
}

/// Zeroes the gradient `dy` where the output `y` is at an end of the range.
pub fn backward<T: Scalar>(rectifier: Rectifier, y: &[T], dy: &mut [T]) {
    let range = rectifier.range();
    set_each(dy, 1, [y, y], |dy, y, _| range.stopped(y, dy));
}
