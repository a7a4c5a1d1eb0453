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

/// The weighted least-squares line; slope 0 where `x` does not vary, `NaN` without points.
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

/// The lower triangle L of L L' = A, for a symmetric positive definite A.
#[derive(Clone, Debug)]
pub struct Triangle {
    n: usize,
    /// Row after row, each up to its diagonal.
    entries: Vec<f64>,
}

impl Triangle {
    /// The triangle of an n by n matrix given by its entries (row, column <= row).
    ///
    /// `None` where the matrix is not positive definite to working precision. Cost: n^3 / 6.
    pub fn of(n: usize, entry: impl Fn(usize, usize) -> f64) -> Option<Self> {
        let mut entries: Vec<f64> = Vec::with_capacity(n * (n + 1) / 2);
        for i in 0..n {
            let start = entries.len();
            for j in 0..=i {
                let above = start_of(j);
                let known: f64 = entries[start..].iter().zip(&entries[above..above + j]).map(|(a, b)| a * b).sum();
                let rest = entry(i, j) - known;
                if i > j {
                    entries.push(rest / entries[above + j]);
                } else if rest.is_nan() || rest <= 1e-13 * entry(i, i).abs() {
                    return None;
                } else {
                    entries.push(rest.sqrt());
                }
            }
        }
        Some(Self { n, entries })
    }

    fn row(&self, i: usize) -> &[f64] {
        &self.entries[start_of(i)..start_of(i + 1)]
    }

    /// Solves L x = b in place. Cost: n^2 / 2.
    fn half_solve(&self, b: &mut [f64]) {
        for i in 0..self.n {
            let row = self.row(i);
            let known: f64 = row.iter().zip(&b[..i]).map(|(l, x)| l * x).sum();
            b[i] = (b[i] - known) / row[i];
        }
    }

    /// Solves A x = b in place. Cost: n^2.
    pub fn solve(&self, b: &mut [f64]) {
        self.half_solve(b);
        for i in (0..self.n).rev() {
            let row = self.row(i);
            b[i] /= row[i];
            let known = b[i];
            for (x, l) in b[..i].iter_mut().zip(row) {
                *x -= l * known;
            }
        }
    }
}

/// Where row `i` of a triangle starts.
fn start_of(i: usize) -> usize {
    i * (i + 1) / 2
}

/// Solves the symmetric positive definite system `a * x = b` by Cholesky; `a` is n by n in rows.
///
/// `None` where `a` is not positive definite to working precision. Cost: n^3 / 6.
pub fn solve(a: &[Vec<f64>], b: &[f64]) -> Option<Vec<f64>> {
    let triangle = Triangle::of(b.len(), |i, j| a[i][j])?;
    let mut x = b.to_vec();
    triangle.solve(&mut x);
    Some(x)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Rng;

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
}
