//! An orthonormal basis of a growing set of columns, and the quantities that follow from it: coefficients, influences,
//! leverage.
//!
//! Gram-Schmidt is applied twice to each column, which is enough (Giraud, Langou & Rozloznik 2005).

use super::simd::{self, dot};

/// Below this share of its own norm a column counts as a combination of the ones before it.
pub(crate) const COLLINEAR: f64 = 1e-7;

/// The columns q of Q and the upper triangle R; the product QR gives the pushed columns.
#[derive(Clone, Debug, Default)]
pub(crate) struct Basis {
    q: Vec<Vec<f64>>,
    /// By columns: pushed column c is the sum of r[c][k] * q[k].
    r: Vec<Vec<f64>>,
}

impl Basis {
    pub fn len(&self) -> usize {
        self.q.len()
    }

    /// The unit vectors.
    pub fn vectors(&self) -> &[Vec<f64>] {
        &self.q
    }

    /// Adds one column and returns its unit vector. If it is a combination of the others, adds nothing and returns
    /// `None`.
    pub fn push(&mut self, mut v: Vec<f64>) -> Option<&[f64]> {
        let whole = dot(&v, &v);
        let mut coefficients = vec![0.0; self.q.len() + 1];
        for _ in 0..2 {
            for (q, coefficient) in self.q.iter().zip(&mut coefficients) {
                let along = dot(q, &v);
                *coefficient += along;
                for (v, q) in v.iter_mut().zip(q) {
                    *v -= along * q;
                }
            }
        }
        let rest = dot(&v, &v);
        if rest.is_nan() || rest <= COLLINEAR * whole {
            return None;
        }
        let norm = rest.sqrt();
        for v in &mut v {
            *v /= norm;
        }
        coefficients[self.q.len()] = norm;
        self.q.push(v);
        self.r.push(coefficients);
        self.q.last().map(Vec::as_slice)
    }

    /// Reserves a place for a column that is a combination of the others: its coefficient is zero.
    pub fn push_nothing(&mut self, n: usize) {
        let place = self.q.len();
        self.q.push(vec![0.0; n]);
        self.r.push((0..=place).map(|k| f64::from(k == place)).collect());
    }

    /// Coefficients of the pushed columns in the projection of `target`.
    pub fn coefficients(&self, target: &[f64]) -> Vec<f64> {
        let mut b = self.along(target);
        for c in (0..b.len()).rev() {
            b[c] /= self.r[c][c];
            for k in 0..c {
                b[k] -= self.r[c][k] * b[c];
            }
        }
        b
    }

    /// Removes column `place` and returns the unit vector that only it spanned, up to sign.
    ///
    /// The columns after it are then triangular but for one row; plane rotations restore the triangle (Golub & Van Loan
    /// 2013, 6.5.2) in O(n) for each column, while a rebuild costs O(n m) for each. `rotated` is called for each
    /// rotation: the unit vectors a = j and b = j + 1 become cos a + sin b and cos b - sin a.
    pub fn remove(&mut self, place: usize, mut rotated: impl FnMut(usize, f64, f64)) -> Vec<f64> {
        self.r.remove(place);
        for j in place..self.r.len() {
            let (a, b) = (self.r[j][j], self.r[j][j + 1]);
            let length = a.hypot(b);
            let (cos, sin) = (a / length, b / length);
            for column in &mut self.r[j..] {
                let (a, b) = (column[j], column[j + 1]);
                (column[j], column[j + 1]) = (cos * a + sin * b, cos * b - sin * a);
            }
            self.r[j].truncate(j + 1);
            let (upper, lower) = self.q.split_at_mut(j + 1);
            simd::rotate(&mut upper[j], &mut lower[0], cos, sin);
            rotated(j, cos, sin);
        }
        self.q.pop().unwrap_or_default()
    }

    /// The weights on the unit vectors by which coefficient `place` follows from the target.
    pub fn row(&self, place: usize) -> Vec<f64> {
        let mut unit = vec![0.0; self.q.len()];
        unit[place] = 1.0;
        self.solved(unit, place)
    }

    /// The weights on the unit vectors by which the combination `z` of all coefficients follows from the target; `z` is zero before `first`.
    fn solved(&self, mut z: Vec<f64>, first: usize) -> Vec<f64> {
        for c in first..z.len() {
            let known: f64 = (first..c).map(|k| self.r[c][k] * z[k]).sum();
            z[c] = (z[c] - known) / self.r[c][c];
        }
        z
    }

    /// The unit vectors' products with `target`.
    pub fn along(&self, target: &[f64]) -> Vec<f64> {
        self.q.iter().map(|q| dot(q, target)).collect()
    }

    /// The weights on the target by which the combination `weights` of all coefficients follows from it.
    pub fn influence(&self, weights: &[f64], n: usize) -> Vec<f64> {
        self.combine(&self.solved(weights.to_vec(), 0), n)
    }

    /// The sum of the unit vectors with weights `z`, over `n` points.
    pub fn combine(&self, z: &[f64], n: usize) -> Vec<f64> {
        let mut sum = vec![0.0; n];
        for (z, q) in z.iter().zip(&self.q).filter(|(z, _)| **z != 0.0) {
            for (sum, q) in sum.iter_mut().zip(q) {
                *sum += z * q;
            }
        }
        sum
    }

    /// The part of `v` outside the span.
    pub fn outside(&self, v: &[f64]) -> Vec<f64> {
        let mut v = v.to_vec();
        for q in &self.q {
            let along = dot(q, &v);
            for (v, q) in v.iter_mut().zip(q) {
                *v -= along * q;
            }
        }
        v
    }

    /// The leverage of each of `n` points: its share in its own fit.
    pub fn leverage(&self, n: usize) -> Vec<f64> {
        (0..n).map(|i| self.q.iter().map(|q| q[i] * q[i]).sum()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_through_three_points_by_hand() {
        // x 1 2 3, y 1 2 2: slope 0.5, intercept 2/3; the slope is (y3 - y1) / 2; leverages 5/6, 1/3, 5/6
        let mut basis = Basis::default();
        assert!(basis.push(vec![1.0; 3]).is_some() && basis.push(vec![1.0, 2.0, 3.0]).is_some());
        assert!(basis.push(vec![3.0, 5.0, 7.0]).is_none(), "1 + 2 x is made up by the others");
        let near = |found: &[f64], expected: &[f64]| {
            assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12), "{found:?} {expected:?}");
        };
        near(&basis.coefficients(&[1.0, 2.0, 2.0]), &[2.0 / 3.0, 0.5]);
        near(&basis.combine(&basis.row(1), 3), &[-0.5, 0.0, 0.5]);
        near(&basis.influence(&[0.0, 1.0], 3), &[-0.5, 0.0, 0.5]);
        near(&basis.leverage(3), &[5.0 / 6.0, 1.0 / 3.0, 5.0 / 6.0]);
        near(&basis.along(&[1.0, 2.0, 2.0]), &[5.0 / 3f64.sqrt(), 0.5 * 2f64.sqrt()]);
        near(&basis.outside(&[0.0, 1.0, 0.0]), &[-1.0 / 3.0, 2.0 / 3.0, -1.0 / 3.0]);
    }

    #[test]
    fn a_column_taken_out_leaves_the_basis_of_the_others() {
        let mut rng = crate::random::Rng::new(8);
        let columns: Vec<Vec<f64>> = (0..6).map(|_| (0..15).map(|_| rng.normal()).collect()).collect();
        let target: Vec<f64> = (0..15).map(|_| rng.normal()).collect();
        for place in 0..6 {
            let (mut whole, mut anew) = (Basis::default(), Basis::default());
            for (c, column) in columns.iter().enumerate() {
                assert!(whole.push(column.clone()).is_some());
                assert!(c == place || anew.push(column.clone()).is_some());
            }
            let only = whole.combine(&whole.row(place), 15);
            let taken = whole.remove(place, |_, _, _| ());
            assert!((dot(&only, &taken).abs() / dot(&only, &only).sqrt() - 1.0).abs() < 1e-12);
            for (a, b) in whole.coefficients(&target).iter().zip(anew.coefficients(&target)) {
                assert!((a - b).abs() < 1e-12, "{place}");
            }
            assert!(whole.vectors().iter().all(|q| dot(q, &taken).abs() < 1e-13));
        }
    }
}
