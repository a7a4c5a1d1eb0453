//! Least squares with coefficients that are not negative.

/// The most sweeps over all coefficients: a guard, far more than a handful of coefficients needs.
const SWEEPS: usize = 100_000;

/// The coefficients >= 0 for which the rows' sums of coefficient times term are nearest to `targets`, by least squares.
///
/// By coordinate descent on the normal equations, which converges to the minimum of this convex problem. Terms are scaled to a mean
/// square of 1 first; a term that is always 0 gets the coefficient 0. `rows` and `targets` are of one length.
pub fn least_squares<const N: usize>(rows: &[[f64; N]], targets: &[f64]) -> [f64; N] {
    let count = rows.len().max(1) as f64;
    let scale: [f64; N] = std::array::from_fn(|j| (rows.iter().map(|row| row[j] * row[j]).sum::<f64>() / count).sqrt());
    let term = |row: &[f64; N], j: usize| if scale[j] > 0.0 { row[j] / scale[j] } else { 0.0 };
    let product = |i: usize, j: usize| rows.iter().map(|row| term(row, i) * term(row, j)).sum::<f64>() / count;
    let matrix: [[f64; N]; N] = std::array::from_fn(|i| std::array::from_fn(|j| product(i, j)));
    let right: [f64; N] =
        std::array::from_fn(|j| rows.iter().zip(targets).map(|(row, y)| term(row, j) * y).sum::<f64>() / count);
    let mut x = [0.0; N];
    for _ in 0..SWEEPS {
        let mut moved: f64 = 0.0;
        for j in (0..N).filter(|&j| scale[j] > 0.0) {
            let slope: f64 = matrix[j].iter().zip(&x).map(|(a, x)| a * x).sum::<f64>() - right[j];
            let next = (x[j] - slope / matrix[j][j]).max(0.0);
            moved = moved.max((next - x[j]).abs());
            x[j] = next;
        }
        if moved <= 1e-12 * x.iter().fold(1e-300, |most: f64, x| most.max(*x)) {
            break;
        }
    }
    std::array::from_fn(|j| if scale[j] > 0.0 { x[j] / scale[j] } else { 0.0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Rng;

    // y = 2 + 3 x on three points; and y = -1 + x, whose best line through (1, 0), (2, 1), (3, 2) with an offset >= 0
    // is the line through the origin: (1 * 0 + 2 * 1 + 3 * 2) / (1 + 4 + 9) = 4/7.
    #[test]
    fn hand_calculated_lines() {
        let rows = [[1.0, 1.0], [1.0, 2.0], [1.0, 3.0]];
        let [a, b] = least_squares(&rows, &[5.0, 8.0, 11.0]);
        assert!((a - 2.0).abs() < 1e-9 && (b - 3.0).abs() < 1e-9, "{a} {b}");
        let [a, b] = least_squares(&rows, &[0.0, 1.0, 2.0]);
        assert!(a == 0.0 && (b - 4.0 / 7.0).abs() < 1e-12, "{a} {b}");
        assert_eq!(least_squares(&[[0.0, 1.0], [0.0, 1.0]], &[2.0, 4.0]), [0.0, 3.0]);
        assert_eq!(least_squares::<2>(&[], &[]), [0.0, 0.0]);
    }

    /// At the minimum of a convex problem the slope is 0 along every positive coefficient, and not negative along the others: the
    /// conditions of Karush, Kuhn and Tucker, which only the minimum meets.
    #[test]
    fn random_problems_meet_the_conditions_of_the_minimum() {
        let mut random = Rng::new(7);
        for _ in 0..200 {
            let rows: Vec<[f64; 4]> = (0..20).map(|_| [(); 4].map(|()| random.uniform() * 10.0)).collect();
            let targets: Vec<f64> = (0..20).map(|_| random.uniform() * 10.0 - 2.0).collect();
            let x = least_squares(&rows, &targets);
            for j in 0..4 {
                let residual = |row: &[f64; 4]| row.iter().zip(&x).map(|(a, x)| a * x).sum::<f64>();
                let slope: f64 = rows.iter().zip(&targets).map(|(row, y)| row[j] * (residual(row) - y)).sum();
                assert!(x[j] >= 0.0 && if x[j] > 0.0 { slope.abs() < 1e-5 } else { slope > -1e-5 }, "{x:?} {slope}");
            }
        }
    }
}
