//! How much padding: none, the same on every side, or TensorFlow's `same`.

use super::layer::{Extent, Padding};

impl Padding {
    /// No padding: Keras' `valid`.
    pub const NONE: Self = Self::all(0);

    /// `n` on each of the four sides.
    pub const fn all(n: usize) -> Self {
        Self { top: n, bottom: n, left: n, right: n }
    }

    /// TensorFlow's `same`: the output has ceil(input / stride) rows and columns. An odd number of rows or columns to add
    /// puts the extra one at the bottom or right. A stride of 0 counts as 1.
    ///
    /// Source: <https://www.tensorflow.org/api_docs/python/tf/nn#notes_on_padding_2>.
    pub fn same(input: Extent, kernel: Extent, stride: Extent) -> Self {
        let (top, bottom) = same_along(input.height, kernel.height, stride.height.max(1));
        let (left, right) = same_along(input.width, kernel.width, stride.width.max(1));
        Self { top, bottom, left, right }
    }
}

/// The padding (before, after) of one axis.
fn same_along(input: usize, kernel: usize, stride: usize) -> (usize, usize) {
    let last_start = input.div_ceil(stride).saturating_sub(1).saturating_mul(stride);
    let total = last_start.saturating_add(kernel).saturating_sub(input);
    (total / 2, total - total / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    // By the rule in TensorFlow's notes on padding: 224 % 2 == 0, so max(3 - 2, 0) = 1 in all, 0 before and 1 after;
    // 225 % 2 == 1, so max(3 - 1, 0) = 2 in all, 1 before and 1 after. An even kernel pads after, too.
    #[test]
    fn same_padding_is_symmetric_or_has_the_odd_one_at_the_bottom_and_right() {
        let square = Extent::square;
        for (input, kernel, stride, padding) in [
            (square(224), square(3), square(1), Padding::all(1)),
            (square(7), square(5), square(1), Padding::all(2)),
            (Extent::new(224, 225), square(3), square(2), Padding { top: 0, bottom: 1, left: 1, right: 1 }),
            (square(8), Extent::new(2, 4), square(1), Padding { top: 0, bottom: 1, left: 1, right: 2 }),
            // A stride longer than the kernel needs none.
            (square(8), square(1), square(2), Padding::NONE),
        ] {
            assert_eq!(Padding::same(input, kernel, stride), padding);
        }
    }
}
