//! Weighted least squares for small problems: straight lines over any stretch in O(1), and a dense solve by Cholesky.

/// Prefix sums from which the weighted straight line over any stretch `from..to` follows in constant time.
///
/// Build: O(n). `x` is centred and scaled first, so that sums over thousands of points keep their digits.
#[derive(Clone, Debug)]
pub struct LineSums {
    sums: Vec<[f64; 6]>,
}

impl LineSums {
    /// Sums over `x`, `y` with `weight` (one over the variance; 0 leaves a point out); three slices of one length.
    pub fn new(x: &[f64], y: &[f64], weight: &[f64]) -> Self {
        let n = x.len().min(y.len()).min(weight.len());
        let mid = |v: &[f64]| v.iter().take(n).sum::<f64>() / (n.max(1) as f64);
        let (x_mid, y_mid) = (mid(x), mid(y));
        let scale = x.iter().take(n).map(|v| (v - x_mid).abs()).fold(0.0, f64::max).max(f64::MIN_POSITIVE);
        let mut sums = Vec::with_capacity(n + 1);
        let mut total = [0.0; 6];
        sums.push(total);
        for i in 0..n {
            let (w, u, v) = (weight[i], (x[i] - x_mid) / scale, y[i] - y_mid);
            for (sum, term) in total.iter_mut().zip([w, w * u, w * u * u, w * v, w * u * v, w * v * v]) {
                *sum += term;
            }
            sums.push(total);
        }
        Self { sums }
    }

    /// The weighted sum of squared residuals of the best straight line over `from..to`.
    pub fn cost(&self, from: usize, to: usize) -> f64 {
        let [w, wx, wxx, wy, wxy, wyy]: [f64; 6] = std::array::from_fn(|k| self.sums[to][k] - self.sums[from][k]);
        if w <= 0.0 {
            return 0.0;
        }
        let (sxx, sxy, syy) = (wxx - wx * wx / w, wxy - wx * wy / w, wyy - wy * wy / w);
        let explained = if sxx > 1e-12 * wxx.max(f64::MIN_POSITIVE) { sxy * sxy / sxx } else { 0.0 };
        (syy - explained).max(0.0)
    }
}

/// A weighted straight line: `y = intercept + slope * x`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    pub intercept: f64,
    pub slope: f64,
}

/// The weighted least-squares line; slope 0 where `x` does not vary, `NaN` where there is nothing to fit.
pub fn line(x: &[f64], y: &[f64], weight: &[f64]) -> Line {
    let total: f64 = weight.iter().sum();
    let mean = |v: &[f64]| v.iter().zip(weight).map(|(v, w)| v * w).sum::<f64>() / total;
    let (x_mean, y_mean) = (mean(x), mean(y));
    let (mut sxx, mut sxy) = (0.0, 0.0);
    for ((x, y), w) in x.iter().zip(y).zip(weight) {
        sxx += w * (x - x_mean) * (x - x_mean);
        sxy += w * (x - x_mean) * (y - y_mean);
    }
    let slope = if sxx > 0.0 { sxy / sxx } else { 0.0 };
    Line { intercept: y_mean - slope * x_mean, slope }
}

/// The lower triangle L of L L' = A for a symmetric positive definite A, n by n, given by its entries (row, column <= row).
///
/// `None` where A is not positive definite to working precision. Cost: n^3 / 6.
pub fn cholesky(n: usize, entry: impl Fn(usize, usize) -> f64) -> Option<Vec<Vec<f64>>> {
    let mut l = vec![vec![0.0; n]; n];
    for i in 0..n {
        for j in 0..=i {
            let sum: f64 = entry(i, j) - l[i][..j].iter().zip(&l[j][..j]).map(|(a, b)| a * b).sum::<f64>();
            if i == j {
                if sum.is_nan() || sum <= 1e-13 * entry(i, i).abs() {
                    return None;
                }
                l[i][i] = sum.sqrt();
            } else {
                l[i][j] = sum / l[j][j];
            }
        }
    }
    Some(l)
}

/// The inverse of L L' for a lower triangle L. Cost: 2 n^3 / 3.
pub fn inverse(l: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let n = l.len();
    let mut rows = vec![vec![0.0; n]; n];
    for (e, row) in rows.iter_mut().enumerate() {
        row[e] = 1.0;
        substitute(l, row, e);
    }
    rows
}

/// Solves L L' x = b in place, where b is zero before `from`.
fn substitute(l: &[Vec<f64>], x: &mut [f64], from: usize) {
    let n = x.len();
    for i in from..n {
        let known: f64 = l[i][from..i].iter().zip(&x[from..i]).map(|(l, x)| l * x).sum();
        x[i] = (x[i] - known) / l[i][i];
    }
    for i in (0..n).rev() {
        let known: f64 = (i + 1..n).map(|k| l[k][i] * x[k]).sum();
        x[i] = (x[i] - known) / l[i][i];
    }
}

/// Solves the symmetric positive definite system `a * x = b` by Cholesky; `a` is n by n in rows.
///
/// `None` where `a` is not positive definite to working precision. Cost: n^3 / 6.
pub fn solve(a: &[Vec<f64>], b: &[f64]) -> Option<Vec<f64>> {
    let l = cholesky(b.len(), |i, j| a[i][j])?;
    let mut x = b.to_vec();
    substitute(&l, &mut x, 0);
    Some(x)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::bootstrap::Rng;

    #[test]
    fn a_line_through_three_points_by_hand() {
        // x 1 2 3, y 1 2 2: slope 0.5, intercept 2/3, residuals -1/6 1/3 -1/6, their squares sum to 1/6
        let (x, y, w) = ([1.0, 2.0, 3.0], [1.0, 2.0, 2.0], [1.0; 3]);
        let fit = line(&x, &y, &w);
        assert!((fit.slope - 0.5).abs() < 1e-15 && (fit.intercept - 2.0 / 3.0).abs() < 1e-15);
        assert!((LineSums::new(&x, &y, &w).cost(0, 3) - 1.0 / 6.0).abs() < 1e-12);
    }

    #[test]
    fn stretch_costs_equal_direct_fits() {
        let mut rng = Rng::new(4);
        let x: Vec<f64> = (0..40).map(|i| 1000.0 + f64::from(i)).collect();
        let y: Vec<f64> = x.iter().map(|x| 3.0 * x + rng.normal()).collect();
        let w: Vec<f64> = x.iter().map(|_| 0.5 + rng.uniform()).collect();
        let sums = LineSums::new(&x, &y, &w);
        for (from, to) in [(0, 40), (3, 9), (17, 40), (0, 3)] {
            let fit = line(&x[from..to], &y[from..to], &w[from..to]);
            let direct: f64 = (from..to).map(|i| w[i] * (y[i] - fit.intercept - fit.slope * x[i]).powi(2)).sum();
            assert!((sums.cost(from, to) - direct).abs() < 1e-7, "{from}..{to}");
        }
    }

    #[test]
    fn a_two_by_two_system_by_hand() {
        // 4x + 2y = 10, 2x + 3y = 8 has x = 7/4, y = 3/2
        let solved = solve(&[vec![4.0, 2.0], vec![2.0, 3.0]], &[10.0, 8.0]).expect("positive definite");
        assert!((solved[0] - 1.75).abs() < 1e-14 && (solved[1] - 1.5).abs() < 1e-14);
        assert!(solve(&[vec![1.0, 1.0], vec![1.0, 1.0]], &[1.0, 1.0]).is_none());
    }

    #[test]
    fn an_inverse_by_hand() {
        // [[4, 2], [2, 3]] has determinant 8 and the inverse [[3, -2], [-2, 4]] / 8
        let a = [[4.0, 2.0], [2.0, 3.0]];
        let inverse = inverse(&cholesky(2, |i, j| a[i][j]).expect("positive definite"));
        for (found, expected) in inverse.concat().iter().zip([0.375, -0.25, -0.25, 0.5]) {
            assert!((found - expected).abs() < 1e-15);
        }
    }
}
