//! How far numbers are apart.

/// The norm of `found - expected` over the norm of `expected`, the largest over all tensors. A tensor whose expected norm
/// is below a millionth of the largest is held against that millionth: the gradient of a bias in front of a batch norm is
/// zero but for rounding. Infinite where sizes differ or a number is none.
pub fn relative<T: AsRef<[f64]>>(found: &[T], expected: &[T]) -> f64 {
    if found.len() != expected.len() {
        return f64::INFINITY;
    }
    let norm = |values: &[f64]| values.iter().map(|value| value * value).sum::<f64>().sqrt();
    let norms: Vec<f64> = expected.iter().map(|tensor| norm(tensor.as_ref())).collect();
    let floor = 1e-6 * largest(norms.iter().copied());
    let each = found.iter().zip(expected).zip(norms).map(|((found, expected), scale)| {
        let (found, expected) = (found.as_ref(), expected.as_ref());
        if found.len() != expected.len() {
            return f64::INFINITY;
        }
        let apart: Vec<f64> = found.iter().zip(expected).map(|(a, b)| a - b).collect();
        let distance = norm(&apart);
        if distance == 0.0 { 0.0 } else { distance / scale.max(floor) }
    });
    largest(each)
}

/// As [`relative`], of what was added to numbers that are kept in float32: the rounding of the sums, half a unit in the
/// last place of each, is no error.
pub fn relative_change(found: [&[Vec<f64>]; 2], expected: [&[Vec<f64>]; 2]) -> f64 {
    let rounded = |(found, expected): (&Vec<f64>, &Vec<f64>), after: &Vec<f64>| {
        let nearest = |((found, expected), after): ((&f64, &f64), &f64)| {
            let unit = after.abs() * f64::from(f32::EPSILON);
            expected + (found - expected).signum() * ((found - expected).abs() - unit).max(0.0)
        };
        found.iter().zip(expected).zip(after).map(nearest).collect::<Vec<f64>>()
    };
    let (of_found, of_expected) = (change(found[0], found[1]), change(expected[0], expected[1]));
    let close: Vec<Vec<f64>> =
        of_found.iter().zip(&of_expected).zip(expected[1]).map(|(pair, after)| rounded(pair, after)).collect();
    relative(&close, &of_expected)
}

/// What was added to each number.
fn change(before: &[Vec<f64>], after: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let of = |(before, after): (&Vec<f64>, &Vec<f64>)| before.iter().zip(after).map(|(b, a)| a - b).collect();
    before.iter().zip(after).map(of).collect()
}

/// The largest of some numbers that are not negative; infinite where one is none.
pub fn largest(values: impl IntoIterator<Item = f64>) -> f64 {
    values.into_iter().fold(0.0, |worst: f64, value| if value.is_nan() { f64::INFINITY } else { worst.max(value) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_those_of_a_hand_calculation() {
        // The norm of (3, 4) is 5; one tensor is off by 0.5, the other by nothing.
        assert_eq!(relative(&[vec![3.0, 4.5], vec![1.0]], &[vec![3.0, 4.0], vec![1.0]]), 0.1);
        assert_eq!(change(&[vec![1.0, 2.0]], &[vec![1.5, 1.0]]), [[0.5, -1.0]]);
    }

    // 2 + 3e-7 is 2 + 2^-22 (2.4e-7) in float32: off by a fifth, and yet as near as can be. 2 + 6e-7 is not.
    #[test]
    fn the_rounding_of_a_stored_sum_is_no_error() {
        let (before, after) = ([vec![2.0]], [vec![2.0 + 3e-7]]);
        assert_eq!(relative_change([&before, &[vec![2.0 + 2.4e-7]]], [&before, &after]), 0.0);
        assert!(relative_change([&before, &[vec![2.0 + 6e-7]]], [&before, &after]) > 0.1);
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
