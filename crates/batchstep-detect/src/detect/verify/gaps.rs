//! The gap at every boundary, relative to a curve without steps: one projection and two suffix sums.
//!
//! The gap after k is the least-squares coefficient of a step there, with a change of slope right after it, in addition
//! to the curve: the distance of two lines on one curve (Worsley 1983). It is expressed in units of its own standard
//! error, divided by the root of the residual sum of squares of the curve, so that the size of the noise cancels. With
//! r the whitened residual, `f` the whitening factors, Q the basis of the curve and u the t at k + 1, the products of
//! both columns with r are `a = sum f r` and `b = sum f r (t - u)` over all beyond k, and the parts of the two columns
//! outside Q follow in the same way.

use crate::detect::model::basis::{Basis, COLLINEAR};
use crate::detect::model::candidates::Term;
use crate::detect::model::fit::Model;
use crate::detect::model::simd::dot;

/// A curve without steps, and the weights that turn suffix sums of a residual into gaps.
pub(crate) struct Gaps<'a> {
    pub basis: Basis,
    factor: &'a [f64],
    t: &'a [f64],
    /// For each boundary the weights of the sums of f r and f r t beyond it; both zero where no step is allowed.
    weights: Vec<[f64; 2]>,
}

/// Sums over all beyond a boundary: of w, of w (t - u) and of w (t - u)^2.
type Moments = [f64; 3];

impl<'a> Gaps<'a> {
    /// The curve of `model`, which has no steps. Cost: O(n m) with m terms.
    pub fn new(model: &Model<'a, '_>) -> Self {
        let problem = model.problem;
        let candidates = problem.candidates;
        let (t, factor) = (&candidates.t[..], &problem.factor[..]);
        let mut basis = Basis::default();
        let free = [vec![1.0; candidates.n], candidates.t.clone()];
        for column in free.into_iter().chain(model.terms.iter().map(|&j| candidates.column(j))) {
            // A column that is a combination of the others adds nothing.
            let _ = basis.push(problem.whitened(&column));
        }
        let whole = moments(t, |i| factor[i] * factor[i]);
        let mut outside = whole.clone();
        for q in basis.vectors() {
            for (left, [a, b, _]) in outside.iter_mut().zip(moments(t, |i| q[i] * factor[i])) {
                *left = [left[0] - a * a, left[1] - a * b, left[2] - b * b];
            }
        }
        let weight = |k: usize| {
            let ([step, both, bend], least) = (outside[k], COLLINEAR * whole[k][0]);
            let share = if bend > COLLINEAR * whole[k][2] { both / bend } else { 0.0 };
            // A curve that already bends exactly here cannot get another bend.
            let share = if step - share * both > least { share } else { 0.0 };
            let left = step - share * both;
            if !candidates.allowed(candidates.index(Term::Step(k))) || left <= least {
                return [0.0; 2];
            }
            [(1.0 + share * t[k + 1]) / left.sqrt(), -share / left.sqrt()]
        };
        let weights = (0..candidates.n - 1).map(weight).collect();
        Self { basis, factor, t, weights }
    }

    /// The largest gap of a residual of the curve.
    pub fn strongest(&self, residual: &[f64]) -> f64 {
        let (mut sum, mut moment, mut largest) = (0.0, 0.0, 0.0f64);
        for k in (0..self.weights.len()).rev() {
            let v = residual[k + 1] * self.factor[k + 1];
            sum += v;
            moment += v * self.t[k + 1];
            let [step, bend] = self.weights[k];
            largest = largest.max((step * sum + bend * moment).abs());
        }
        largest / dot(residual, residual).sqrt().max(f64::MIN_POSITIVE)
    }
}

/// For each boundary the moments of the values `v` beyond it.
fn moments(t: &[f64], v: impl Fn(usize) -> f64) -> Vec<Moments> {
    let mut found = vec![[0.0; 3]; t.len() - 1];
    let [mut sum, mut first, mut second] = [0.0; 3];
    for k in (0..t.len() - 1).rev() {
        let (u, v) = (t[k + 1], v(k + 1));
        sum += v;
        first += v * u;
        second += v * u * u;
        found[k] = [sum, first - u * sum, second - 2.0 * u * first + u * u * sum];
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detect::model::candidates::CandidateTerms;
    use crate::detect::model::problem::Problem;
    use crate::random::Rng;
    use crate::stats::regression;

    /// Coefficient over standard error of the last column, by the normal equations: the slow, obvious way.
    fn directly(columns: &[Vec<f64>], y: &[f64]) -> f64 {
        let a: Vec<Vec<f64>> = columns.iter().map(|p| columns.iter().map(|q| dot(p, q)).collect()).collect();
        let b: Vec<f64> = columns.iter().map(|p| dot(p, y)).collect();
        let unit: Vec<f64> = (0..a.len()).map(|i| f64::from(i + 1 == a.len())).collect();
        let (size, variance) = (regression::solve(&a, &b), regression::solve(&a, &unit));
        let last = a.len() - 1;
        size.expect("independent columns")[last] / variance.expect("independent columns")[last].sqrt()
    }

    #[test]
    fn the_strongest_gap_matches_the_normal_equations() {
        let mut rng = Rng::new(11);
        let x: Vec<f64> = (1..=25).map(f64::from).collect();
        let y: Vec<f64> = x.iter().map(|x| 1.0 + 0.1 * x + 0.2 * (x - 9.0).max(0.0) + 0.3 * rng.normal()).collect();
        let error: Vec<f64> = x.iter().map(|_| 0.1 + 0.3 * rng.uniform()).collect();
        let candidates = CandidateTerms::new(&x);
        let problem = Problem::new(&candidates, &y, &error, 1.0);
        let terms =
            [Term::Hinge(8), Term::Off { at: 15, length: 1 }, Term::Shape(3)].map(|term| candidates.index(term));
        let model = Model::new(&problem, &terms);
        let mut curve = vec![problem.whitened(&[1.0; 25]), problem.whitened(&candidates.t)];
        curve.extend(terms.iter().map(|&j| problem.whitened(&candidates.column(j))));
        let gap = |k: usize| {
            let mut columns = curve.clone();
            // the bend at position 8 is in the curve already, and makes up the one at 9 beside a step after 8
            let added = [(k != 7 && k != 8).then_some(Term::Hinge(k + 1)), Some(Term::Step(k))].into_iter().flatten();
            columns.extend(added.map(|term| problem.whitened(&candidates.column(candidates.index(term)))));
            directly(&columns, &problem.target).abs()
        };
        let expected = (2..22).map(gap).fold(0.0, f64::max) / model.rss.sqrt();
        let found = Gaps::new(&model).strongest(&model.residual);
        assert!((found / expected - 1.0).abs() < 1e-8, "{found} {expected}");
    }
}
