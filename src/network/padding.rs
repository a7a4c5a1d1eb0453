//! How much padding: none, the same on every side, or TensorFlow's `same`.

use super::layer::Padding;

impl Padding {
    /// No padding: Keras' `valid`.
    pub const NONE: Self = Self::all(0);

    /// `n` on each of the four sides.
    pub const fn all(n: usize) -> Self {
        Self { top: n, bottom: n, left: n, right: n }
    }

    /// TensorFlow's `same`: the output has ceil(input / stride) rows and columns. An odd number of rows or columns to add
    /// puts the extra one at the bottom or right. All pairs are (height, width); a stride of 0 counts as 1.
    ///
    /// Source: <https://www.tensorflow.org/api_docs/python/tf/nn#notes_on_padding_2>.
    pub fn same(input: (usize, usize), kernel: (usize, usize), stride: (usize, usize)) -> Self {
        let (top, bottom) = same_along(input.0, kernel.0, stride.0.max(1));
        let (left, right) = same_along(input.1, kernel.1, stride.1.max(1));
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

    #[test]
    fn same_padding_of_stride_one_is_symmetric_for_odd_kernels() {
        assert_eq!(Padding::same((224, 224), (3, 3), (1, 1)), Padding::all(1));
        assert_eq!(Padding::same((7, 7), (5, 5), (1, 1)), Padding::all(2));
    }

    // By the rule in TensorFlow's notes on padding: 224 % 2 == 0, so max(3 - 2, 0) = 1 in all, 0 before and 1 after;
    // 225 % 2 == 1, so max(3 - 1, 0) = 2 in all, 1 before and 1 after.
    #[test]
    fn same_padding_of_stride_two_puts_the_odd_one_at_the_bottom_and_right() {
        assert_eq!(Padding::same((224, 225), (3, 3), (2, 2)), Padding { top: 0, bottom: 1, left: 1, right: 1 });
    }

    #[test]
    fn an_even_kernel_pads_after() {
        assert_eq!(Padding::same((8, 8), (2, 4), (1, 1)), Padding { top: 0, bottom: 1, left: 1, right: 2 });
    }

    #[test]
    fn a_stride_longer_than_the_kernel_needs_no_padding() {
        assert_eq!(Padding::same((8, 8), (1, 1), (2, 2)), Padding::NONE);
    }
}
