//! How far numbers are apart.

/// How far one tensor is from another: the norm of the difference, and the norm of the expected tensor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TensorDistance {
    distance: f64,
    scale: f64,
}

impl TensorDistance {
    /// What cannot be compared.
    pub const INFINITELY: Self = Self { distance: f64::INFINITY, scale: 0.0 };

    /// The difference of numbers that were found from as many that are expected.
    pub fn of(found: &[f64], expected: &[f64]) -> Self {
        Self::of_pairs(found.iter().copied().zip(expected.iter().copied()))
    }

    /// The difference over pairs of numbers (found, expected). The numbers are not stored: a tensor may have a hundred million.
    fn of_pairs(pairs: impl Iterator<Item = (f64, f64)>) -> Self {
        let squares = |(distance, scale), (found, expected): (f64, f64)| {
            (distance + (found - expected) * (found - expected), scale + expected * expected)
        };
        let (distance, scale): (f64, f64) = pairs.fold((0.0, 0.0), squares);
        Self { distance: distance.sqrt(), scale: scale.sqrt() }
    }

    /// The same for a change of numbers in float32: the rounding of the sums, half a unit in the last place of each, is not an
    /// error. Each element is the number before, the number found after, and the number expected after the change.
    pub fn of_change(numbers: impl Iterator<Item = [f64; 3]>) -> Self {
        Self::of_pairs(numbers.map(|[before, found, expected]| {
            let unit = expected.abs() * f64::from(f32::EPSILON);
            let (change, off) = (before - expected, expected - found);
            (change + off.signum() * (off.abs() - unit).max(0.0), change)
        }))
    }
}

/// The distance over the norm of the expected tensor, the largest over all tensors. If the expected norm is below a millionth
/// of the largest norm, that millionth is used: the gradient of a bias before a batch norm is zero except for rounding. Infinite
/// if a number is not-a-number.
pub fn worst(tensors: &[TensorDistance]) -> f64 {
    let floor = 1e-6 * largest(tensors.iter().map(|tensor| tensor.scale));
    let relative = |tensor: &TensorDistance| match tensor.distance {
        0.0 => 0.0,
        distance => distance / tensor.scale.max(floor),
    };
    largest(tensors.iter().map(relative))
}

/// [`worst`] of tensors as they were found and as they are expected; infinite where sizes differ.
pub fn relative<T: AsRef<[f64]>>(found: &[T], expected: &[T]) -> f64 {
    if found.len() != expected.len() {
        return f64::INFINITY;
    }
    let pairs = found.iter().zip(expected).map(|(found, expected)| (found.as_ref(), expected.as_ref()));
    let tensors: Vec<TensorDistance> = pairs
        .map(|(found, expected)| match found.len() == expected.len() {
            true => TensorDistance::of(found, expected),
            false => TensorDistance::INFINITELY,
        })
        .collect();
    worst(&tensors)
}

/// The largest of some numbers that are not negative; infinite if one of them is not-a-number.
pub fn largest(values: impl IntoIterator<Item = f64>) -> f64 {
    values.into_iter().fold(0.0, |worst: f64, value| if value.is_nan() { f64::INFINITY } else { worst.max(value) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_match_a_hand_calculation() {
        // The norm of (3, 4) is 5; one tensor is off by 0.5, the other by nothing.
        assert_eq!(relative(&[vec![3.0, 4.5], vec![1.0]], &[vec![3.0, 4.0], vec![1.0]]), 0.1);
        // From (1, 2) to (4, 6) is a change of norm 5; that to (4, 6.5) is off by 0.5.
        let change = TensorDistance::of_change([[1.0, 4.0, 4.0], [2.0, 6.5, 6.0]].into_iter());
        assert!((worst(&[change]) - 0.1).abs() < 1e-6, "{change:?}");
    }

    // 2 + 3e-7 is 2 + 2^-22 (2.4e-7) in float32: off by a fifth, and yet as near as can be. 2 + 6e-7 is not.
    #[test]
    fn the_rounding_of_a_stored_sum_is_no_error() {
        let error = |found| worst(&[TensorDistance::of_change([[2.0, found, 2.0 + 3e-7]].into_iter())]);
        assert_eq!(error(2.0 + 2.4e-7), 0.0);
        assert!(error(2.0 + 6e-7) > 0.1);
    }

    #[test]
    fn a_tensor_of_rounding_errors_is_held_against_the_others() {
        assert!((relative(&[vec![1.0], vec![1e-9]], &[vec![1.0], vec![2e-9]]) - 1e-3).abs() < 1e-12);
    }

    #[test]
    fn what_is_no_number_or_missing_is_infinitely_wrong() {
        assert_eq!(relative(&[vec![f64::NAN]], &[vec![1.0]]), f64::INFINITY);
        assert_eq!(relative(&[vec![1.0]], &[vec![1.0, 2.0]]), f64::INFINITY);
        assert_eq!(relative::<Vec<f64>>(&[], &[vec![1.0]]), f64::INFINITY);
        assert_eq!(relative(&[vec![0.0]], &[vec![0.0]]), 0.0);
    }
}
